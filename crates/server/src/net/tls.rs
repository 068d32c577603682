//! TLS: the certificate and its key, from PEM files.

use std::path::Path;
use std::sync::Arc;

use chunkyard_engine::{Error, Result};
use rustls::ServerConfig;
use rustls::crypto::ring;
use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

use super::Protocol;
use crate::config::Tls;

/// What a listener shakes hands with.
pub(crate) fn encryption(tls: &Tls, protocol: Protocol) -> Result<Arc<ServerConfig>> {
    let Tls { certificate, key } = tls;
    let chain = CertificateDer::pem_file_iter(Path::new(certificate));
    let chain = chain.and_then(Iterator::collect::<Result<Vec<_>, _>>);
    let chain = chain.map_err(|error| refused("tls.certificate", certificate, error))?;
    if chain.is_empty() {
        return Err(refused("tls.certificate", certificate, pem::Error::NoItemsFound));
    }
    let secret = PrivateKeyDer::from_pem_file(Path::new(key));
    let secret = secret.map_err(|error| refused("tls.key", key, error))?;
    let builder = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()));
    let unusable = |error: rustls::Error| {
        let what =
            format!("tls.certificate {certificate} and tls.key {key} cannot be used: {error}");
        Error::invalid(what)
    };
    let builder = builder.with_safe_default_protocol_versions().map_err(unusable)?;
    let mut config =
        builder.with_no_client_auth().with_single_cert(chain, secret).map_err(unusable)?;
    let spoken: &[u8] = match protocol {
        Protocol::Http => b"http/1.1",
        Protocol::Grpc => b"h2",
    };
    config.alpn_protocols = vec![spoken.to_vec()];
    Ok(Arc::new(config))
}

fn refused(setting: &str, file: &str, error: pem::Error) -> Error {
    match error {
        pem::Error::Io(error) => Error::store("read", format!("{file} ({setting})"), error),
        pem::Error::NoItemsFound => {
            let what = if setting == "tls.key" { "private key" } else { "certificate" };
            Error::invalid(format!("{setting}: {file} holds no {what} in PEM"))
        }
        error => Error::invalid(format!("{setting}: {file} is damaged: {error}")),
    }
}
