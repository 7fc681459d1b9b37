//! Encryption, as the settings say.

use std::path::Path;
use std::sync::Arc;

use divvy_core::Invalid;
use divvy_core::store::StoreError;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

use crate::store::settings::Tls;

/// Whom to trust, and who we are. Files are read here, once.
pub(super) fn client_config(tls: &Tls) -> Result<Arc<ClientConfig>, StoreError> {
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|error| StoreError::unfit(format_args!("tls cannot be set up: {error}")))?
        .with_root_certificates(roots(tls)?);
    let (Some(certificate), Some(key)) = (&tls.cert_file, &tls.key_file) else {
        return Ok(Arc::new(config.with_no_client_auth()));
    };
    let chain = certificates("tls.cert_file", certificate)?;
    let key_rule = "must hold a private key that can be read, as PEM";
    let private = PrivateKeyDer::from_pem_file(key)
        .map_err(|_error| Invalid::new("tls.key_file", key.display(), key_rule))?;
    let config = config
        .with_client_auth_cert(chain, private)
        .map_err(|_error| {
            let rule = "must be the private key of the certificate in tls.cert_file";
            Invalid::new("tls.key_file", key.display(), rule)
        })?;
    Ok(Arc::new(config))
}

fn roots(tls: &Tls) -> Result<RootCertStore, StoreError> {
    let mut roots = RootCertStore::empty();
    if let Some(file) = &tls.ca_file {
        for certificate in certificates("tls.ca_file", file)? {
            roots.add(certificate).map_err(|_error| {
                let rule = "holds a certificate that cannot be used";
                Invalid::new("tls.ca_file", file.display(), rule)
            })?;
        }
        return Ok(roots);
    }
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    if roots.is_empty() {
        return Err(StoreError::unfit(
            "tls: this system has no trusted certificates, name some by tls.ca_file",
        ));
    }
    Ok(roots)
}

/// The certificates of a file. What is in it is not repeated: it may be the
/// wrong one.
fn certificates(
    field: &'static str,
    file: &Path,
) -> Result<Vec<CertificateDer<'static>>, StoreError> {
    let refused = |rule: &str| StoreError::from(Invalid::new(field, file.display(), rule));
    let pem = std::fs::read(file).map_err(|error| refused(&error.to_string()))?;
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&pem).collect();
    match found {
        Ok(found) if !found.is_empty() => Ok(found),
        _ => Err(refused("must hold certificates, as PEM")),
    }
}
