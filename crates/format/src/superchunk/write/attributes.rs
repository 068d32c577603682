//! Writes attributes, and the compression that a trial found best.

use bytes::Bytes;
use chunkyard_array::Attributes;
use chunkyard_array::codec::blosc;
use chunkyard_store::{Error, Noun, Result, cpu};

use crate::publish::publish;
use crate::superchunk::create::cparams_of;
use crate::superchunk::handle::{Blz, Inner};
use crate::superchunk::meta;
use crate::superchunk::model::{Column, Style};
use crate::superchunk::read::directory::{ATTRIBUTES, OLD_ATTRIBUTES, STORAGE, UNTRIED};

impl Blz {
    /// Replaces all attributes, in one step.
    pub async fn set_attributes(&self, attributes: Attributes) -> Result<()> {
        let inner = &self.inner;
        let _alone = inner.writing.lock().await;
        inner.refuse_read_only()?;
        let path = match inner.style {
            Style::Bcolz => OLD_ATTRIBUTES,
            _ => ATTRIBUTES,
        };
        // The checksum is in the file itself, so no crash can separate the two.
        let sealed = inner.state().storage.as_ref().is_some_and(|storage| storage.sealed);
        let bytes = match sealed {
            true => meta::render_sealed_attributes(&attributes),
            false => meta::render_attributes(&attributes),
        };
        meta::refuse_seal(&attributes)?;
        publish(&inner.store, vec![(path.to_owned(), bytes.into())]).await?;
        inner.state().attributes = attributes;
        Ok(())
    }
}

impl Inner {
    /// Finds the best compression for a column with its first chunk, and stores it in `meta/storage`.
    pub(crate) async fn try_codecs(&self, at: usize, first: Option<&Bytes>) -> Result<Column> {
        let column = self.state().columns.get(at).cloned();
        let missing = || Error::NotFound { what: Noun::Column, name: at.to_string() };
        let mut column = column.ok_or_else(missing)?;
        let (plain, item) = (first.cloned().unwrap_or_default(), column.params_or_default().item);
        column.params = Some(cpu(move || blosc::choose(&plain, item)).await??);
        self.store_params(at, &column).await?;
        Ok(column)
    }

    async fn store_params(&self, at: usize, column: &Column) -> Result<()> {
        let Some(mut storage) = self.state().storage.clone() else { return Ok(()) };
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
        publish(&self.store, vec![(STORAGE.to_owned(), storage.render().into())]).await?;
        let mut state = self.state();
        if let Some(place) = std::sync::Arc::make_mut(&mut state.columns).get_mut(at) {
            *place = column.clone();
        }
        state.storage = Some(storage);
        Ok(())
    }
}
