//! The document and the router agree.

use std::collections::BTreeSet;

use axum::body::Body;
use axum::http::{Request, header};
use tower::ServiceExt;

use super::*;
use crate::{Config, State};

/// The paths of the router. It has no list of them, but prints one.
fn paths() -> BTreeSet<String> {
    let printed = format!("{:?}", crate::http::routes());
    let paths = printed.split('"').skip(1).step_by(2);
    let paths = paths.filter(|text| text.starts_with('/') && !text.contains("__private__"));
    paths.map(str::to_owned).collect()
}

/// The methods that a path answers, but for HEAD; `None` if it answers all in one way, which is that it does not offer this.
async fn methods(path: &str) -> Option<BTreeSet<String>> {
    let router = crate::http::router(State::new(Config::default()).unwrap());
    let path = path.split('/').map(|part| if part.starts_with('{') { "x" } else { part });
    let path = path.collect::<Vec<_>>().join("/");
    let request = Request::builder().method("BREW").uri(path).body(Body::empty()).unwrap();
    let answer = router.oneshot(request).await.unwrap();
    let allowed = answer.headers().get(header::ALLOW)?.to_str().unwrap().to_owned();
    Some(allowed.split(',').filter(|method| *method != "HEAD").map(str::to_owned).collect())
}

#[tokio::test]
async fn every_route_is_described_and_every_description_is_of_a_route() {
    let found = paths();
    assert!(found.contains("/healthz"), "{found:?}");
    for path in &found {
        let described = all().filter(|endpoint| endpoint.path == path);
        let described: BTreeSet<String> =
            described.map(|endpoint| endpoint.method.to_string()).collect();
        let answered = methods(path).await.unwrap_or_default();
        assert_eq!(answered, described, "of {path} in openapi/endpoints.rs");
    }
    for endpoint in all() {
        assert!(found.contains(endpoint.path), "no route {}", endpoint.path);
    }
}

#[test]
fn ids_are_unique_and_schemas_are_there() {
    let document = document();
    let mut ids = BTreeSet::new();
    for endpoint in all() {
        assert!(ids.insert(id(&endpoint.method, endpoint.path)), "{endpoint:?}");
        let contents = endpoint.answers.iter().map(|(_, content)| *content);
        for content in contents.chain([endpoint.body]) {
            if let Content::Json(name) = content {
                assert!(document["components"]["schemas"][name].is_object(), "{name}");
            }
        }
    }
}
