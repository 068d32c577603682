//! Witnesses that know nothing of what the bytes mean.

use async_trait::async_trait;
use bytes::Bytes;

use super::{Sight, Witness};
use crate::backend::Version;
use crate::error::{Error, Noun, Result};
use crate::{Meta, Store};

/// Knows bytes by themselves: for objects that no other writer makes equal, or where it does not
/// matter which writer made them. The proof is the version.
#[derive(Debug)]
pub struct SameBytes<'a> {
    /// Where the object is.
    pub store: &'a Store,
    /// Its path.
    pub path: &'a str,
    /// The state that is replaced; `None` if the object is created.
    pub expected: Option<&'a Version>,
    /// The new content.
    pub bytes: &'a Bytes,
}

#[async_trait]
impl Witness for SameBytes<'_> {
    type Proof = Version;

    async fn look(&self) -> Result<Sight<Version>> {
        let found = match self.store.get(self.path).await {
            Err(Error::NotFound { what: Noun::Object, .. }) => None,
            other => Some(other?),
        };
        Ok(match (found, self.expected) {
            (Some(found), _) if found.bytes == *self.bytes => Sight::Ours((&found.meta).into()),
            (Some(found), Some(expected)) if is_same(&found.meta, expected) => Sight::Before,
            (None, None) => Sight::Before,
            _ => Sight::Another,
        })
    }

    fn acknowledged(&self, version: Version) -> Version {
        version
    }
}

/// By etag, if there is one: a list tells no version.
fn is_same(found: &Meta, expected: &Version) -> bool {
    match &expected.etag {
        Some(etag) => found.etag.as_ref() == Some(etag),
        None => found.version == expected.version,
    }
}

/// Takes any object for that of another writer: for copies that are compared afterwards in any case.
#[derive(Debug)]
pub struct AnyObject<'a> {
    /// Where the object is.
    pub store: &'a Store,
    /// Its path.
    pub path: &'a str,
}

#[async_trait]
impl Witness for AnyObject<'_> {
    type Proof = ();

    async fn look(&self) -> Result<Sight<()>> {
        match self.store.head(self.path).await {
            Ok(_) => Ok(Sight::Another),
            Err(Error::NotFound { what: Noun::Object, .. }) => Ok(Sight::Before),
            Err(error) => Err(error),
        }
    }

    fn acknowledged(&self, _: Version) {}
}
