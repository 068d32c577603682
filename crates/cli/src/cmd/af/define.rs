//! `chunkyard af define`: a new array without elements.

use anyhow::Result;
use chunkyard_array::DType;
use chunkyard_engine::Error;
use chunkyard_engine::format::container::{ContainerEditor, mapping, model as container};
use clap::Args;
use serde_json::json;

use crate::args::NewArrayArgs;
use crate::context::Context;
use crate::units::parse_shape;

/// Assumed size of a string when chunks are chosen: the lengths are not known yet.
const VARIABLE_ITEM_SIZE: usize = 32;

/// Define an array; its elements are the fill value until they are set
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  chunkyard af define buoys.af north/temperature --dtype float32 --shape 1000,200 --chunks 100,200
  chunkyard af define buoys.af names --dtype string --shape 200
  chunkyard af define buoys.af readings --dtype 'list<float32>' --shape 200")]
pub(crate) struct Define {
    /// The container
    file: String,

    /// The array, such as north/temperature
    name: String,

    // Not a doc comment, where brackets would be links.
    #[arg(
        long,
        value_name = "TYPE",
        help = "Data type: bool, int8 … uint64, float32, float64, string, bytes, datetime64[ns], \
                list<TYPE>, fixed<SIZE,TYPE>"
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
        let editor = super::writable(&self.file, None, context).await?;
        create(&editor, &self.name, &self.dtype, &shape, &self.new).await?;
        super::flush(&editor, &format!("defined {}", super::name(&self.name)), context).await
    }
}

/// Creates an array of a type that the user names: a type of containers, or one of Zarr, which may be
/// refused.
pub(super) async fn create(
    editor: &ContainerEditor,
    name: &str,
    typed: &str,
    shape: &[u64],
    new: &NewArrayArgs,
) -> Result<()> {
    let known = mapping::parse_type(typed);
    let dtype = match &known {
        Ok(known) => mapping::data_type_of(known)?,
        // If Zarr has the type, the refusal names it.
        Err(_) if !typed.contains('<') => json!(typed),
        Err(error) => return Err(Error::invalid(error.to_string()).into()),
    };
    let item_size = known.as_ref().ok().and_then(container::DType::item_size);
    let item_size = item_size.or(DType::parse(&dtype)?.item_size()).filter(|&size| size > 0);
    let spec = new.builder(shape, dtype, item_size.unwrap_or(VARIABLE_ITEM_SIZE))?.build()?;
    match known {
        Ok(known) => editor.create_array_of(name, &spec, known).await?,
        Err(_) => editor.create_array(name, &spec).await?,
    }
    Ok(())
}
