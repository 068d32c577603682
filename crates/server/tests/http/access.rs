//! Tokens and roles.

use chunkyard_server::access::{Role, Token};
use reqwest::{Method, StatusCode};
use serde_json::Value;

use crate::harness::Server;

fn closed() -> Server {
    let token = |token: &str, role| Token { token: token.to_owned(), role };
    let tokens =
        vec![token("reads", Role::Read), token("writes", Role::Write), token("all", Role::Admin)];
    Server::with(&[], |config| config.tokens = tokens)
}

async fn status(server: &Server, method: Method, path: &str, token: Option<&str>) -> StatusCode {
    let mut request = server.client.request(method, server.at(path));
    if let Some(token) = token {
        request = request.header("authorization", token);
    }
    request.send().await.unwrap().status()
}

#[tokio::test]
async fn methods_need_roles() {
    let server = closed();
    // Nothing is there: who may look is told so.
    let asked = [
        (Method::GET, "Bearer reads", 404),
        (Method::HEAD, "bearer reads", 404),
        (Method::POST, "Bearer reads", 403),
        (Method::PUT, "Bearer reads", 403),
        (Method::DELETE, "Bearer reads", 403),
        (Method::POST, "Bearer writes", 404),
        (Method::POST, "Bearer all", 404),
    ];
    for (method, token, expected) in asked {
        let found = status(&server, method.clone(), "/nothing", Some(token)).await;
        assert_eq!(found, expected, "{method} {token}");
    }
}

#[tokio::test]
async fn wrong_tokens_are_refused_everywhere_but_where_none_is_needed() {
    let server = closed();
    for token in [
        None,
        Some("reads"),
        Some("Basic reads"),
        Some("Bearer"),
        Some("Bearer read"),
        Some("Bearer readss"),
    ] {
        assert_eq!(status(&server, Method::GET, "/nothing", token).await, 401, "{token:?}");
        assert_eq!(status(&server, Method::GET, "/healthz", token).await, 200, "{token:?}");
    }
    let refused = server.get("/nothing").await;
    assert_eq!(refused.headers()["www-authenticate"], "Bearer");
    let body: Value = serde_json::from_slice(&refused.bytes().await.unwrap()).unwrap();
    assert!(body["error"].as_str().unwrap().contains("Bearer TOKEN"), "{body}");
}

#[tokio::test]
async fn without_tokens_every_caller_may_do_everything() {
    let place = tempfile::tempdir().unwrap();
    let server = Server::start(&[("empty", place.path())]);
    assert!(server.flight.starts_with("grpc://127.0.0.1:"));
    assert_eq!(status(&server, Method::DELETE, "/nothing", None).await, 404);
}
