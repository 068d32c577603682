//! A URL before it is known whether it is a directory or one object.

use chunkyard_store::{Error, Options, Result, Store, dvid_http};

use crate::dvid;

/// What comes before the place of a block table: a directory that may be something else besides.
pub const TABLE: &str = "table:";

/// A URL and how to reach it.
#[derive(Debug, Clone)]
pub struct Place {
    url: String,
    directory: Store,
    object: Option<(Store, String)>,
}

impl Place {
    /// A place. Nothing is opened yet. A link to a directory stands for that directory: a new dataset
    /// replaces the target of the link, and the link stays.
    pub fn new(url: &str, options: &Options) -> Result<Self> {
        if is_claimed(url) {
            // Nothing but the format can say what is there: to all others the place is empty.
            let directory =
                Store::unnamed(&Options { values: Default::default(), ..options.clone() })?;
            return Ok(Self { url: url.to_owned(), directory, object: None });
        }
        if let Some(table) = url.strip_prefix(TABLE) {
            let directory = Store::open(table, options)?;
            return Ok(Self { url: url.to_owned(), directory, object: None });
        }
        let directory = Store::open(url, options)?;
        let led = directory.target()?;
        let object = match parent(led.as_deref().unwrap_or(directory.url())) {
            Some((above, name)) => Some((Store::open(above, options)?, name.to_owned())),
            None => None,
        };
        Ok(Self { url: url.to_owned(), directory, object })
    }

    /// A directory of a store that is open already, and stays the way to reach it.
    pub fn within(store: Store, name: &str) -> Result<Self> {
        let directory = store.below(name)?;
        Ok(Self {
            url: directory.url().to_owned(),
            directory,
            object: Some((store, name.to_owned())),
        })
    }

    /// The URL as it was given.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// The URL without what only says how the place is to be read.
    pub fn bare_url(&self) -> &str {
        self.url.strip_prefix(TABLE).unwrap_or(&self.url)
    }

    /// The place as a directory.
    pub fn directory(&self) -> &Store {
        &self.directory
    }

    /// The place as one object: the store above it, and its name there. A bucket has none.
    pub fn object(&self) -> Option<(&Store, &str)> {
        self.object.as_ref().map(|(store, name)| (store, name.as_str()))
    }

    /// Fails if the place is neither a file nor a directory.
    pub async fn refuse_irregular(&self) -> Result<()> {
        let Some((store, name)) = &self.object else { return Ok(()) };
        match store.irregular(name).await {
            Some(found) => Err(Error::invalid(format!(
                "{} is {found}; a dataset is a file or a directory",
                self.url
            ))),
            None => Ok(()),
        }
    }

    /// Whether there is one object at exactly this place.
    pub async fn is_object(&self) -> Result<bool> {
        match &self.object {
            Some((store, name)) => match store.head(name).await {
                Ok(_) => Ok(true),
                Err(Error::NotFound { .. }) => Ok(false),
                Err(error) => Err(error),
            },
            None => Ok(false),
        }
    }
}

/// Whether the scheme of a URL belongs to one format, which opens the URL itself.
fn is_claimed(url: &str) -> bool {
    url.split_once("://")
        .is_some_and(|(scheme, _)| scheme == dvid::SCHEME || dvid_http::SCHEMES.contains(&scheme))
}

/// The URL above one, and the last segment.
fn parent(url: &str) -> Option<(&str, &str)> {
    let url = url.trim_end_matches('/');
    let start = url.find("://").map_or(0, |at| at + 3);
    let at = url.get(start..)?.rfind('/')? + start;
    let (above, name) = (url.get(..at)?, url.get(at + 1..)?);
    if name.is_empty() {
        return None;
    }
    match above {
        "" => Some(("/", name)),
        _ => Some((above, name)),
    }
}

#[cfg(test)]
mod tests {
    use super::parent;

    #[test]
    fn the_last_segment_is_the_name() {
        assert_eq!(parent("/data/x.h5"), Some(("/data", "x.h5")));
        assert_eq!(parent("/x.h5"), Some(("/", "x.h5")));
        assert_eq!(parent("s3://bucket/a/b/"), Some(("s3://bucket/a", "b")));
        assert_eq!(parent("s3://bucket/a"), Some(("s3://bucket", "a")));
        assert_eq!(parent("s3://bucket"), None);
        assert_eq!(parent("memory://name/x"), Some(("memory://name", "x")));
        assert_eq!(parent("/"), None);
    }
}
