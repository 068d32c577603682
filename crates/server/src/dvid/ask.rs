//! What a request says: positions in the path, settings in the query, lists in the body.

use std::borrow::Cow;

use axum::body::{Body, Bytes, HttpBody, to_bytes};
use axum::http::StatusCode;
use chunkyard_engine::labels::Ids;
use serde::de::DeserializeOwned;

use super::segmentation::At;
use crate::http::Failure;

/// Bytes of a list in a request.
pub(super) const LIST_BYTES_MAX: usize = 16 << 20;
/// Labels of a request for indices, as in DVID.
pub(super) const INDICES_MAX: usize = 50_000;

/// The settings of a query.
#[derive(Debug, Default)]
pub(super) struct Settings<'a>(Vec<(Cow<'a, str>, Cow<'a, str>)>);

impl<'a> Settings<'a> {
    /// Takes a query apart.
    pub(super) fn parse(query: Option<&'a str>) -> Self {
        Self(url::form_urlencoded::parse(query.unwrap_or_default().as_bytes()).collect())
    }

    /// The value of a setting, if it has one.
    pub(super) fn get(&self, name: &str) -> Option<&str> {
        let found = self.0.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| &**value).filter(|value| !value.is_empty())
    }

    /// Whether a setting is `true`.
    pub(super) fn is(&self, name: &str) -> bool {
        self.get(name) == Some("true")
    }

    /// Bodies, unless supervoxels are asked for.
    pub(super) fn ids(&self) -> Ids {
        if self.is("supervoxels") { Ids::Supervoxels } else { Ids::Bodies }
    }

    /// The scale, 0 unless another is named.
    pub(super) fn scale(&self) -> Result<usize, Failure> {
        Ok(self.number::<u8>("scale")?.unwrap_or(0).into())
    }

    /// A setting that is a number.
    pub(super) fn number<N: std::str::FromStr>(&self, name: &str) -> Result<Option<N>, Failure> {
        let parse = |text: &str| {
            text.parse().map_err(|_| bad(format!("{name}={text} is no number that it can be")))
        };
        self.get(name).map(parse).transpose()
    }
}

/// A request that cannot be answered as it is.
pub(super) fn bad(reason: impl Into<String>) -> Failure {
    Failure::new(StatusCode::BAD_REQUEST, reason)
}

/// The label of a path, which is not 0.
pub(super) fn label(text: &str) -> Result<u64, Failure> {
    match text.parse() {
        Ok(0) => Err(bad("label 0 is what lies between bodies, and no body")),
        Ok(label) => Ok(label),
        Err(_) => Err(bad(format!("{text:?} is no label"))),
    }
}

/// Three numbers x, y, z with something between them, as z, y, x. As in DVID they have 32 bits.
pub(super) fn triple(text: &str, between: char) -> Result<At, Failure> {
    let numbers: Result<Vec<i32>, _> = text.split(between).map(str::parse).collect();
    match numbers.as_deref() {
        Ok(&[x, y, z]) => Ok([z, y, x].map(i64::from)),
        _ => Err(bad(format!("{text:?} is not X{between}Y{between}Z, three numbers of 32 bits"))),
    }
}

/// The box of `SIZE/OFFSET`: its first voxel, and one after its last.
pub(super) fn region(size: &str, offset: &str) -> Result<(At, At), Failure> {
    let (size, start) = (triple(size, '_')?, triple(offset, '_')?);
    if size.iter().any(|extent| *extent < 1) {
        return Err(bad("a box has at least one voxel along each axis"));
    }
    let end: At = std::array::from_fn(|axis| start[axis] + size[axis]);
    match end.iter().all(|end| i32::try_from(*end).is_ok()) {
        true => Ok((start, end)),
        false => Err(bad(format!(
            "a box that ends at {:?} (x, y, z): positions have 32 bits",
            turned(end)
        ))),
    }
}

/// A position as x, y, z.
pub(super) fn turned([z, y, x]: At) -> At {
    [x, y, z]
}

/// The body of a request, of which there may be so many bytes. One that says it has more is not read.
pub(super) async fn body(body: Body, bytes_max: usize) -> Result<Bytes, Failure> {
    let too_long = || {
        Failure::new(
            StatusCode::PAYLOAD_TOO_LARGE,
            format!("the body has more than the {bytes_max} bytes that it may have"),
        )
    };
    if body.size_hint().lower() > bytes_max as u64 {
        return Err(too_long());
    }
    to_bytes(body, bytes_max).await.map_err(|error| {
        let mut cause: Option<&(dyn std::error::Error + 'static)> = Some(&error);
        while let Some(error) = cause {
            if error.is::<http_body_util::LengthLimitError>() {
                return too_long();
            }
            cause = error.source();
        }
        bad(format!("the body did not come: {error}"))
    })
}

/// The body of a request as JSON.
pub(super) async fn json<T: DeserializeOwned>(given: Body) -> Result<T, Failure> {
    let bytes = body(given, LIST_BYTES_MAX).await?;
    serde_json::from_slice(&bytes).map_err(|error| bad(format!("the JSON of the body: {error}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_box_is_a_size_and_an_offset() {
        let (start, end) = region("64_32_16", "-64_0_10").unwrap();
        assert_eq!((start, end), ([10, 0, -64], [26, 32, 0]));
        for (size, offset) in [
            ("0_1_1", "0_0_0"),
            ("-1_1_1", "0_0_0"),
            ("1_1", "0_0_0"),
            ("1_1_1_1", "0_0_0"),
            ("1_1_1", "x_0_0"),
            ("1_1_1", "2147483647_0_0"),
            ("2147483648_1_1", "0_0_0"),
            ("", ""),
        ] {
            assert!(region(size, offset).is_err(), "{size}/{offset}");
        }
    }

    #[test]
    fn settings_are_read_from_the_query() {
        let settings = Settings::parse(Some("scale=2&supervoxels=true&u=a%20b&roi="));
        assert_eq!(settings.scale().unwrap(), 2);
        assert_eq!(settings.ids(), Ids::Supervoxels);
        assert_eq!(settings.get("u"), Some("a b"));
        assert_eq!(settings.get("roi"), None);
        assert!(Settings::parse(Some("scale=256")).scale().is_err());
        assert!(Settings::parse(Some("scale=-1")).scale().is_err());
    }
}
