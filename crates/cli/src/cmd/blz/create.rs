//! `chunkyard blz create`: a new array or table.

use anyhow::Result;
use chunkyard_engine::format::superchunk::{Blz, Wanted};
use clap::Args;
use serde_json::{Value, json};

use crate::attributes::value_of;
use crate::context::Context;
use crate::units::{parse_pair, parse_shape, parse_size};

/// Create an empty array or table
///
/// Refuses, with exit code 4, if the place is not empty. Options that are not given are chosen: rows
/// of a chunk and chunks of a file by the expected number of rows, compression by a trial on the
/// first chunk.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  chunkyard blz create field.blz --dtype '<f4' --row-shape 180,360 --expected-rows 100000
  chunkyard blz create ticks.blz --dtype \"[('time', '<M8[ms]'), ('price', '<f8')]\" --codec zstd")]
pub(crate) struct Create {
    /// The directory or URL to create
    place: String,

    /// Type of a row as NumPy writes it; a list of fields makes a table
    #[arg(long, value_name = "DTYPE")]
    dtype: String,

    #[command(flatten)]
    wishes: WishArgs,
}

/// Options of a new dataset, besides its type.
#[derive(Debug, Args)]
#[command(next_help_heading = "Options of a new dataset")]
pub(super) struct WishArgs {
    /// Shape of a row that is an array
    #[arg(long, value_name = "SHAPE")]
    row_shape: Option<String>,

    /// Expected number of rows, about
    #[arg(long, value_name = "N")]
    expected_rows: Option<u64>,

    /// Rows of a chunk
    #[arg(long, value_name = "N")]
    chunklen: Option<u64>,

    /// Chunks of a file
    #[arg(long, value_name = "N")]
    superchunk: Option<u64>,

    /// Compressor: blosclz, lz4, lz4hc, zlib or zstd
    #[arg(long, value_name = "NAME")]
    codec: Option<String>,

    /// How hard to compress, 0 to 9
    #[arg(long, value_name = "N")]
    level: Option<u8>,

    /// Shuffle before compression: none, byte or bit
    #[arg(long, value_name = "KIND")]
    shuffle: Option<String>,

    /// Checksum after each chunk: none, adler32, crc32, md5, sha1, sha224, sha256, sha384, sha512
    #[arg(long, value_name = "KIND")]
    checksum: Option<String>,

    /// Spare room in each chunk, so that it can change in place, such as 4KiB
    #[arg(long, value_name = "BYTES", value_parser = parse_size)]
    slack: Option<u64>,

    /// Default row, as JSON or plain text; of a table a list by field, or an object
    #[arg(long, value_name = "VALUE", allow_hyphen_values = true)]
    default: Option<String>,

    /// Layout of the directory: superchunk, document or bcolz
    #[arg(long, value_name = "STYLE")]
    style: Option<String>,

    /// An attribute, its value as JSON or plain text; may be repeated
    #[arg(long, value_name = "KEY=VALUE", value_parser = parse_pair)]
    attr: Vec<(String, String)>,
}

impl WishArgs {
    /// The options of a new dataset of this type.
    pub(super) fn wanted(&self, dtype: String) -> Result<Wanted> {
        let pairs = self.attr.iter().map(|(key, text)| (key.clone(), value_of(text)));
        Ok(Wanted {
            dtype,
            row_shape: self.row_shape.as_deref().map_or(Ok(Vec::new()), parse_shape)?,
            expected_rows: self.expected_rows,
            chunklen: self.chunklen,
            superchunk: self.superchunk,
            codec: self.codec.clone(),
            level: self.level,
            shuffle: self.shuffle.clone(),
            checksum: self.checksum.clone(),
            slack: self.slack.unwrap_or(0),
            default: self.default.as_deref().map(json_or_text),
            style: self.style.clone(),
            attributes: pairs.collect(),
        })
    }
}

/// A value as JSON, or else as plain text.
fn json_or_text(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|_| Value::from(text))
}

impl Create {
    pub(crate) async fn run(&self, context: &Context) -> Result<()> {
        let (place, options) = super::place(&self.place, context)?;
        let creation = self.wishes.wanted(self.dtype.clone())?.creation()?;
        let dataset = Blz::create(&place, &creation, options).await?;
        let columns = dataset.columns();
        let described = columns.iter().map(|column| {
            json!({
                "column": *column.path,
                "chunklen": column.chunklen,
                "superchunk": column.superchunk,
            })
        });
        let document = json!({
            "url": place.directory().url(),
            "style": dataset.style().word(),
            "columns": described.collect::<Vec<_>>(),
        });
        context.output.done(&document, || {
            format!("created {}; next: chunkyard blz append {} FILE", self.place, self.place)
        })
    }
}
