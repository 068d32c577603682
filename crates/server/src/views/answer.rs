//! Answers to requests for content that has a validator: conditions, single ranges, and how long it may be kept.

use std::ops::Range;

use axum::body::Body;
use axum::http::header::{
    ACCEPT_ENCODING, ACCEPT_RANGES, CACHE_CONTROL, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_RANGE,
    CONTENT_TYPE, ETAG, IF_NONE_MATCH, IF_RANGE, RANGE, VARY,
};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode};
use axum::response::Response;
use bytes::Bytes;
use chunkyard_engine::Result;
use futures::stream::BoxStream;

use super::kept::Value;

/// What of a request bears on how content is answered.
#[derive(Debug, Clone, Copy)]
pub(super) struct Request<'a> {
    pub(super) method: &'a Method,
    pub(super) headers: &'a HeaderMap,
    /// Whether the content of the URL can never change.
    pub(super) pinned: bool,
    /// Whether callers need no token, so that shared caches may keep answers.
    pub(super) open: bool,
}

/// What content is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// A document.
    Json,
    /// An encoded chunk of Zarr. Readers ask for its length, so it is never compressed on the way.
    Chunk,
    /// An encoded chunk of a volume.
    Volume,
    /// A file of the viewer.
    File(&'static str),
}

/// Content in one of its forms.
#[derive(Debug)]
pub(super) struct Content {
    pub(super) value: Value,
    /// Whether it is compressed.
    pub(super) gzip: bool,
    /// Whether other callers get it in the other form.
    pub(super) varies: bool,
}

impl Content {
    pub(super) fn plain(value: Value) -> Self {
        Self { value, gzip: false, varies: false }
    }
}

impl Request<'_> {
    /// Whether the answer may be compressed: a range is one of plain bytes, and a length is asked for of these.
    pub(super) fn may_compress(&self) -> bool {
        self.method != Method::HEAD && !self.headers.contains_key(RANGE)
    }

    fn caching(&self) -> HeaderValue {
        HeaderValue::from_static(match (self.pinned, self.open) {
            (true, true) => "public, max-age=31536000, immutable",
            (true, false) => "private, max-age=31536000, immutable",
            (false, _) => "no-cache",
        })
    }
}

impl Kind {
    fn content_type(self) -> &'static str {
        match self {
            Self::Json => "application/json",
            Self::Chunk | Self::Volume => "application/octet-stream",
            Self::File(content_type) => content_type,
        }
    }
}

/// The answer with content that is at hand.
pub(super) fn whole(request: &Request<'_>, kind: Kind, content: Content) -> Response {
    let Value { bytes, tag } = content.value;
    let mut head = HeaderMap::with_capacity(8);
    head.insert(CONTENT_TYPE, HeaderValue::from_static(kind.content_type()));
    if content.gzip {
        head.insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    }
    if content.varies {
        head.insert(VARY, HeaderValue::from_static("accept-encoding"));
    }
    respond(request, head, bytes.len() as u64, &tag, |range| {
        // It lies within the bytes, so it fits.
        let at = |offset: u64| usize::try_from(offset).unwrap_or(bytes.len()).min(bytes.len());
        Body::from(bytes.slice(at(range.start)..at(range.end)))
    })
}

/// The answer with a chunk of a known length, of which only what is asked for is read.
pub(super) fn streamed(
    request: &Request<'_>,
    length: u64,
    tag: HeaderValue,
    read: impl FnOnce(Range<u64>) -> BoxStream<'static, Result<Bytes>>,
) -> Response {
    let mut head = HeaderMap::with_capacity(8);
    head.insert(CONTENT_TYPE, HeaderValue::from_static(Kind::Chunk.content_type()));
    respond(request, head, length, &tag, |range| Body::from_stream(read(range)))
}

fn respond(
    request: &Request<'_>,
    mut head: HeaderMap,
    length: u64,
    tag: &HeaderValue,
    body: impl FnOnce(Range<u64>) -> Body,
) -> Response {
    head.insert(ETAG, tag.clone());
    head.insert(CACHE_CONTROL, request.caching());
    if names(request.headers, tag) {
        head.remove(CONTENT_TYPE);
        head.remove(CONTENT_ENCODING);
        return made(StatusCode::NOT_MODIFIED, head, Body::empty());
    }
    head.insert(ACCEPT_RANGES, HeaderValue::from_static("bytes"));
    let (status, range) = match wanted(request.headers, length, tag) {
        Wanted::All => (StatusCode::OK, 0..length),
        Wanted::Part(range) => {
            let said = format!("bytes {}-{}/{length}", range.start, range.end.saturating_sub(1));
            insert(&mut head, CONTENT_RANGE, &said);
            (StatusCode::PARTIAL_CONTENT, range)
        }
        Wanted::Nothing => {
            insert(&mut head, CONTENT_RANGE, &format!("bytes */{length}"));
            head.insert(CONTENT_LENGTH, HeaderValue::from(0));
            return made(StatusCode::RANGE_NOT_SATISFIABLE, head, Body::empty());
        }
    };
    head.insert(CONTENT_LENGTH, HeaderValue::from(range.end - range.start));
    let body = if request.method == Method::HEAD { Body::empty() } else { body(range) };
    made(status, head, body)
}

fn made(status: StatusCode, head: HeaderMap, body: Body) -> Response {
    let mut response = Response::new(body);
    *response.status_mut() = status;
    *response.headers_mut() = head;
    response
}

fn insert(head: &mut HeaderMap, name: axum::http::HeaderName, value: &str) {
    if let Ok(value) = HeaderValue::from_str(value) {
        head.insert(name, value);
    }
}

/// Whether a caller has this content already.
fn names(headers: &HeaderMap, tag: &HeaderValue) -> bool {
    let opaque = |text: &str| text.trim().trim_start_matches("W/").to_owned();
    let Ok(tag) = tag.to_str() else { return false };
    headers
        .get_all(IF_NONE_MATCH)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .any(|value| value.split(',').any(|known| known.trim() == "*" || opaque(known) == tag))
}

/// What of some content is wanted.
#[derive(Debug, PartialEq, Eq)]
enum Wanted {
    All,
    Part(Range<u64>),
    Nothing,
}

/// What of content of a length is wanted. More than one range, or one that is none, is answered with all, as HTTP allows.
fn wanted(headers: &HeaderMap, length: u64, tag: &HeaderValue) -> Wanted {
    let range = headers.get(RANGE).and_then(|value| value.to_str().ok()).and_then(single);
    let Some((first, last)) = range else { return Wanted::All };
    // RFC 9110 §13.1.5: a range of other content is of no use; a date is never one of ours.
    if headers.get(IF_RANGE).is_some_and(|known| known != tag) {
        return Wanted::All;
    }
    let range = match (first, last) {
        (Some(first), Some(last)) => first..last.saturating_add(1).min(length),
        (Some(first), None) => first..length,
        (None, Some(count)) => length.saturating_sub(count)..length,
        (None, None) => return Wanted::All,
    };
    match range.start < range.end {
        true => Wanted::Part(range),
        false => Wanted::Nothing,
    }
}

/// The numbers of a range.
fn single(value: &str) -> Option<(Option<u64>, Option<u64>)> {
    let (unit, range) = value.split_once('=')?;
    let (first, last) = range.trim().split_once('-')?;
    if !unit.trim().eq_ignore_ascii_case("bytes") {
        return None;
    }
    let number = |text: &str| match text {
        "" => Some(None),
        digits if digits.bytes().all(|byte| byte.is_ascii_digit()) => {
            // A number beyond all lengths.
            Some(Some(digits.parse().unwrap_or(u64::MAX)))
        }
        _ => None,
    };
    let (first, last) = (number(first.trim())?, number(last.trim())?);
    let reversed = matches!((first, last), (Some(first), Some(last)) if first > last);
    (!reversed).then_some((first, last))
}

/// Whether a caller said that it can unpack gzip.
pub(super) fn accepts_gzip(headers: &HeaderMap) -> bool {
    let values = headers.get_all(ACCEPT_ENCODING).iter().filter_map(|value| value.to_str().ok());
    let mut named = None;
    let mut any = None;
    for coding in values.flat_map(|value| value.split(',')) {
        let mut parts = coding.split(';').map(str::trim);
        let name = parts.next().unwrap_or_default();
        let refused = parts.any(|part| {
            let quality = part.strip_prefix("q=").and_then(|text| text.trim().parse::<f32>().ok());
            quality.is_some_and(|quality| quality <= 0.0)
        });
        match name {
            name if name.eq_ignore_ascii_case("gzip") => named = Some(!refused),
            "*" => any = Some(!refused),
            _ => {}
        }
    }
    named.or(any).unwrap_or(false)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(name: axum::http::HeaderName, value: &str) -> HeaderMap {
        let mut headers = HeaderMap::new();
        headers.insert(name, HeaderValue::from_str(value).unwrap());
        headers
    }

    #[test]
    fn a_single_range_is_cut_to_the_content() {
        let tag = HeaderValue::from_static("\"a\"");
        for (range, expected) in [
            ("bytes=0-3", Wanted::Part(0..4)),
            ("bytes=2-", Wanted::Part(2..10)),
            ("bytes=-3", Wanted::Part(7..10)),
            ("bytes=-99", Wanted::Part(0..10)),
            ("bytes=8-99999999999999999999999", Wanted::Part(8..10)),
            ("bytes=10-", Wanted::Nothing),
            ("bytes=-0", Wanted::Nothing),
            ("bytes=99-100", Wanted::Nothing),
            ("Bytes = 1-1", Wanted::Part(1..2)),
            ("bytes=3-1", Wanted::All),
            ("bytes=0-1,4-5", Wanted::All),
            ("bytes=-", Wanted::All),
            ("bytes=a-b", Wanted::All),
            ("bytes=+1-2", Wanted::All),
            ("items=0-1", Wanted::All),
            ("", Wanted::All),
        ] {
            assert_eq!(wanted(&with(RANGE, range), 10, &tag), expected, "{range}");
        }
        assert_eq!(wanted(&with(RANGE, "bytes=0-"), 0, &tag), Wanted::Nothing);
    }

    #[test]
    fn a_range_of_other_content_is_not_given() {
        let tag = HeaderValue::from_static("\"a\"");
        let mut headers = with(RANGE, "bytes=0-3");
        headers.insert(IF_RANGE, HeaderValue::from_static("\"b\""));
        assert_eq!(wanted(&headers, 10, &tag), Wanted::All);
        headers.insert(IF_RANGE, tag.clone());
        assert_eq!(wanted(&headers, 10, &tag), Wanted::Part(0..4));
    }

    #[test]
    fn validators_are_compared_one_by_one() {
        let tag = HeaderValue::from_static("\"a\"");
        for (value, expected) in
            [("\"a\"", true), ("\"b\", W/\"a\"", true), ("*", true), ("\"ab\"", false), ("", false)]
        {
            assert_eq!(names(&with(IF_NONE_MATCH, value), &tag), expected, "{value}");
        }
    }

    #[test]
    fn gzip_is_taken_from_those_who_name_it() {
        for (value, expected) in [
            ("gzip, deflate, br", true),
            ("GZIP;q=0.5", true),
            ("*", true),
            ("gzip;q=0, *", false),
            ("br", false),
            ("", false),
        ] {
            assert_eq!(accepts_gzip(&with(ACCEPT_ENCODING, value)), expected, "{value}");
        }
    }
}
