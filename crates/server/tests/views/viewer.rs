//! Neuroglancer's own files.

use reqwest::StatusCode;

use crate::harness::Server;

#[tokio::test]
async fn the_client_is_served_as_it_is_and_nothing_beside_it() {
    let yard = tempfile::tempdir().unwrap();
    let client = yard.path().join("client");
    std::fs::create_dir(&client).unwrap();
    std::fs::write(client.join("index.html"), "<!doctype html>").unwrap();
    std::fs::write(client.join("a.1f.wasm"), [0, 97, 115, 109]).unwrap();
    std::fs::write(client.join("notes.pem"), "secret").unwrap();
    std::fs::write(yard.path().join("other.js"), "secret").unwrap();
    let server = Server::with(&[], |config| {
        config.neuroglancer = Some(client.to_str().unwrap().to_owned());
    });
    let page = server.get("/neuroglancer/v/1/").await;
    assert_eq!(page.headers()["content-type"], "text/html; charset=utf-8");
    assert_eq!(page.text().await.unwrap(), "<!doctype html>");
    assert!(server.get("/neuroglancer").await.url().path().ends_with("/neuroglancer/v/1/"));
    let wasm = server.get("/neuroglancer/v/1/a.1f.wasm").await;
    assert_eq!(wasm.headers()["content-type"], "application/wasm");
    for file in ["notes.pem", "missing.js", "..%2fother.js", "%2e%2e%2fother.js", ".js"] {
        let answer = server.get(&format!("/neuroglancer/v/1/{file}")).await;
        assert_eq!(answer.status(), StatusCode::NOT_FOUND, "{file}");
        assert!(!answer.text().await.unwrap().contains("secret"));
    }
    let state = server.client.post(server.at("/neuroglancer/state/1")).body("{}").send();
    assert!(state.await.unwrap().text().await.unwrap().contains("\"g\""));
    let credentials = server.client.post(server.at("/neuroglancer/credentials/1")).body("{}");
    let credentials = credentials.send().await.unwrap().text().await.unwrap();
    assert!(credentials.contains("credentials"), "{credentials}");
}

#[tokio::test]
async fn the_client_hears_that_its_server_lives_until_it_stops() {
    let server = Server::start(&[]);
    let mut events = server.get("/neuroglancer/events/1?c=a&gc=").await;
    assert_eq!(events.headers()["content-type"], "text/event-stream");
    assert_eq!(events.chunk().await.unwrap().unwrap(), ": keep\n\n");
    drop(server);
    assert_eq!(events.chunk().await.unwrap_or_default(), None);
}

#[tokio::test]
async fn without_a_directory_there_is_no_viewer() {
    let server = Server::start(&[]);
    let answer = server.get("/neuroglancer/v/1/").await;
    assert_eq!(answer.status(), StatusCode::NOT_FOUND);
    assert!(answer.text().await.unwrap().contains("neuroglancer"));
}
