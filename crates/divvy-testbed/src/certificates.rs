//! Certificates for servers and clients, good ones and bad ones.

use std::fs;
use std::path::{Path, PathBuf};

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose, IsCa,
    KeyPair, KeyUsagePurpose, date_time_ymd,
};
use tempfile::TempDir;

/// The names of every server: where the tests' servers listen.
const SERVER_NAMES: [&str; 2] = ["localhost", "127.0.0.1"];

/// Certificates that are made anew, as PEM files in a directory that is removed with this value.
#[derive(Debug)]
pub struct Certificates {
    _directory: TempDir,
    authority: PathBuf,
    other_authority: PathBuf,
    server: Identity,
    expired_server: Identity,
    client: Identity,
}

/// A certificate and its private key, as PEM files.
#[derive(Clone, Debug)]
pub struct Identity {
    /// The file of the certificate.
    pub certificate: PathBuf,
    /// The file of the private key.
    pub key: PathBuf,
}

impl Default for Certificates {
    fn default() -> Self {
        Self::new()
    }
}

impl Certificates {
    /// Makes new ones.
    pub fn new() -> Self {
        let directory = tempfile::Builder::new()
            .prefix("divvy-testbed-")
            .tempdir()
            .expect("a temporary directory can be made");
        let at = directory.path();
        let issuer = new_authority("testbed authority");
        let other = new_authority("other authority");
        let server_use = ExtendedKeyUsagePurpose::ServerAuth;
        let server = leaf("server", &SERVER_NAMES, server_use.clone());
        let mut expired = leaf("expired server", &SERVER_NAMES, server_use);
        expired.not_before = date_time_ymd(2020, 1, 1);
        expired.not_after = date_time_ymd(2020, 2, 1);
        let client = leaf("client", &["client"], ExtendedKeyUsagePurpose::ClientAuth);
        Self {
            authority: write(at, "authority.pem", &issuer.pem()),
            other_authority: write(at, "other-authority.pem", &other.pem()),
            server: sign(at, "server", &server, &issuer),
            expired_server: sign(at, "expired-server", &expired, &issuer),
            client: sign(at, "client", &client, &issuer),
            _directory: directory,
        }
    }

    /// The certificate of the authority that has signed all the others.
    pub fn authority(&self) -> &Path {
        &self.authority
    }

    /// The certificate of an authority that has signed none of the others.
    pub fn other_authority(&self) -> &Path {
        &self.other_authority
    }

    /// For a server on 127.0.0.1, also known as localhost.
    pub fn server(&self) -> &Identity {
        &self.server
    }

    /// As [`server`](Self::server), but it was valid only in January 2020.
    pub fn expired_server(&self) -> &Identity {
        &self.expired_server
    }

    /// For a client.
    pub fn client(&self) -> &Identity {
        &self.client
    }
}

fn new_authority(name: &str) -> CertifiedIssuer<'static, KeyPair> {
    let mut params = named(name, &[]);
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    CertifiedIssuer::self_signed(params, new_key()).expect("an authority signs itself")
}

fn leaf(name: &str, alternatives: &[&str], purpose: ExtendedKeyUsagePurpose) -> CertificateParams {
    let mut params = named(name, alternatives);
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    params.extended_key_usages = vec![purpose];
    params.use_authority_key_identifier_extension = true;
    params
}

fn named(name: &str, alternatives: &[&str]) -> CertificateParams {
    let alternatives: Vec<_> = alternatives.iter().map(ToString::to_string).collect();
    let mut params = CertificateParams::new(alternatives).expect("the names are valid");
    params.distinguished_name.push(DnType::CommonName, name);
    params
}

fn sign(
    at: &Path,
    file: &str,
    params: &CertificateParams,
    issuer: &CertifiedIssuer<'static, KeyPair>,
) -> Identity {
    let key = new_key();
    let certificate = params.signed_by(&key, issuer).expect("an authority signs");
    Identity {
        certificate: write(at, &format!("{file}.pem"), &certificate.pem()),
        key: write(at, &format!("{file}-key.pem"), &key.serialize_pem()),
    }
}

fn new_key() -> KeyPair {
    KeyPair::generate().expect("a key can be made")
}

fn write(at: &Path, name: &str, text: &str) -> PathBuf {
    let path = at.join(name);
    fs::write(&path, text).expect("a file can be written to our own directory");
    path
}
