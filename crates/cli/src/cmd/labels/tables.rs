//! `chunkyard labels table` and `sql`: the tables of a version for other programs.

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::Result;
use chunkyard_engine::labels::{Labelmap, TABLES};
use chunkyard_engine::repo::KeyRange;
use chunkyard_engine::{Error, Noun};
use clap::Args;
use clap::builder::PossibleValuesParser;
use futures::TryStreamExt;
use serde_json::json;

use super::Place;
use crate::args::VersionArgs;
use crate::context::Context;
use crate::npy::Writer;
use crate::units::size;

/// Write a table of a version to a Parquet file
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  chunkyard labels table brain bodies -o bodies.parquet
  chunkyard labels table brain mapping -o mapping.parquet --tag v1
  chunkyard labels table brain index -o blocks.parquet --columns body,z,y,x")]
pub(crate) struct Table {
    #[command(flatten)]
    place: Place,

    /// The table
    #[arg(value_parser = PossibleValuesParser::new(TABLES))]
    table: String,

    /// The file; - is standard output
    #[arg(long, short, value_name = "FILE")]
    output: PathBuf,

    /// Only these columns
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    columns: Option<Vec<String>>,

    #[command(flatten)]
    version: VersionArgs,
}

impl Table {
    pub(crate) async fn run(&self, context: &Context) -> Result<()> {
        let map = self.place.at(&self.version, context).await?;
        let bytes = write(&map, &self.table, self.columns.as_deref(), &self.output).await?;
        let file = self.output.display().to_string();
        // A document beside the file would be a part of it.
        if file == "-" {
            return Ok(());
        }
        let document = json!({"table": self.table, "file": file, "bytes": bytes});
        context.output.done(&document, || format!("{file}: table {} ({})", self.table, size(bytes)))
    }
}

/// Ask the tables of a version in SQL
///
/// DuckDB answers, so its program `duckdb` has to be installed. It finds the tables that the query names:
/// mapping, index, bodies, supervoxels, mutations, history.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  chunkyard labels sql brain 'select body, voxels from bodies order by voxels desc limit 10'
  chunkyard labels sql brain 'select count(*) from supervoxels where voxels = 0' --tag v1 --json")]
pub(crate) struct Sql {
    #[command(flatten)]
    place: Place,

    /// The query
    query: String,

    /// The program
    #[arg(long, value_name = "PROGRAM", default_value = "duckdb")]
    duckdb: OsString,

    #[command(flatten)]
    version: VersionArgs,
}

impl Sql {
    pub(crate) async fn run(&self, context: &Context) -> Result<()> {
        let map = self.place.at(&self.version, context).await?;
        let folder = tempfile::tempdir().map_err(|error| {
            Error::store("create", std::env::temp_dir().to_string_lossy(), error)
        })?;
        let mut script = String::new();
        for name in TABLES.into_iter().filter(|name| names(&self.query, name)) {
            let file = folder.path().join(format!("{name}.parquet"));
            write(&map, name, None, &file).await?;
            let file = file.display().to_string().replace('\'', "''");
            script += &format!("CREATE VIEW {name} AS SELECT * FROM read_parquet('{file}');\n");
        }
        let mut command = Command::new(&self.duckdb);
        // The settings of a person's own sessions change what a query prints.
        command.args(["-init", "/dev/null", "-bail"]).stdin(Stdio::null());
        if context.output.is_json() {
            command.arg("-json");
        }
        command.arg("-c").arg(script + &self.query);
        let status = tokio::task::spawn_blocking(move || command.status()).await?;
        drop(folder);
        match status {
            Ok(status) if status.success() => Ok(()),
            Ok(_) => Err(Error::invalid("DuckDB refuses the query").into()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Err(Error::unsupported(format!(
                "SQL without DuckDB: there is no program {}; get it with `pip install duckdb-cli` or from \
                 duckdb.org, or name it with --duckdb",
                self.duckdb.display()
            ))
            .into()),
            Err(error) => Err(Error::store("start", self.duckdb.to_string_lossy(), error).into()),
        }
    }
}

/// Writes a table as a Parquet file, and says how large it is.
async fn write(map: &Labelmap, name: &str, columns: Option<&[String]>, file: &Path) -> Result<u64> {
    let columns: Option<Vec<&str>> =
        columns.map(|columns| columns.iter().map(String::as_str).collect());
    if columns.as_ref().is_some_and(Vec::is_empty) {
        return Err(Error::NotFound { what: Noun::Column, name: format!("of {name}") }.into());
    }
    let mut pieces = map.table(name)?.parquet(&KeyRange::All, columns.as_deref())?;
    let (mut writer, target) = Writer::begin(file, b"")?;
    let mut bytes = 0;
    while let Some(piece) = pieces.try_next().await? {
        bytes += piece.len() as u64;
        writer =
            tokio::task::spawn_blocking(move || writer.push(&piece).map(|()| writer)).await??;
    }
    tokio::task::spawn_blocking(move || writer.finish()).await??;
    target.appear()?;
    Ok(bytes)
}

/// Whether a query has a word.
fn names(query: &str, word: &str) -> bool {
    let is_part = |letter: char| letter.is_alphanumeric() || letter == '_';
    query.split(|letter| !is_part(letter)).any(|found| found.eq_ignore_ascii_case(word))
}
