//! `chunkyard af define`: a new array without elements.

use anyhow::Result;
use chunkyard_array::{ArrayBuilder, DType};
use chunkyard_engine::Error;
use chunkyard_engine::format::container::{ContainerEditor, mapping, model as container};
use clap::Args;
use serde_json::{Value, json};

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
        Wanted::parse(&self.dtype)?.create(&editor, &self.name, &shape, &self.new).await?;
        super::flush(&editor, &format!("defined {}", super::name(&self.name)), context).await
    }
}

/// A new array of a type that the user names: a type of containers, or one of Zarr, which a container
/// may refuse.
pub(in crate::cmd) struct Wanted {
    /// The type, if containers have it.
    known: Option<container::DType>,
    dtype: Value,
    item_size: usize,
}

impl Wanted {
    pub(in crate::cmd) fn parse(typed: &str) -> Result<Self> {
        let known = mapping::parse_type(typed);
        let dtype = match &known {
            Ok(known) => mapping::data_type_of(known)?,
            // If Zarr has the type, the refusal names it.
            Err(_) if !typed.contains('<') => json!(typed),
            Err(error) => return Err(Error::invalid(error.to_string()).into()),
        };
        let known = known.ok();
        let item_size = known.as_ref().and_then(container::DType::item_size);
        let item_size = item_size.or(DType::parse(&dtype)?.item_size()).filter(|&size| size > 0);
        Ok(Self { known, dtype, item_size: item_size.unwrap_or(VARIABLE_ITEM_SIZE) })
    }

    /// What is known of the array before its codecs.
    pub(in crate::cmd) fn builder(
        &self,
        shape: &[u64],
        new: &NewArrayArgs,
    ) -> Result<ArrayBuilder> {
        new.builder(shape, self.dtype.clone(), self.item_size)
    }

    /// Creates it in a container.
    pub(in crate::cmd) async fn create(
        self,
        editor: &ContainerEditor,
        name: &str,
        shape: &[u64],
        new: &NewArrayArgs,
    ) -> Result<()> {
        let spec = self.builder(shape, new)?.build()?;
        match self.known {
            Some(known) => editor.create_array_of(name, &spec, known).await?,
            None => editor.create_array(name, &spec).await?,
        }
        Ok(())
    }
}
