//! The URL of a labelmap on a server.

use url::Url;

use crate::error::{Error, Result};

/// The schemes of such a URL.
pub const SCHEMES: &[&str] = &["dvid+http", "dvid+https"];

/// A labelmap of a server at a version: `dvid+http://host:port/version/data`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Address {
    /// The server: `http://host:port` or `https://host:port`, without a path.
    pub server: Url,
    /// The version as the user named it: a UUID, an unambiguous beginning of one, or `UUID:branch`.
    pub version: String,
    /// The name of the data instance.
    pub data: String,
}

impl Address {
    /// Takes a URL apart.
    pub fn parse(url: &str) -> Result<Self> {
        // A password must not show up in a message.
        let shown = if url.contains('@') { "the URL" } else { url };
        let refuse = |why: &str| Error::invalid(format!("{shown} is no labelmap of DVID: {why}"));
        let form = "expected dvid+http://host:port/version/data or dvid+https://…";
        let web = url.strip_prefix("dvid+").filter(|web| {
            // The parser takes more slashes than two for two.
            let parts = web.split_once("://");
            matches!(parts, Some(("http" | "https", rest)) if !rest.starts_with(['/', '\\']))
        });
        let mut server = Url::parse(web.ok_or_else(|| refuse(form))?)
            .map_err(|error| refuse(&error.to_string()))?;
        if !server.username().is_empty() || server.password().is_some() {
            return Err(Error::invalid("the URL of a DVID server must not contain a password"));
        }
        if server.query().is_some() || server.fragment().is_some() {
            return Err(refuse("it has a query or a fragment; settings are given as options"));
        }
        // The parser has resolved `.` and `..` already.
        let path = server.path().trim_matches('/').to_owned();
        let Some((version, data)) = path.split_once('/').filter(|(version, data)| {
            !version.is_empty() && !data.is_empty() && !data.contains('/')
        }) else {
            return Err(refuse(form));
        };
        let (version, data) = (plain(version), plain(data));
        let (Some(version), Some(data)) = (version, data) else {
            return Err(refuse("names may have letters, digits, and - _ . : alone"));
        };
        server.set_path("");
        Ok(Self { server, version, data })
    }
}

/// A name that means the same in a path, a log and a message. DVID itself allows more.
fn plain(name: &str) -> Option<String> {
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | ':');
    let sound = name.len() <= 256 && name.chars().all(fits) && name != "." && name != "..";
    sound.then(|| name.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ErrorKind;

    #[test]
    fn a_url_has_a_server_a_version_and_a_name() {
        let address = Address::parse("dvid+http://localhost:8000/3f8c:main/seg-1/").unwrap();
        assert_eq!(address.server.as_str(), "http://localhost:8000/");
        assert_eq!((&*address.version, &*address.data), ("3f8c:main", "seg-1"));
        let secure = Address::parse("dvid+https://host/u/d").unwrap();
        assert_eq!(secure.server.as_str(), "https://host/");
    }

    #[test]
    fn anything_else_is_refused() {
        for url in [
            "http://host/u/d",
            "dvid+ftp://host/u/d",
            "dvid+http://host/u",
            "dvid+http://host/",
            "dvid+http://host/u/d/e",
            "dvid+http://host/u//d",
            "dvid+http://host/../d",
            "dvid+http://host/u/a%2Fb",
            "dvid+http://host/u/d?scale=1",
            "dvid+http://me:secret@host/u/d",
            "dvid+http://me:secret@host:99999/u/d",
            "dvid+http:///u/d/x",
            "dvid+http://host:99999/u/d",
        ] {
            let error = Address::parse(url).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Invalid, "{url}: {error}");
            assert!(!error.to_string().contains("secret"), "{error}");
        }
    }
}
