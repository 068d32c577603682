//! Writes attributes, and the compression that a trial found best.

use std::sync::Arc;

use bytes::Bytes;
use chunkyard_array::Attributes;
use chunkyard_array::codec::blosc;
use chunkyard_store::{Error, Noun, Result, cpu};

use super::Writing;
use crate::publish::publish;
use crate::superchunk::committed::Committed;
use crate::superchunk::create::cparams_of;
use crate::superchunk::handle::Blz;
use crate::superchunk::meta;
use crate::superchunk::model::{Column, Style};
use crate::superchunk::read::directory::{ATTRIBUTES, OLD_ATTRIBUTES, STORAGE, UNTRIED};

impl Blz {
    /// Replaces all attributes, in one step.
    pub async fn set_attributes(&self, attributes: Attributes) -> Result<()> {
        let writing = self.shared.writing.lock().await;
        let (access, committed) = (&writing.access, writing.committed());
        access.refuse_read_only()?;
        let path = match access.style {
            Style::Bcolz => OLD_ATTRIBUTES,
            _ => ATTRIBUTES,
        };
        // The checksum is in the file itself, so no crash can separate the two.
        let sealed = committed.storage.as_ref().is_some_and(|storage| storage.sealed);
        let bytes = match sealed {
            true => meta::render_sealed_attributes(&attributes),
            false => meta::render_attributes(&attributes),
        };
        meta::refuse_seal(&attributes)?;
        publish(&access.store, vec![(path.to_owned(), bytes.into())]).await?;
        writing.current.commit(Committed { attributes, ..(*committed).clone() });
        Ok(())
    }
}

impl Writing {
    /// Finds the best compression for a column with its first chunk, and stores it in `meta/storage`.
    pub(super) async fn try_codecs(&self, at: usize, first: Option<&Bytes>) -> Result<Column> {
        let column = self.committed().columns.get(at).cloned();
        let missing = || Error::NotFound { what: Noun::Column, name: at.to_string() };
        let mut column = column.ok_or_else(missing)?;
        let (plain, item) = (first.cloned().unwrap_or_default(), column.params_or_default().item);
        column.params = Some(cpu(move || blosc::choose(&plain, item)).await??);
        self.store_params(at, &column).await?;
        Ok(column)
    }

    async fn store_params(&self, at: usize, column: &Column) -> Result<()> {
        let committed = self.committed();
        let Some(mut storage) = committed.storage.clone() else { return Ok(()) };
        let cparams = cparams_of(&column.params_or_default().into());
        let key = column.path.trim_start_matches('/');
        match storage.columns.as_mut().and_then(|columns| columns.get_mut(key)) {
            Some(own) => {
                own.cparams = cparams;
                own.other.remove(UNTRIED);
            }
            None => {
                storage.cparams = cparams;
                storage.other.remove(UNTRIED);
            }
        }
        publish(&self.access.store, vec![(STORAGE.to_owned(), storage.render().into())]).await?;
        let mut columns = committed.columns.clone();
        if let Some(described) = Arc::make_mut(&mut columns).get_mut(at) {
            *described = column.clone();
        }
        let storage = Some(storage);
        self.current.commit(Committed { columns, storage, ..(*committed).clone() });
        Ok(())
    }
}
