//! Pages of other origins: what a browser lets them do here.
//!
//! Any page may read, unless the configuration names those that may. To change something a page has to be named, or send a
//! token. Where no token is needed, names of the host are compared too: else a page whose name leads to this machine would
//! pass for one of ours.

use axum::extract::{Request, State as Shared};
use axum::http::header::{self, HeaderName};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, uri::Authority};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use super::Failure;
use crate::State;

const EXPOSED: HeaderValue = HeaderValue::from_static(
    "accept-ranges, content-encoding, content-length, content-range, etag, retry-after",
);
const ACCEPTED: HeaderValue = HeaderValue::from_static(
    "accept, authorization, content-type, if-match, if-modified-since, if-none-match, if-range, range",
);
const READING: HeaderValue = HeaderValue::from_static("GET, HEAD");
const CHANGING: HeaderValue = HeaderValue::from_static("GET, HEAD, POST, PUT, PATCH, DELETE");
/// For how long a browser may remember what is allowed: two hours, which is the most that any does.
const REMEMBERED: HeaderValue = HeaderValue::from_static("7200");
const ANY: HeaderValue = HeaderValue::from_static("*");
const ASKS_FOR_PRIVATE: HeaderName =
    HeaderName::from_static("access-control-request-private-network");
const ALLOWS_PRIVATE: HeaderName = HeaderName::from_static("access-control-allow-private-network");

/// Answers a request if the page that sends it may do so, and tells the browser what else the page may.
pub(super) async fn origins(
    Shared(state): Shared<State>,
    request: Request,
    next: Next,
) -> Response {
    let config = state.config();
    let open = !state.access().is_closed();
    let headers = request.headers();
    let host = host(&request).map(str::to_owned);
    if open
        && let Some(host) = &host
        && !is_ours(host, &config.hosts)
    {
        let reason = format!(
            "this server needs no token and is not called {host:?}: name it in `hosts` of the configuration"
        );
        return Failure::new(StatusCode::MISDIRECTED_REQUEST, reason).into_response();
    }
    let Some(origin) = headers.get(header::ORIGIN).cloned() else {
        return next.run(request).await;
    };
    let asked = headers.get(header::ACCESS_CONTROL_REQUEST_METHOD).cloned();
    let preflight = *request.method() == Method::OPTIONS && asked.is_some();
    let any = config.origins.iter().any(|origin| origin == "*");
    let named = config.origins.iter().any(|named| named.as_bytes() == origin.as_bytes());
    let changes = named || (any && !open);
    let reads = |method: &[u8]| matches!(method, b"GET" | b"HEAD" | b"OPTIONS");
    let allowed = |method: &[u8]| changes || (any && reads(method));
    if preflight {
        let asked = asked.as_ref().map_or(&b""[..], HeaderValue::as_bytes);
        if !allowed(asked) {
            return Failure::new(StatusCode::FORBIDDEN, reason(&origin)).into_response();
        }
        let mut answer = StatusCode::NO_CONTENT.into_response();
        let private = headers.contains_key(ASKS_FOR_PRIVATE);
        let told = answer.headers_mut();
        told.insert(header::ACCESS_CONTROL_ALLOW_METHODS, if changes { CHANGING } else { READING });
        told.insert(header::ACCESS_CONTROL_ALLOW_HEADERS, ACCEPTED);
        told.insert(header::ACCESS_CONTROL_MAX_AGE, REMEMBERED);
        if private {
            told.insert(ALLOWS_PRIVATE, HeaderValue::from_static("true"));
        }
        allow(told, any, origin);
        return answer;
    }
    let method = request.method().as_str().as_bytes();
    let may_read = any || named;
    // A browser sends such a request without asking when it looks like a form.
    if open && !reads(method) && !allowed(method) && !is_same(&origin, host.as_deref()) {
        return Failure::new(StatusCode::FORBIDDEN, reason(&origin)).into_response();
    }
    let mut answer = next.run(request).await;
    if may_read {
        answer.headers_mut().insert(header::ACCESS_CONTROL_EXPOSE_HEADERS, EXPOSED);
        allow(answer.headers_mut(), any, origin);
    }
    answer
}

fn reason(origin: &HeaderValue) -> String {
    let origin = String::from_utf8_lossy(origin.as_bytes());
    format!("pages of {origin} may not do that: name the origin in `origins` of the configuration")
}

/// Tells the browser that the page may see the answer.
fn allow(headers: &mut HeaderMap, any: bool, origin: HeaderValue) {
    let allowed = if any { ANY } else { origin };
    headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, allowed);
    if !any {
        headers.append(header::VARY, HeaderValue::from_static("origin"));
    }
}

/// The host that the client means, with its port.
fn host(request: &Request) -> Option<&str> {
    let named = request.uri().authority().map(Authority::as_str);
    named.or_else(|| request.headers().get(header::HOST)?.to_str().ok())
}

/// Whether a host is an address, this machine's own name, or named in the configuration.
fn is_ours(host: &str, named: &[String]) -> bool {
    // An address cannot be made to mean another machine; a name can.
    let Ok(authority) = host.parse::<Authority>() else { return false };
    let name = authority.host().trim_end_matches('.');
    let address = name.trim_start_matches('[').trim_end_matches(']');
    address.parse::<std::net::IpAddr>().is_ok()
        || name.eq_ignore_ascii_case("localhost")
        || named.iter().any(|named| named.eq_ignore_ascii_case(name))
}

/// Whether a page comes from this server.
fn is_same(origin: &HeaderValue, host: Option<&str>) -> bool {
    let Ok(origin) = origin.to_str() else { return false };
    let bare = origin.strip_prefix("http://").or_else(|| origin.strip_prefix("https://"));
    bare.is_some() && bare == host
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_are_not_ours_are_told_from_addresses() {
        let named = ["Data.example".to_owned()];
        for host in [
            "127.0.0.1:8000",
            "[::1]:80",
            "localhost",
            "LOCALHOST:1",
            "data.example:8000",
            "10.1.2.3",
        ] {
            assert!(is_ours(host, &named), "{host}");
        }
        for host in ["evil.example", "127.0.0.1.evil.example", "localhost.evil.example", "", "a b"]
        {
            assert!(!is_ours(host, &named), "{host}");
        }
    }
}
