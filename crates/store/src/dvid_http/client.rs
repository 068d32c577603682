//! One request and its answer.
//!
//! | Setting | Value | Why |
//! |---|---|---|
//! | `connect_timeout` | 5 s | as for object stores |
//! | `timeout` | 120 s | the longest silence, not the longest answer: a large one may take hours |
//! | `retries` | 10 | repetitions without anything new in between |
//! | `retry_timeout_ms` | 180,000 | the longest time without anything new |
//!
//! Redirects are not followed: the user named a server, and an answer must not name another. An answer whose end cannot
//! be told from a lost connection is refused.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use reqwest::header::{
    ACCEPT_ENCODING, CONTENT_ENCODING, CONTENT_TYPE, LOCATION, TRANSFER_ENCODING,
};
use reqwest::redirect::Policy;
use reqwest::{Response, StatusCode, Version};
use url::Url;

use super::patience::{Failure, Patience};
use crate::error::{Error, Result};
use crate::object::client::{RETRIES, RETRY_TIMEOUT_MS, install_crypto};
use crate::{Limits, Options};

const OP: &str = "read";

/// As much of a message of the server as an error shows.
const MESSAGE_BYTES_MAX: usize = 2 << 10;

/// Speaks to one server. Clones share connections.
#[derive(Clone)]
pub struct DvidClient {
    inner: Arc<Inner>,
}

struct Inner {
    server: Url,
    http: reqwest::Client,
    limits: Limits,
    retries: usize,
    retry_timeout: Duration,
    answered: AtomicBool,
}

impl fmt::Debug for DvidClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "DVID at {}", self.inner.server)
    }
}

impl DvidClient {
    /// A client of the server at an address. Nothing is sent yet.
    pub fn new(server: &Url, options: &Options) -> Result<Self> {
        let settings = Settings::new(options)?;
        install_crypto();
        let http = reqwest::Client::builder()
            .redirect(Policy::none())
            .connect_timeout(settings.connect_timeout)
            .read_timeout(settings.timeout)
            .pool_idle_timeout(Duration::from_secs(15))
            .pool_max_idle_per_host(options.limits.requests)
            .build()
            .map_err(|error| Error::store("prepare requests to", server.as_str(), error))?;
        Ok(Self {
            inner: Arc::new(Inner {
                server: server.clone(),
                http,
                limits: options.limits,
                retries: settings.retries,
                retry_timeout: settings.retry_timeout,
                answered: AtomicBool::new(false),
            }),
        })
    }

    /// How much may be under way at once.
    pub fn limits(&self) -> &Limits {
        &self.inner.limits
    }

    /// The URL of a request: a path by its segments, and a query that is escaped already.
    pub fn url(&self, segments: &[&str], query: &str) -> Url {
        let mut url = self.inner.server.clone();
        if let Ok(mut path) = url.path_segments_mut() {
            path.clear().extend(segments);
        }
        url.set_query((!query.is_empty()).then_some(query));
        url
    }

    /// The whole answer to a request, sent again where that may help.
    pub async fn get(&self, url: &Url, body: Option<Bytes>, bytes_max: usize) -> Result<Bytes> {
        let mut patience = self.patience();
        loop {
            let failure = match self.send(url, body.clone()).await {
                Ok(answer) => match answer.whole(bytes_max).await {
                    Ok(bytes) => return Ok(bytes),
                    Err(failure) => failure,
                },
                Err(failure) => failure,
            };
            patience.after(failure).await?;
        }
    }

    pub(super) fn patience(&self) -> Patience {
        Patience::new(self.inner.retries, self.inner.retry_timeout)
    }

    /// Sends a request once, and looks at the head of the answer.
    pub(super) async fn send(&self, url: &Url, body: Option<Bytes>) -> Result<Answer, Failure> {
        let mut request = self.inner.http.get(url.clone()).header(ACCEPT_ENCODING, "identity");
        if let Some(body) = body {
            request = request.header(CONTENT_TYPE, "application/json").body(body);
        }
        let response = match request.send().await {
            Ok(response) => response,
            Err(error) => return Err(self.lost(url, error)),
        };
        self.inner.answered.store(true, Ordering::Relaxed);
        let shown = shown(url);
        let wrong = |why: String| Failure::Final(Error::store(OP, shown.clone(), why));
        let status = response.status();
        if status.is_redirection() {
            let to = response.headers().get(LOCATION).and_then(|to| to.to_str().ok());
            let to = brief(to.unwrap_or("nowhere").as_bytes());
            return Err(wrong(format!("the server redirects to {to}, which is not followed")));
        }
        if status != StatusCode::OK {
            return Err(self.refused(url, status, response).await);
        }
        let text = |name| response.headers().get(name).and_then(|value| value.to_str().ok());
        if let Some(encoding) = text(CONTENT_ENCODING).filter(|name| *name != "identity") {
            return Err(wrong(format!(
                "the answer is packed as {encoding:?}, which was not asked for"
            )));
        }
        if text(CONTENT_TYPE).is_some_and(|kind| kind.to_ascii_lowercase().starts_with("text/html"))
        {
            return Err(wrong("the answer is a web page: is this a DVID server?".to_owned()));
        }
        let length = response.content_length();
        let ends = length.is_some()
            || response.version() >= Version::HTTP_2
            || text(TRANSFER_ENCODING).is_some_and(|coding| coding.trim().ends_with("chunked"));
        if !ends {
            return Err(wrong(
                "the answer has neither a length nor an end mark, so a lost connection would look \
                 like its end"
                    .to_owned(),
            ));
        }
        let client = self.clone();
        Ok(Answer { response, url: url.clone(), client, length, received: 0 })
    }

    /// The failure of an answer that says no, with the words of the server.
    async fn refused(&self, url: &Url, status: StatusCode, mut response: Response) -> Failure {
        let mut said = Vec::new();
        while said.len() < MESSAGE_BYTES_MAX {
            match response.chunk().await {
                Ok(Some(bytes)) => said.extend_from_slice(&bytes),
                Ok(None) | Err(_) => break,
            }
        }
        said.truncate(MESSAGE_BYTES_MAX);
        let page = said.trim_ascii_start().starts_with(b"<");
        let said = if page { "with a web page".to_owned() } else { brief(&said) };
        let error = Error::store(OP, shown(url), format!("the server answered {status}: {said}"));
        let later = matches!(status.as_u16(), 408 | 425 | 429) || status.is_server_error();
        match later {
            true => Failure::Lost { error, unknown: false, silent: false },
            false => Failure::Final(error),
        }
    }

    /// The failure of a connection.
    fn lost(&self, url: &Url, error: reqwest::Error) -> Failure {
        if error.is_builder() {
            return Failure::Final(Error::store(OP, shown(url), error.without_url()));
        }
        let silent = error.is_timeout();
        let unknown = !self.inner.answered.load(Ordering::Relaxed);
        let error = Error::store(OP, shown(url), error.without_url());
        Failure::Lost { error, unknown, silent }
    }
}

/// The body of an answer as it arrives. Dropping it ends the request.
#[derive(Debug)]
pub struct Answer {
    response: Response,
    url: Url,
    client: DvidClient,
    length: Option<u64>,
    received: u64,
}

impl Answer {
    /// The next bytes; `None` at the end that HTTP marks.
    pub(super) async fn next(&mut self) -> Result<Option<Bytes>, Failure> {
        match self.response.chunk().await {
            Ok(Some(bytes)) => {
                self.received += bytes.len() as u64;
                Ok(Some(bytes))
            }
            Ok(None) => match self.length.filter(|length| *length != self.received) {
                None => Ok(None),
                Some(length) => {
                    let why = format!("{} of {length} bytes arrived", self.received);
                    let error = Error::store(OP, shown(&self.url), why);
                    Err(Failure::Lost { error, unknown: false, silent: false })
                }
            },
            Err(error) => Err(self.client.lost(&self.url, error)),
        }
    }

    /// All of it, if it has no more bytes than that.
    pub(super) async fn whole(mut self, bytes_max: usize) -> Result<Bytes, Failure> {
        let mut whole = BytesMut::new();
        while let Some(bytes) = self.next().await? {
            if bytes.len() > bytes_max.saturating_sub(whole.len()) {
                let why = format!("the answer has more than {bytes_max} bytes");
                return Err(Failure::Final(Error::store(OP, shown(&self.url), why)));
            }
            whole.extend_from_slice(&bytes);
        }
        Ok(whole.freeze())
    }
}

/// A URL in a message: the list of blocks in a query can be long.
pub(super) fn shown(url: &Url) -> String {
    brief(url.as_str().as_bytes())
}

/// Bytes of the server in a message: one line, and not too long.
fn brief(bytes: &[u8]) -> String {
    const CHARS_MAX: usize = 300;
    let text = String::from_utf8_lossy(bytes);
    let clean = text.trim().chars().map(|c| if c.is_control() { ' ' } else { c });
    let mut brief: String = clean.take(CHARS_MAX).collect();
    if text.trim().chars().nth(CHARS_MAX).is_some() {
        brief.push('…');
    }
    brief
}

/// The options of a store that this client has.
struct Settings {
    connect_timeout: Duration,
    timeout: Duration,
    retries: usize,
    retry_timeout: Duration,
}

impl Settings {
    fn new(options: &Options) -> Result<Self> {
        let mut settings = Self {
            connect_timeout: Duration::from_secs(5),
            timeout: Duration::from_secs(120),
            retries: RETRIES,
            retry_timeout: Duration::from_millis(RETRY_TIMEOUT_MS),
        };
        for (key, value) in &options.values {
            let wrong =
                || Error::invalid(format!("the option {key} of a DVID server is {value:?}"));
            match key.to_ascii_lowercase().as_str() {
                "connect_timeout" => settings.connect_timeout = time(value).ok_or_else(wrong)?,
                "timeout" => settings.timeout = time(value).ok_or_else(wrong)?,
                "retries" => settings.retries = value.parse().map_err(|_| wrong())?,
                "retry_timeout_ms" => {
                    let ms = value.parse().map_err(|_| wrong())?;
                    settings.retry_timeout = Duration::from_millis(ms);
                }
                // An option of one store must not be lost on another.
                _ => return Err(Error::invalid(format!("a DVID server has no option {key:?}"))),
            }
        }
        Ok(settings)
    }
}

/// A time such as `500ms`, `30s` or `2m`.
fn time(text: &str) -> Option<Duration> {
    let at = text.find(|c: char| !c.is_ascii_digit())?;
    let (number, unit) = text.split_at(at);
    let number: u64 = number.parse().ok()?;
    let ms = match unit.trim() {
        "ms" => 1,
        "s" | "sec" | "seconds" => 1000,
        "m" | "min" | "minutes" => 60_000,
        _ => return None,
    };
    number.checked_mul(ms).map(Duration::from_millis)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_read_and_unknown_ones_refused() {
        let given = |key: &str, value: &str| {
            let mut options = Options::default();
            options.values.insert(key.into(), value.into());
            Settings::new(&options)
        };
        assert_eq!(given("timeout", "250ms").unwrap().timeout, Duration::from_millis(250));
        assert_eq!(given("connect_timeout", "2m").unwrap().connect_timeout.as_secs(), 120);
        assert_eq!(given("retries", "0").unwrap().retries, 0);
        assert_eq!(given("retry_timeout_ms", "7").unwrap().retry_timeout.as_millis(), 7);
        for (key, value) in [
            ("timeout", "5"),
            ("timeout", "5 years"),
            ("timeout", "99999999999999999999s"),
            ("retries", "-1"),
            ("region", "eu"),
        ] {
            assert!(given(key, value).is_err(), "{key}={value}");
        }
    }

    #[test]
    fn words_of_a_server_are_one_short_line() {
        assert_eq!(brief(b" no such\x1b[2J\nUUID \xff "), "no such [2J UUID \u{fffd}");
        assert!(brief(&[b'x'; 5000]).chars().count() < 400);
    }
}
