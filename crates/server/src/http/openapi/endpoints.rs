//! All endpoints: one line each, sorted by room.

use axum::http::Method;
use serde_json::{Value, json};

use super::{Content, Endpoint};
use Content::{Events, Json, None, Page, Stored, Text};

/// The rooms: the beginning of their paths, their names, and what they are for.
pub(super) const ROOMS: [(&str, &str, &str); 4] = [
    ("/data", "views", "Whatever is served, as Zarr v3 and as volumes for Neuroglancer."),
    ("/neuroglancer", "viewer", "Neuroglancer itself."),
    ("/api", "dvid", "Segmentations by DVID's interface."),
    ("/jobs", "jobs", "Exports to workers."),
];

pub(super) const fn get(
    path: &'static str,
    about: &'static str,
    query: &'static [&'static str],
    answers: &'static [(u16, Content)],
) -> Endpoint {
    Endpoint { method: Method::GET, path, about, query, body: None, answers }
}

pub(super) const fn post(
    path: &'static str,
    about: &'static str,
    query: &'static [&'static str],
    body: Content,
    answers: &'static [(u16, Content)],
) -> Endpoint {
    Endpoint { method: Method::POST, path, about, query, body, answers }
}

const fn delete(
    path: &'static str,
    about: &'static str,
    answers: &'static [(u16, Content)],
) -> Endpoint {
    Endpoint { method: Method::DELETE, path, about, query: &[], body: None, answers }
}

/// Every endpoint.
pub(super) const ENDPOINTS: &[Endpoint] = &[
    get("/healthz", "Whether the server lives", &[], &[(200, Text)]),
    get("/metrics", "Counts, for Prometheus", &[], &[(200, Text)]),
    get("/openapi.json", "This document", &[], &[(200, Json("object"))]),
    get("/data", "What is served, and where", &[], &[(200, Json("object"))]),
    get(
        "/data/{place}/{look}/{*key}",
        "A document or a chunk of a place, as Zarr v3 or as a volume for Neuroglancer; ranges and conditions are answered",
        &[],
        &[(200, Stored), (206, Stored), (304, None)],
    ),
    get("/neuroglancer", "The viewer", &[], &[(200, Page), (307, None)]),
    get("/neuroglancer/", "The viewer", &[], &[(200, Page), (307, None)]),
    get("/neuroglancer/v/{token}", "The viewer", &[], &[(200, Page), (307, None)]),
    get("/neuroglancer/v/{token}/", "The page of the viewer", &[], &[(200, Page), (304, None)]),
    get(
        "/neuroglancer/v/{token}/{file}",
        "A file of the viewer",
        &[],
        &[(200, Stored), (304, None)],
    ),
    get(
        "/neuroglancer/events/{token}",
        "A stream that tells the viewer that its server lives",
        &[],
        &[(200, Events)],
    ),
    post(
        "/neuroglancer/state/{token}",
        "Takes the state of the viewer, and keeps nothing of it",
        &[],
        None,
        &[(200, Json("object"))],
    ),
    post(
        "/neuroglancer/action/{token}",
        "Takes what is done in the viewer, and does nothing",
        &[],
        None,
        &[(200, None)],
    ),
    post(
        "/neuroglancer/credentials/{token}",
        "Anonymous credentials, which the viewer asks for",
        &[],
        None,
        &[(200, Json("object"))],
    ),
    post(
        "/api/node/{uuid}/{data}/export",
        "Start an export to workers",
        &[],
        Json("export"),
        &[(202, Json("object"))],
    ),
    get(
        "/api/node/{uuid}/{data}/export/{job}",
        "What has become of an export",
        &[],
        &[(200, Json("object"))],
    ),
    delete("/api/node/{uuid}/{data}/export/{job}", "Cancel an export", &[(200, Json("object"))]),
    get("/jobs", "All exports", &[], &[(200, Json("object"))]),
    get("/jobs/{job}", "What has become of an export", &[], &[(200, Json("object"))]),
    delete("/jobs/{job}", "Cancel an export", &[(200, Json("object"))]),
];

/// The schema of a parameter.
pub(super) fn parameter(name: &str) -> Value {
    match name {
        "scale" => json!({ "type": "integer", "minimum": 0, "maximum": 63 }),
        "label" | "supervoxel" | "split" | "remain" => {
            json!({ "type": "integer", "minimum": 1, "maximum": u64::MAX })
        }
        "size" | "offset" | "at" => {
            json!({ "type": "string", "pattern": "^-?[0-9]{1,9}_-?[0-9]{1,9}_-?[0-9]{1,9}$" })
        }
        "axes" => json!({ "type": "string", "enum": ["0_1_2"] }),
        "look" => {
            json!({ "type": "string", "enum": ["zarr", "zarr-bodies", "zarr-supervoxels", "precomputed", "precomputed-supervoxels"] })
        }
        "supervoxels" | "nolookup" | "sizes" | "metadata-only" => json!({ "type": "boolean" }),
        "start" | "number" => json!({ "type": "integer", "minimum": 0, "maximum": u64::MAX }),
        _ => json!({ "type": "string", "minLength": 1 }),
    }
}

/// The sorts of JSON.
pub(super) fn schemas() -> Value {
    json!({
        "failure": {
            "type": "object",
            "required": ["error"],
            "properties": { "error": { "type": "string" } },
        },
        "object": { "type": "object" },
        "export": {
            "type": "object",
            "additionalProperties": false,
            "properties": {
                "key": { "type": ["string", "null"], "maxLength": 256 },
                "ids": { "type": "string", "enum": ["bodies", "supervoxels"] },
                "scales": { "type": ["integer", "null"], "minimum": 1, "maximum": 64 },
                "spec": { "type": ["object", "null"] },
                "factor": { "type": "array", "items": { "type": "integer", "minimum": 1 }, "minItems": 3, "maxItems": 3 },
                "codec": { "type": "string", "enum": ["keep", "zstd:1", "zstd:3", "zstd:19"] },
            },
        },
        "any": {},
        "labels": { "type": "array", "items": { "type": "integer", "minimum": 0, "maximum": u64::MAX } },
    })
}
