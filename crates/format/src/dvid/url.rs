//! The URL of a version of a store: `dvid+badger:///path?uuid=…&data=…&log=…&info=…&instance=…`.

use chunkyard_store::{Error, Result};

/// The scheme.
pub const SCHEME: &str = "dvid+badger";

/// What a URL says.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DvidUrl {
    /// The directory of the store, as a path or a URL of its own.
    pub directory: String,
    /// The version: the beginning of its UUID, or `uuid:branch`.
    pub uuid: Option<String>,
    /// The name of the data.
    pub data: Option<String>,
    /// The directory of mutation logs.
    pub log: Option<String>,
    /// A file with the answer to `GET /api/repos/info`.
    pub info: Option<String>,
    /// The number of the data in keys, for stores whose own metadata does not say it.
    pub instance: Option<u32>,
}

impl DvidUrl {
    /// Whether a URL has the scheme.
    pub fn is_one(url: &str) -> bool {
        url.split_once("://").is_some_and(|(scheme, _)| scheme == SCHEME)
    }

    /// Takes a URL apart. A path or a URL of another scheme is a directory with no wishes.
    pub fn parse(url: &str) -> Result<Self> {
        let Some(rest) = url.strip_prefix(SCHEME).and_then(|rest| rest.strip_prefix("://")) else {
            return Ok(Self { directory: url.to_owned(), ..Self::default() });
        };
        let (directory, query) = rest.split_once('?').unwrap_or((rest, ""));
        let mut parsed = Self { directory: unescape(url, directory)?, ..Self::default() };
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            let slot = match name {
                "uuid" => &mut parsed.uuid,
                "data" => &mut parsed.data,
                "log" => &mut parsed.log,
                "info" => &mut parsed.info,
                "instance" => {
                    let number = unescape(url, value)?.parse().map_err(|_| {
                        Error::invalid(format!(
                            "{url}: instance={value} is no number of an instance"
                        ))
                    })?;
                    parsed.instance = Some(number);
                    continue;
                }
                _ => {
                    return Err(Error::invalid(format!(
                        "{url}: there is no setting {name:?}; there are uuid, data, log, info and instance"
                    )));
                }
            };
            *slot = Some(unescape(url, value)?);
        }
        Ok(parsed)
    }
}

/// Replaces `%` and two hexadecimal digits by their byte.
fn unescape(url: &str, text: &str) -> Result<String> {
    let bad = || Error::invalid(format!("{url}: {text:?} has a % that no two digits follow"));
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let digit = |byte: Option<u8>| char::from(byte?).to_digit(16);
        let (high, low) = (digit(rest.next()), digit(rest.next()));
        let value = high.zip(low).and_then(|(high, low)| u8::try_from(high << 4 | low).ok());
        bytes.push(value.ok_or_else(bad)?);
    }
    String::from_utf8(bytes).map_err(|_| bad())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_says_which_version_is_meant() {
        let url =
            "dvid+badger:///data/badger?uuid=a1:side&data=seg&log=%2Flogs&info=x.json&instance=7";
        let parsed = DvidUrl::parse(url).unwrap();
        assert_eq!(parsed.directory, "/data/badger");
        assert_eq!(parsed.uuid.as_deref(), Some("a1:side"));
        assert_eq!(parsed.data.as_deref(), Some("seg"));
        assert_eq!(parsed.log.as_deref(), Some("/logs"));
        assert_eq!(parsed.info.as_deref(), Some("x.json"));
        assert_eq!(parsed.instance, Some(7));
        assert_eq!(DvidUrl::parse("/data/badger").unwrap().directory, "/data/badger");
        let remote = DvidUrl::parse("dvid+badger://s3://bucket/badger").unwrap();
        assert_eq!(remote.directory, "s3://bucket/badger");
    }

    #[test]
    fn an_unknown_setting_is_refused() {
        for rest in ["x?version=1", "x?uuid=%g0", "x%", "x?instance=", "x?instance=4294967296"] {
            let url = format!("dvid+badger:///{rest}");
            assert!(DvidUrl::parse(&url).is_err(), "{url}");
        }
    }
}
