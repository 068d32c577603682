//! From a URL and options to a backend.

use std::collections::{BTreeMap, HashMap};
use std::str::FromStr;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};
use std::time::Duration;

use object_store::aws::{AmazonS3Builder, AmazonS3ConfigKey, S3CopyIfNotExists};
use object_store::azure::MicrosoftAzureBuilder;
use object_store::gcp::GoogleCloudStorageBuilder;
use object_store::http::HttpBuilder;
use object_store::memory::InMemory;
use object_store::path::Path;
use object_store::{ClientConfigKey, ObjectStore, RetryConfig};
use url::Url;

use super::backend::Kind;
use super::limits::Limits;
use super::local::Local;
use super::object::{ObjectBackend, client};
use super::options::Options;
use super::{Backend, Store};
use crate::error::{Error, Result};

const SCHEMES: &str = "a plain path, file://, memory://, s3://, gs://, az://, azure://, abfs://, \
                       abfss://, http:// and https:// work";

/// Stores in memory, by name, for as long as the process lives.
static MEMORY: LazyLock<Mutex<HashMap<String, Arc<InMemory>>>> = LazyLock::new(Mutex::default);

pub(super) fn open(url: &str, options: &Options) -> Result<Store> {
    if url.is_empty() {
        return Err(refuse(url, "it is empty"));
    }
    let Some((scheme, rest)) = url.split_once("://") else {
        return local(Local::new(url, options.durability)?);
    };
    if scheme == "memory" {
        return memory(url, rest, options);
    }
    let parsed = Url::parse(url).map_err(|error| refuse(url, error))?;
    if parsed.query().is_some() || parsed.fragment().is_some() {
        return Err(refuse(url, "it has a query or a fragment; settings are given as options"));
    }
    match scheme {
        "file" => {
            let path = parsed.to_file_path();
            let path = path.map_err(|()| refuse(url, "it needs an absolute path, file:///path"))?;
            local(Local::new(path, options.durability)?)
        }
        "s3" | "gs" | "az" | "azure" | "abfs" | "abfss" | "http" | "https" => {
            remote(&parsed, options)
        }
        _ => Err(refuse(url, format!("there is no store for {scheme}://; {SCHEMES}"))),
    }
}

pub(super) fn refuse(url: &str, why: impl std::fmt::Display) -> Error {
    Error::invalid(format!("cannot open {url:?} as a store: {why}"))
}

fn local(local: Local) -> Result<Store> {
    let url = local.root().display().to_string();
    Ok(Store::from_backend(url, Arc::new(local)))
}

fn memory(url: &str, rest: &str, options: &Options) -> Result<Store> {
    let (name, prefix) = rest.split_once('/').unwrap_or((rest, ""));
    let prefix = Path::parse(prefix).map_err(|error| refuse(url, error))?;
    let mut stores = MEMORY.lock().unwrap_or_else(PoisonError::into_inner);
    let store = stores.entry(name.to_owned()).or_default().clone();
    drop(stores);
    in_memory(url, store, prefix, options)
}

/// A store in memory that has no name.
pub(super) fn unnamed(options: &Options) -> Result<Store> {
    in_memory("memory://", Arc::default(), Path::default(), options)
}

fn in_memory(url: &str, store: Arc<InMemory>, prefix: Path, options: &Options) -> Result<Store> {
    let kind = Kind::Object { conditional_put: Settings::new(url, options)?.conditional_put };
    Ok(finish(url, ObjectBackend::new(store, prefix, kind)))
}

fn remote(url: &Url, options: &Options) -> Result<Store> {
    let text = url.as_str();
    let settings = Settings::new(text, options)?;
    let failed = |error| refuse(text, error);
    let prefix = Path::from_url_path(url.path()).map_err(|error| refuse(text, error))?;
    let object = Kind::Object { conditional_put: settings.conditional_put };
    let (store, kind): (Arc<dyn ObjectStore>, Kind) = match url.scheme() {
        "s3" => {
            let builder = AmazonS3Builder::from_env().with_url(text).with_retry(settings.retry());
            let builder = settings.apply(text, builder, AmazonS3Builder::with_config)?;
            let builder = s3_links(s3_over_http(builder));
            let builder = builder.with_http_connector(client::FirstContact);
            (Arc::new(builder.build().map_err(failed)?), object)
        }
        "gs" => {
            let builder = GoogleCloudStorageBuilder::from_env().with_url(text);
            let builder = builder.with_retry(settings.retry());
            let builder = settings.apply(text, builder, GoogleCloudStorageBuilder::with_config)?;
            let builder = builder.with_http_connector(client::FirstContact);
            (Arc::new(builder.build().map_err(failed)?), object)
        }
        "http" | "https" => {
            if !url.username().is_empty() || url.password().is_some() {
                return Err(Error::invalid("a URL of a store must not contain a password"));
            }
            // An http:// URL is explicit, so plain HTTP is allowed.
            let builder = HttpBuilder::new()
                .with_url(&url[..url::Position::BeforePath])
                .with_retry(settings.retry())
                .with_config(ClientConfigKey::AllowHttp, (url.scheme() == "http").to_string());
            let builder = settings.apply(text, builder, HttpBuilder::with_config)?;
            let builder = builder.with_http_connector(client::FirstContact);
            (Arc::new(builder.build().map_err(failed)?), Kind::ReadOnly)
        }
        _ => {
            let builder = MicrosoftAzureBuilder::from_env().with_url(text);
            let builder = builder.with_retry(settings.retry());
            let builder = settings.apply(text, builder, MicrosoftAzureBuilder::with_config)?;
            let builder = builder.with_http_connector(client::FirstContact);
            (Arc::new(builder.build().map_err(failed)?), object)
        }
    };
    Ok(finish(text, ObjectBackend::new(store, prefix, kind)))
}

/// An http:// endpoint is explicit, so plain HTTP is allowed.
fn s3_over_http(builder: AmazonS3Builder) -> AmazonS3Builder {
    match builder.get_config_value(&AmazonS3ConfigKey::Endpoint) {
        Some(endpoint) if endpoint.starts_with("http://") => builder.with_allow_http(true),
        _ => builder,
    }
}

/// Copies that do not replace use Amazon's way, unless the options choose another.
fn s3_links(builder: AmazonS3Builder) -> AmazonS3Builder {
    match builder.get_config_value(&AmazonS3ConfigKey::CopyIfNotExists) {
        Some(_) => builder,
        None => builder.with_copy_if_not_exists(S3CopyIfNotExists::Multipart),
    }
}

fn finish(url: &str, backend: ObjectBackend) -> Store {
    let backend: Arc<dyn Backend> = Arc::new(backend);
    Store::from_backend(url.trim_end_matches('/'), backend)
}

/// The options, split into our own and the object store's.
struct Settings {
    conditional_put: bool,
    retries: usize,
    retry_timeout: Duration,
    limits: Limits,
    others: BTreeMap<String, String>,
}

impl Settings {
    fn new(url: &str, options: &Options) -> Result<Self> {
        let mut others = options.values.clone();
        // Other values belong to S3's own option of this name.
        let conditional_put = match others.get("conditional_put").map(String::as_str) {
            Some(flag @ ("true" | "false")) => {
                let flag = flag == "true";
                others.remove("conditional_put");
                flag
            }
            _ => true,
        };
        let retries = take(url, &mut others, "retries")?.unwrap_or(client::RETRIES);
        let timeout_ms = take(url, &mut others, "retry_timeout_ms")?;
        let timeout_ms = timeout_ms.unwrap_or(client::RETRY_TIMEOUT_MS);
        let retry_timeout = Duration::from_millis(timeout_ms);
        Ok(Self { conditional_put, retries, retry_timeout, limits: options.limits, others })
    }

    fn retry(&self) -> RetryConfig {
        client::retry(self.retries, self.retry_timeout)
    }

    /// Gives a builder our settings, then the caller's.
    fn apply<B, K: FromStr>(
        &self,
        url: &str,
        builder: B,
        set: impl Fn(B, K, String) -> B,
    ) -> Result<B> {
        let given = self.others.iter().map(|(key, value)| (key.as_str(), value.clone()));
        let ours = client::settings(&self.limits).into_iter();
        ours.chain(given).try_fold(builder, |builder, (key, value)| {
            let known = key.to_ascii_lowercase().parse::<K>();
            let known = known.map_err(|_| refuse(url, format!("it has no option {key:?}")))?;
            Ok(set(builder, known, value))
        })
    }
}

fn take<T: FromStr>(
    url: &str,
    values: &mut BTreeMap<String, String>,
    key: &str,
) -> Result<Option<T>> {
    let Some(value) = values.remove(key) else { return Ok(None) };
    let parsed = value.parse();
    parsed.map(Some).map_err(|_| refuse(url, format!("the option {key} is no number: {value:?}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(values: &[(&str, &str)]) -> Options {
        let values = values.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
        Options { values, ..Options::default() }
    }

    const S3: [(&str, &str); 3] =
        [("region", "nowhere"), ("access_key_id", "a"), ("secret_access_key", "b")];

    #[test]
    fn paths_and_file_urls_are_directories() {
        for url in ["/tmp/some dir", "file:///tmp/some%20dir", "/tmp/some dir/"] {
            let store = Store::open(url, &Options::default()).unwrap();
            assert_eq!(store.kind(), Kind::Local);
            assert_eq!(store.url().trim_end_matches('/'), "/tmp/some dir", "{url}");
        }
        let relative = Store::open("some/dir", &Options::default()).unwrap();
        assert!(relative.url().starts_with('/') && relative.url().ends_with("/some/dir"));
    }

    #[test]
    fn object_stores_open_without_being_asked() {
        let store = Store::open("s3://bucket/prefix/", &options(&S3)).unwrap();
        assert_eq!(store.kind(), Kind::Object { conditional_put: true });
        assert_eq!(store.url(), "s3://bucket/prefix");
        let gs = options(&[("skip_signature", "true")]);
        assert!(Store::open("gs://bucket/prefix", &gs).is_ok());
        let azure = options(&[("account_name", "a"), ("skip_signature", "true")]);
        for scheme in ["az", "azure", "abfs"] {
            Store::open(&format!("{scheme}://container/prefix"), &azure).unwrap();
        }
        for url in ["http://127.0.0.1:1/data", "https://example.org/data"] {
            assert_eq!(Store::open(url, &Options::default()).unwrap().kind(), Kind::ReadOnly);
        }
    }

    #[test]
    fn a_store_can_be_declared_unable_to_replace() {
        let mut values = S3.to_vec();
        values.push(("conditional_put", "false"));
        let store = Store::open("s3://bucket", &options(&values)).unwrap();
        assert_eq!(store.kind(), Kind::Object { conditional_put: false });
    }

    #[test]
    fn copies_that_do_not_replace_are_uploads_unless_options_say_otherwise() {
        let key = AmazonS3ConfigKey::CopyIfNotExists;
        let way = |builder| s3_links(builder).get_config_value(&key);
        assert_eq!(way(AmazonS3Builder::new()).as_deref(), Some("multipart"));
        let theirs = "header: cf-copy-destination-if-none-match: *";
        let builder = AmazonS3Builder::new().with_config(key, theirs);
        assert_eq!(way(builder).as_deref(), Some(theirs));
    }

    #[test]
    fn a_refused_url_is_answered_with_the_known_schemes() {
        let refused = |url: &str, options: &Options| match Store::open(url, options) {
            Err(Error::Invalid { what }) => what,
            other => panic!("{url}: {other:?}"),
        };
        let none = Options::default();
        let what = refused("ftp://host/x", &none);
        assert!(what.contains("ftp://host/x") && what.contains("s3://"), "{what}");
        refused("", &none);
        refused("file://relative/path", &none);
        refused("s3://", &none);
        refused("memory://a/../b", &none);
        refused("https://example.org/data?token=1", &none);
        assert!(!refused("https://me:secret@example.org/", &none).contains("secret"));
        assert!(refused("s3://b", &options(&[("colour", "red")])).contains("colour"));
        assert!(refused("s3://b", &options(&[("retries", "many")])).contains("retries"));
    }

    #[tokio::test]
    async fn the_same_name_in_memory_is_the_same_store() {
        let none = Options::default();
        let one = Store::open("memory://same-name", &none).unwrap();
        one.put("deep/a", vec!["x".into()]).await.unwrap();
        let two = Store::open("memory://same-name/deep", &none).unwrap();
        assert_eq!(two.get("a").await.unwrap().bytes, "x");
        let other = Store::open("memory://other-name", &none).unwrap();
        assert!(other.get("deep/a").await.is_err());
    }
}
