//! What all requests have in common, on routes of the tests.

use axum::Json;
use axum::body::Body;
use axum::http::{Method, Request, StatusCode};
use axum::response::Response;
use axum::routing::post;
use bytes::Bytes;
use futures::StreamExt;
use http_body_util::BodyExt;
use serde_json::Value;
use tower::ServiceExt;

use super::*;
use crate::Config;
use crate::access::{Role, Token};
use crate::metrics::Gauge;

#[derive(Debug, serde::Deserialize)]
struct Wanted {
    count: u64,
}

async fn defect() -> &'static str {
    panic!("a defect")
}

/// Routes that do what handlers should not.
fn server(change: impl FnOnce(&mut Config)) -> (Router, State) {
    let mut config = Config::default();
    change(&mut config);
    let state = State::new(config).unwrap();
    let routes = Router::new()
        .route("/healthz", get(async || "ok\n"))
        .route("/panic", get(defect))
        .route("/never", get(std::future::pending::<()>))
        .route("/take", post(async |body: Bytes| body.len().to_string()))
        .route("/json", post(async |Json(wanted): Json<Wanted>| wanted.count.to_string()))
        .route("/whole", get(async || vec![7_u8; 1 << 20]))
        .route("/text", get(async || "word ".repeat(10_000)))
        .fallback(nothing);
    (common(routes, state.clone()), state)
}

fn request(method: Method, path: &str) -> axum::http::request::Builder {
    Request::builder().method(method).uri(path).header("host", "localhost")
}

async fn ask(router: &Router, request: Request<Body>) -> Response {
    router.clone().oneshot(request).await.unwrap()
}

/// The status and the reason of a failure.
async fn failure(answer: Response) -> (u16, String) {
    let status = answer.status().as_u16();
    assert_eq!(answer.headers()["content-type"], "application/json");
    let body = answer.into_body().collect().await.unwrap().to_bytes();
    let body: Value = serde_json::from_slice(&body).unwrap();
    (status, body["error"].as_str().unwrap().to_owned())
}

fn get_of(path: &str) -> Request<Body> {
    request(Method::GET, path).body(Body::empty()).unwrap()
}

#[tokio::test]
async fn a_panic_is_one_failed_request() {
    let (router, state) = server(|_| ());
    for _ in 0..3 {
        let (status, reason) = failure(ask(&router, get_of("/panic")).await).await;
        assert_eq!(status, 500);
        assert!(!reason.contains("a defect\""), "{reason}");
    }
    assert_eq!(ask(&router, get_of("/healthz")).await.status(), StatusCode::OK);
    assert_eq!(state.metrics().now(Gauge::Requests), 0);
    let text = state.metrics().text(&[]);
    let counted = "chunkyard_http_requests_total{method=\"GET\",route=\"/panic\",status=\"500\"} 3";
    assert!(text.contains(counted), "{text}");
}

#[tokio::test]
async fn errors_of_the_framework_are_json_too() {
    let (router, _) = server(|_| ());
    let (status, reason) = failure(ask(&router, get_of("/nothing")).await).await;
    assert_eq!((status, reason.as_str()), (404, "there is nothing at /nothing"));
    let wrong = request(Method::PUT, "/take").body(Body::empty()).unwrap();
    let answer = ask(&router, wrong).await;
    assert_eq!(answer.headers()["allow"], "POST");
    let (status, reason) = failure(answer).await;
    assert_eq!((status, reason.as_str()), (405, "/take does not answer PUT"));
    let json = |body: &'static str| {
        let request = request(Method::POST, "/json").header("content-type", "application/json");
        request.body(Body::from(body)).unwrap()
    };
    assert_eq!(failure(ask(&router, json("{\"count\": 1")).await).await.0, 400);
    assert_eq!(failure(ask(&router, json("{\"count\": \"x\"}")).await).await.0, 400);
    assert_eq!(failure(ask(&router, json("")).await).await.0, 400);
    assert_eq!(ask(&router, json("{\"count\": 1}")).await.status(), 200);
}

#[tokio::test]
async fn bodies_have_a_bound_whether_they_tell_their_size_or_not() {
    let (router, _) = server(|config| config.limits.body_bytes_max = 10);
    let take = |body| request(Method::POST, "/take").body(body).unwrap();
    assert_eq!(ask(&router, take(Body::from("0123456789"))).await.status(), 200);
    let (status, reason) = failure(ask(&router, take(Body::from("0123456789a"))).await).await;
    assert_eq!((status, reason.as_str()), (413, "the body has 11 bytes, and may have 10"));
    let pieces =
        futures::stream::repeat(Bytes::from_static(b"0123")).take(1000).map(Ok::<_, axum::Error>);
    assert_eq!(failure(ask(&router, take(Body::from_stream(pieces))).await).await.0, 413);
}

#[tokio::test]
async fn requests_have_a_time_until_their_answer_begins() {
    let (router, state) = server(|config| config.limits.request_seconds = 1);
    let (status, reason) = failure(ask(&router, get_of("/never")).await).await;
    assert_eq!((status, reason.as_str()), (504, "the answer did not begin within 1 s"));
    let slow = Body::from_stream(futures::stream::pending::<Result<Bytes, axum::Error>>());
    let slow = request(Method::POST, "/take").body(slow).unwrap();
    let (status, reason) = failure(ask(&router, slow).await).await;
    assert_eq!((status, reason.as_str()), (408, "the body did not come within 1 s"));
    assert_eq!(state.metrics().now(Gauge::Requests), 0);
}

#[tokio::test]
async fn requests_above_the_limit_are_told_to_come_again() {
    let (router, state) = server(|config| config.limits.requests = 1);
    // Its place is taken until the body has been sent.
    let first = ask(&router, get_of("/whole")).await;
    let second = ask(&router, get_of("/whole")).await;
    assert_eq!(second.headers()["retry-after"], "1");
    assert_eq!(failure(second).await.0, 503);
    assert_eq!(ask(&router, get_of("/healthz")).await.status(), 200);
    drop(first);
    assert_eq!(ask(&router, get_of("/whole")).await.status(), 200);
    assert_eq!(state.metrics().now(Gauge::Requests), 0);
}

#[tokio::test]
async fn answers_that_nobody_takes_bound_further_requests() {
    let (router, state) = server(|config| config.limits.waiting_bytes_max = 1 << 20);
    let first = ask(&router, get_of("/whole")).await;
    assert_eq!(state.metrics().now(Gauge::Waiting), 1 << 20);
    let second = ask(&router, get_of("/whole")).await;
    assert_eq!(failure(ask(&router, get_of("/whole")).await).await.0, 503);
    drop((first, second));
    assert_eq!(state.metrics().now(Gauge::Waiting), 0);
    assert_eq!(ask(&router, get_of("/whole")).await.status(), 200);
}

#[tokio::test]
async fn text_is_compressed_for_those_who_ask_and_chunks_are_not() {
    let (router, _) = server(|_| ());
    let asking =
        |path| request(Method::GET, path).header("accept-encoding", "gzip").body(Body::empty());
    let text = ask(&router, asking("/text").unwrap()).await;
    assert_eq!(text.headers()["content-encoding"], "gzip");
    let bytes = text.into_body().collect().await.unwrap().to_bytes();
    assert!(bytes.len() < 1000, "{}", bytes.len());
    let chunk = ask(&router, asking("/whole").unwrap()).await;
    assert!(!chunk.headers().contains_key("content-encoding"));
    assert_eq!(chunk.headers()["content-length"], "1048576");
}

/// A request of a page.
fn of_page(method: Method, origin: &str, asks: Option<&str>) -> Request<Body> {
    let mut request = request(method, "/take").header("origin", origin);
    if let Some(asks) = asks {
        request = request.header("access-control-request-method", asks);
    }
    request.body(Body::empty()).unwrap()
}

const PAGE: &str = "https://viewer.example";

#[tokio::test]
async fn any_page_may_read_and_none_may_change_what_needs_no_token() {
    let (router, _) = server(|_| ());
    let asked = ask(&router, of_page(Method::OPTIONS, PAGE, Some("GET"))).await;
    assert_eq!(
        (asked.status().as_u16(), &asked.headers()["access-control-allow-origin"]),
        (204, &"*".parse().unwrap())
    );
    for header in ["range", "if-none-match", "authorization"] {
        let allowed = asked.headers()["access-control-allow-headers"].to_str().unwrap();
        assert!(allowed.contains(header), "{allowed}");
    }
    let read = ask(&router, of_page(Method::GET, PAGE, None)).await;
    assert_eq!(read.headers()["access-control-allow-origin"], "*");
    let exposed = read.headers()["access-control-expose-headers"].to_str().unwrap();
    assert!(exposed.contains("etag") && exposed.contains("content-range"), "{exposed}");
    assert!(!read.headers().contains_key("access-control-allow-credentials"));
    assert_eq!(ask(&router, of_page(Method::OPTIONS, PAGE, Some("POST"))).await.status(), 403);
    assert_eq!(ask(&router, of_page(Method::POST, PAGE, None)).await.status(), 403);
    assert_eq!(ask(&router, of_page(Method::POST, "null", None)).await.status(), 403);
    // A page of this server itself, and a program.
    assert_eq!(ask(&router, of_page(Method::POST, "http://localhost", None)).await.status(), 200);
    let program = request(Method::POST, "/take").body(Body::empty()).unwrap();
    assert_eq!(ask(&router, program).await.status(), 200);
}

#[tokio::test]
async fn a_named_page_may_change_things_and_others_may_not_even_read() {
    let (router, _) = server(|config| config.origins = vec![PAGE.to_owned()]);
    let asked = ask(&router, of_page(Method::OPTIONS, PAGE, Some("DELETE"))).await;
    assert_eq!(asked.headers()["access-control-allow-origin"], PAGE);
    assert_eq!(asked.headers()["vary"], "origin");
    assert_eq!(ask(&router, of_page(Method::POST, PAGE, None)).await.status(), 200);
    let other = ask(&router, of_page(Method::GET, "https://other.example", None)).await;
    assert!(!other.headers().contains_key("access-control-allow-origin"));
}

#[tokio::test]
async fn with_tokens_any_page_that_has_one_may_use_it() {
    let tokens = vec![Token { token: "secret".to_owned(), role: Role::Write }];
    let (router, _) = server(|config| config.tokens = tokens);
    // A browser asks without the token.
    assert_eq!(ask(&router, of_page(Method::OPTIONS, PAGE, Some("POST"))).await.status(), 204);
    assert_eq!(ask(&router, of_page(Method::POST, PAGE, None)).await.status(), 401);
    let mut with = of_page(Method::POST, PAGE, None);
    with.headers_mut().insert("authorization", "Bearer secret".parse().unwrap());
    assert_eq!(ask(&router, with).await.status(), 200);
}

#[tokio::test]
async fn a_name_that_leads_here_is_no_name_of_this_server() {
    let rebound = || {
        Request::builder()
            .uri("/healthz")
            .header("host", "evil.example:8000")
            .body(Body::empty())
            .unwrap()
    };
    let (router, _) = server(|_| ());
    assert_eq!(failure(ask(&router, rebound()).await).await.0, 421);
    let (router, _) = server(|config| config.hosts = vec!["evil.example".to_owned()]);
    assert_eq!(ask(&router, rebound()).await.status(), 200);
    let tokens = vec![Token { token: "secret".to_owned(), role: Role::Read }];
    let (router, _) = server(|config| config.tokens = tokens);
    assert_eq!(ask(&router, rebound()).await.status(), 200);
}
