//! `chunkyard af define`: a new array without elements.

use anyhow::Result;
use chunkyard_array::DType;
use clap::Args;
use serde_json::{Value, json};

use crate::args::NewArrayArgs;
use crate::context::Context;
use crate::units::parse_shape;

/// What the chunks of strings are reckoned with, whose lengths nobody knows yet.
const VARIABLE_ITEM_SIZE: usize = 32;

/// Define an array; its elements are the fill value until they are set
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  chunkyard af define buoys.af north/temperature --dtype float32 --shape 1000,200 --chunks 100,200
  chunkyard af define buoys.af names --dtype string --shape 200")]
pub(crate) struct Define {
    /// The container
    file: String,

    /// The array, such as north/temperature
    name: String,

    // Not a comment for the documentation, where brackets are links.
    #[arg(
        long,
        value_name = "TYPE",
        help = "Data type: bool, int8 … uint64, float32, float64, string, bytes, datetime64[ns]"
    )]
    dtype: String,

    /// Shape, such as 1000,200; an empty one is a scalar
    #[arg(long, value_name = "SHAPE")]
    shape: String,

    #[command(flatten)]
    new: NewArrayArgs,
}

impl Define {
    pub(crate) async fn run(&self, context: &Context) -> Result<()> {
        let shape = match self.shape.as_str() {
            "" => Vec::new(),
            text => parse_shape(text)?,
        };
        let dtype = data_type(&self.dtype);
        let item_size = DType::parse(&dtype)?.item_size().unwrap_or(VARIABLE_ITEM_SIZE);
        let spec = self.new.builder(&shape, dtype, item_size)?.build()?;
        let editor = super::writable(&self.file, None, context).await?;
        editor.create_array(&self.name, &spec).await?;
        super::flush(&editor, &format!("defined {}", super::name(&self.name)), context).await
    }
}

/// The data type that was typed, as Zarr writes it.
fn data_type(typed: &str) -> Value {
    match typed {
        "datetime64[ns]" => json!({
            "name": "numpy.datetime64",
            "configuration": {"unit": "ns", "scale_factor": 1},
        }),
        other => json!(other),
    }
}
