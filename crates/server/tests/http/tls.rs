//! Encrypted connections.

use std::path::{Path, PathBuf};

use chunkyard_server::config::Tls;
use chunkyard_server::{Config, Listeners, State};

use crate::harness::Server;

fn file(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/tls").join(name)
}

fn tls(certificate: &Path, key: &Path) -> Option<Tls> {
    let name = |path: &Path| path.to_str().unwrap().to_owned();
    Some(Tls { certificate: name(certificate), key: name(key) })
}

#[tokio::test]
async fn both_listeners_are_encrypted() {
    let (certificate, key) = (file("certificate.pem"), file("key.pem"));
    let server = Server::with(&[], |config| config.tls = tls(&certificate, &key));
    assert!(server.url.starts_with("https://") && server.flight.starts_with("grpc+tls://"));
    let trusted = std::fs::read(certificate).unwrap();
    let trusted = reqwest::Certificate::from_pem(&trusted).unwrap();
    let builder = reqwest::Client::builder().no_proxy();
    let client = builder.tls_certs_only([trusted]).build().unwrap();
    let answer = client.get(server.at("/healthz")).send().await.unwrap();
    assert_eq!((answer.status().as_u16(), answer.version()), (200, reqwest::Version::HTTP_11));
    // The client of the harness does not know the certificate.
    server.client.get(server.at("/healthz")).send().await.unwrap_err();
    let flight = server.flight.replace("grpc+tls", "https");
    let grpc = |url: &str| {
        let call = client.post(format!("{url}/arrow.flight.protocol.FlightService/Unknown"));
        call.header("content-type", "application/grpc").version(reqwest::Version::HTTP_2).send()
    };
    let answer = grpc(&flight).await.unwrap();
    assert_eq!(answer.version(), reqwest::Version::HTTP_2);
    assert_eq!(answer.headers()["grpc-status"], "12");
    // Without TLS nothing is said.
    let plain = server.url.replace("https", "http");
    client.get(plain).send().await.unwrap_err();
}

#[tokio::test]
async fn unusable_files_are_refused_before_anything_listens() {
    let scratch = tempfile::tempdir().unwrap();
    let (certificate, key) = (file("certificate.pem"), file("key.pem"));
    let damaged = scratch.path().join("damaged.pem");
    std::fs::write(&damaged, "-----BEGIN CERTIFICATE-----\n!!\n-----END CERTIFICATE-----\n")
        .unwrap();
    let garbage = scratch.path().join("garbage.pem");
    std::fs::write(&garbage, "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n")
        .unwrap();
    let absent = scratch.path().join("absent.pem");
    for (certificate, key, expected) in [
        (&absent, &key, "tls.certificate"),
        (&certificate, &absent, "tls.key"),
        (&key, &key, "holds no certificate in PEM"),
        (&certificate, &certificate, "holds no private key in PEM"),
        (&damaged, &key, "is damaged"),
        (&garbage, &key, "cannot be used"),
    ] {
        let mut config = Config { tls: tls(certificate, key), ..Config::default() };
        config.http.set_port(0);
        config.flight.set_port(0);
        let error = Listeners::bind(&State::new(config).unwrap()).await.unwrap_err();
        assert!(error.to_string().contains(expected), "{expected}: {error}");
    }
}
