//! Encryption of the connection, always by the same provider.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use async_nats::rustls::pki_types::pem::PemObject;
use async_nats::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use async_nats::rustls::{ClientConfig, RootCertStore, crypto};
use divvy_core::Invalid;

use crate::store::settings::Tls;

/// What a connection trusts and shows. Reads files.
pub(super) fn client_config(tls: &Tls) -> Result<ClientConfig, Invalid> {
    // Named, because a program in which two are built in has no default.
    let provider = Arc::new(crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("ring has ciphers for every protocol version");
    let builder = builder.with_root_certificates(trusted(tls)?);
    let (Some(cert_file), Some(key_file)) = (&tls.cert_file, &tls.key_file) else {
        return Ok(builder.with_no_client_auth());
    };
    let certificates = read_certificates("tls cert_file", cert_file)?;
    let key = read_key(key_file)?;
    builder
        .with_client_auth_cert(certificates, key)
        .map_err(|error| {
            let rule = format!("does not fit cert_file: {error}");
            Invalid::new("tls key_file", key_file.display(), rule)
        })
}

fn trusted(tls: &Tls) -> Result<RootCertStore, Invalid> {
    let mut roots = RootCertStore::empty();
    let Some(ca_file) = &tls.ca_file else {
        // None at all is no error here: the connection may not be encrypted,
        // and if it is, no server will be trusted.
        roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        return Ok(roots);
    };
    for certificate in read_certificates("tls ca_file", ca_file)? {
        roots.add(certificate).map_err(|error| {
            let rule = format!("holds a certificate that cannot be trusted: {error}");
            Invalid::new("tls ca_file", ca_file.display(), rule)
        })?;
    }
    Ok(roots)
}

fn read_certificates(
    field: &'static str,
    path: &Path,
) -> Result<Vec<CertificateDer<'static>>, Invalid> {
    let text = read(field, path)?;
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&text).collect();
    match found {
        Ok(certificates) if !certificates.is_empty() => Ok(certificates),
        Ok(_) | Err(_) => Err(Invalid::new(
            field,
            path.display(),
            "must hold certificates (PEM)",
        )),
    }
}

fn read_key(path: &Path) -> Result<PrivateKeyDer<'static>, Invalid> {
    let field = "tls key_file";
    let text = read(field, path)?;
    PrivateKeyDer::from_pem_slice(&text).map_err(|_error| {
        // What was found is a secret, perhaps a misplaced one.
        Invalid::new(field, path.display(), "must hold a private key (PEM)")
    })
}

fn read(field: &'static str, path: &Path) -> Result<Vec<u8>, Invalid> {
    fs::read(path).map_err(|error| Invalid::new(field, path.display(), error.to_string()))
}
