//! The frame around the messages of a shard: what comes before, behind, and where each one is.

use std::ops::Range;

use arrow_ipc::convert::IpcSchemaEncoder;
use arrow_ipc::{Block, FooterBuilder, MetadataVersion};
use arrow_schema::SchemaRef;
use bytes::Bytes;
use chunkyard_store::{Error, Result};
use flatbuffers::FlatBufferBuilder;
use serde::{Deserialize, Serialize};

use super::message::{Message, schema_message};

/// How messages are framed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Container {
    /// Between two magic words, with a footer that lists the batches, for random access.
    #[default]
    File,
    /// One behind the other, for readers of streams.
    Stream,
}

/// What a file begins and ends with. It is padded to the alignment of messages at the beginning.
const MAGIC: &[u8; 6] = b"ARROW1";
/// What a stream ends with: a continuation without a message.
const END: [u8; 8] = [0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0];

/// The frame of a shard under way.
#[derive(Debug)]
pub(super) struct Frame {
    container: Container,
    schema: SchemaRef,
    /// Bytes so far.
    len: u64,
    /// Bytes before the first batch.
    head_bytes: u64,
    batches: Vec<Block>,
}

impl Frame {
    /// A frame, and the bytes before the first batch.
    pub(super) fn begin(container: Container, schema: &SchemaRef) -> Result<(Self, Bytes)> {
        let message = schema_message(schema)?;
        let mut bytes = Vec::with_capacity(message.bytes.len() + 8);
        if container == Container::File {
            bytes.extend_from_slice(MAGIC);
            bytes.extend_from_slice(&[0; 2]);
        }
        bytes.extend_from_slice(&message.bytes);
        let len = bytes.len() as u64;
        let (schema, batches) = (schema.clone(), Vec::new());
        Ok((Self { container, schema, len, head_bytes: len, batches }, bytes.into()))
    }

    /// Bytes before the first batch.
    pub(super) fn head_bytes(&self) -> u64 {
        self.head_bytes
    }

    /// Where the next message lies in the shard.
    pub(super) fn place(&mut self, message: &Message) -> Result<Range<u64>> {
        let (start, len) = (self.len, message.bytes.len());
        let too_large = || Error::unsupported("an Arrow shard of more than 8 EiB");
        let offset = i64::try_from(start).map_err(|_| too_large())?;
        let head = i32::try_from(message.head).map_err(|_| too_large())?;
        let body = i64::try_from(len.saturating_sub(message.head)).map_err(|_| too_large())?;
        if self.container == Container::File {
            self.batches.push(Block::new(offset, head, body));
        }
        self.len = start.checked_add(len as u64).ok_or_else(too_large)?;
        Ok(start..self.len)
    }

    /// The bytes behind the last batch.
    pub(super) fn end(self) -> Bytes {
        let mut bytes = END.to_vec();
        if self.container == Container::Stream {
            return bytes.into();
        }
        let mut builder = FlatBufferBuilder::new();
        let dictionaries = builder.create_vector::<Block>(&[]);
        let batches = builder.create_vector(&self.batches);
        let schema = IpcSchemaEncoder::new().schema_to_fb_offset(&mut builder, &self.schema);
        let mut footer = FooterBuilder::new(&mut builder);
        footer.add_version(MetadataVersion::V5);
        footer.add_schema(schema);
        footer.add_dictionaries(dictionaries);
        footer.add_recordBatches(batches);
        let root = footer.finish();
        builder.finish(root, None);
        let footer = builder.finished_data();
        bytes.extend_from_slice(footer);
        bytes.extend_from_slice(&(footer.len() as i32).to_le_bytes());
        bytes.extend_from_slice(MAGIC);
        bytes.into()
    }
}
