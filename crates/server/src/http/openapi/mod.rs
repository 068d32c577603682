//! The description of all endpoints as OpenAPI 3.1, made from a table.
//!
//! A test compares the table with the router: neither has a route that the other lacks.

mod dvid;
mod endpoints;
#[cfg(test)]
mod tests;

use axum::http::Method;
use axum::response::{IntoResponse, Response};
use serde_json::{Map, Value, json};

use self::endpoints::{ENDPOINTS, ROOMS};
use super::roles::role;
use crate::access::Role;

/// An endpoint, as the table has it.
#[derive(Debug)]
struct Endpoint {
    method: Method,
    /// The path as the router has it.
    path: &'static str,
    /// What it is for.
    about: &'static str,
    /// The parameters of its query, by name.
    query: &'static [&'static str],
    /// What its body is.
    body: Content,
    /// What it answers: the status, and the body.
    answers: &'static [(u16, Content)],
}

/// What a body is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Content {
    /// There is none.
    None,
    /// JSON of a sort that [`endpoints`] names.
    Json(&'static str),
    /// Bytes, whose framing the documentation of the room has.
    Bytes,
    /// JSON, text or bytes, as the query says.
    Mixed,
    /// A page for browsers.
    Page,
    /// Text.
    Text,
    /// Whatever is stored under the key: a document or a chunk.
    Stored,
    /// A stream of events.
    Events,
}

/// Every endpoint of every room.
fn all() -> impl Iterator<Item = &'static Endpoint> {
    ENDPOINTS.iter().chain(dvid::ENDPOINTS)
}

/// The document.
pub(super) async fn serve() -> Response {
    axum::Json(document()).into_response()
}

fn document() -> Value {
    let mut paths = Map::new();
    for endpoint in all() {
        let path = endpoint.path.replace("{*", "{");
        let item = paths.entry(path).or_insert_with(|| json!({}));
        item[endpoint.method.as_str().to_lowercase()] = operation(endpoint);
    }
    let mut document = json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Chunkyard",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "Chunked arrays of every format, segmentations by DVID's interface, and exports to workers.",
            "license": { "name": "Apache-2.0 OR MIT", "identifier": "Apache-2.0 OR MIT" },
        },
        "tags": ROOMS.map(|(_, name, about)| json!({ "name": name, "description": about })),
        "paths": paths,
    });
    document["components"] = json!({
        "securitySchemes": { "token": { "type": "http", "scheme": "bearer" } },
        "schemas": endpoints::schemas(),
    });
    document
}

fn operation(endpoint: &Endpoint) -> Value {
    let Endpoint { method, path, about, query, body, answers } = endpoint;
    let named = path.split('/').filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'));
    let in_path = named.map(|name| {
        let name = name.trim_start_matches('*');
        json!({ "name": name, "in": "path", "required": true, "schema": endpoints::parameter(name) })
    });
    let in_query = query.iter().map(|name| {
        json!({ "name": name, "in": "query", "required": false, "schema": endpoints::parameter(name) })
    });
    let parameters: Vec<Value> = in_path.chain(in_query).collect();
    let mut responses: Map<String, Value> = Map::new();
    for (status, content) in *answers {
        let about = axum::http::StatusCode::from_u16(*status).ok();
        let about = about.and_then(|status| status.canonical_reason()).unwrap_or("An answer");
        responses.insert(status.to_string(), described(about, *content));
    }
    for range in ["4XX", "5XX"] {
        let about = "What is wrong, for people.";
        responses.insert(range.to_owned(), described(about, Content::Json("failure")));
    }
    let room = ROOMS.iter().find(|(prefix, ..)| path.starts_with(prefix));
    let mut operation = json!({
        "operationId": id(method, path),
        "summary": about,
        "tags": [room.map_or("server", |(_, name, _)| name)],
        "parameters": parameters,
        "responses": responses,
    });
    if *body != Content::None {
        operation["requestBody"] = json!({ "required": true, "content": content(*body) });
    }
    if let Some(role) = role(Some(path), method) {
        let name = match role {
            Role::Read => "read",
            Role::Write => "write",
            Role::Admin => "admin",
        };
        operation["description"] =
            json!(format!("Needs the role `{name}`, where tokens are configured."));
        operation["security"] = json!([{}, { "token": [] }]);
    }
    operation
}

/// A name that is unique: the method and the words of the path.
fn id(method: &Method, path: &str) -> String {
    let words = path.split(|char: char| !char.is_ascii_alphanumeric());
    let words = words.filter(|word| !word.is_empty());
    // A path with a slash at its end is another one.
    let end = (path.len() > 1 && path.ends_with('/')).then_some("slash");
    words.chain(end).fold(method.as_str().to_lowercase(), |id, word| format!("{id}_{word}"))
}

fn described(about: &str, of: Content) -> Value {
    match of {
        Content::None => json!({ "description": about }),
        of => json!({ "description": about, "content": content(of) }),
    }
}

fn content(of: Content) -> Value {
    match of {
        Content::None => json!({}),
        Content::Json(name) => {
            json!({ "application/json": { "schema": { "$ref": format!("#/components/schemas/{name}") } } })
        }
        Content::Bytes => json!({ "application/octet-stream": {} }),
        Content::Mixed => {
            json!({ "application/json": {}, "text/plain": {}, "application/octet-stream": {} })
        }
        Content::Page => json!({ "text/html": { "schema": { "type": "string" } } }),
        Content::Text => json!({ "text/plain": { "schema": { "type": "string" } } }),
        Content::Stored => {
            json!({ "application/json": {}, "application/octet-stream": {}, "*/*": {} })
        }
        Content::Events => json!({ "text/event-stream": {} }),
    }
}
