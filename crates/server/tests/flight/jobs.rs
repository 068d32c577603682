//! Exports over HTTP.

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use super::support::{Server, Sink, brain, labelmap, spec, work};

async fn ask(server: &Server, method: Method, path: &str, body: &str) -> (StatusCode, Value) {
    // `reqwest` asks the process for its provider; the second test finds that of the first.
    drop(rustls::crypto::ring::default_provider().install_default());
    let client = reqwest::Client::builder().no_proxy().build().unwrap();
    let url = format!("{}{path}", server.http);
    let answer = client.request(method, url).body(body.to_owned()).send().await.unwrap();
    let status = answer.status();
    let text = answer.text().await.unwrap();
    (status, serde_json::from_str(&text).unwrap_or(Value::String(text)))
}

#[tokio::test]
async fn a_job_started_by_dvids_interface_is_worked_on_and_watched() {
    let place = tempfile::tempdir().unwrap();
    let snapshot = brain(&place.path().join("brain")).await;
    let server = Server::start(&place.path().join("brain"), &place.path().join("jobs"));
    let body = json!({ "key": "a", "spec": spec() }).to_string();
    let (status, started) = ask(&server, Method::POST, "/api/node/main/seg/export", &body).await;
    assert_eq!(status, StatusCode::ACCEPTED, "{started}");
    let job = started["job"].as_str().unwrap();
    assert_eq!(started["url"], format!("/jobs/{job}"));
    let (status, again) =
        ask(&server, Method::POST, &format!("/api/node/{snapshot}/seg/export"), &body).await;
    assert_eq!((status, &again["created"]), (StatusCode::ACCEPTED, &json!(false)));
    let mut client = server.client().await;
    let mut sink = Sink::default();
    work(&mut client, "w", &started["job"], &mut sink).await;
    sink.check(&labelmap(&place.path().join("brain"), None).await).await;
    for path in [format!("/jobs/{job}"), format!("/api/node/main/seg/export/{job}")] {
        let (status, told) = ask(&server, Method::GET, &path, "").await;
        assert_eq!((status, &told["state"]), (StatusCode::OK, &json!("over")), "{told}");
        assert_eq!(told["done"], started["tasks"]);
        let (status, told) = ask(&server, Method::DELETE, &path, "").await;
        assert_eq!((status, told), (StatusCode::OK, json!({ "cancelled": false })));
    }
    // Without a body: a fresh job of the whole labelmap.
    let (status, fresh) = ask(&server, Method::POST, "/api/node/main/seg/export", "").await;
    assert_eq!(status, StatusCode::ACCEPTED, "{fresh}");
    let path = format!("/api/node/main/seg/export/{}", fresh["job"].as_str().unwrap());
    let (_, cancelled) = ask(&server, Method::DELETE, &path, "").await;
    assert_eq!(cancelled, json!({ "cancelled": true }));
    let (_, listed) = ask(&server, Method::GET, "/jobs", "").await;
    let states: Vec<&str> = listed["jobs"]
        .as_array()
        .unwrap()
        .iter()
        .map(|job| job["state"].as_str().unwrap())
        .collect();
    assert_eq!(states, ["over", "cancelled"]);
}

#[tokio::test]
async fn requests_that_make_no_sense_have_the_right_status() {
    let place = tempfile::tempdir().unwrap();
    brain(&place.path().join("brain")).await;
    let server = Server::start(&place.path().join("brain"), &place.path().join("jobs"));
    let zeros = "0".repeat(32);
    for (method, path, body, expected) in [
        (Method::POST, "/api/node/main/seg/export", "{", 400),
        (Method::POST, "/api/node/main/seg/export", "[1]", 400),
        (Method::POST, "/api/node/main/seg/export", r#"{"source": "brain"}"#, 400),
        (Method::POST, "/api/node/main/seg/export", r#"{"codec": "zstd:0"}"#, 400),
        (Method::POST, "/api/node/nothing/seg/export", "", 404),
        (Method::POST, "/api/node/main/other/export", "", 404),
        (Method::POST, "/api/node/..%2f..%2f/seg/export", "", 404),
        (Method::GET, "/api/node/main/seg/export", "", 405),
        (Method::GET, "/jobs/x", "", 404),
        (Method::GET, "/jobs/..%2f..%2fbrain", "", 404),
        (Method::DELETE, &format!("/jobs/{zeros}"), "", 404),
        (Method::GET, &format!("/api/node/main/seg/export/{zeros}"), "", 404),
        (Method::POST, "/jobs", "", 405),
    ] {
        let (status, answer) = ask(&server, method.clone(), path, body).await;
        assert_eq!(status, expected, "{method} {path} {body}: {answer}");
    }
    let without = Server::with(&place.path().join("brain"), place.path(), |config| {
        config.jobs = None;
    });
    let (status, answer) = ask(&without, Method::POST, "/api/node/main/seg/export", "").await;
    assert_eq!(status, StatusCode::NOT_IMPLEMENTED);
    assert!(answer["error"].as_str().unwrap().contains("`jobs`"), "{answer}");
}
