//! A key pair in the NATS notation.

use data_encoding::BASE64URL_NOPAD;
use nkeys::KeyPair;
use serde_json::Value;

/// The key pair of a NATS user, made anew.
#[derive(Debug)]
pub struct Nkey {
    pair: KeyPair,
}

impl Default for Nkey {
    fn default() -> Self {
        Self::new()
    }
}

impl Nkey {
    /// Makes a new one.
    pub fn new() -> Self {
        Self {
            pair: KeyPair::new_user(),
        }
    }

    /// The public part, `U…`, for [`NatsOptions::nkey`](crate::NatsOptions::nkey).
    pub fn public(&self) -> String {
        self.pair.public_key()
    }

    /// The secret part, `SU…`, for the client.
    pub fn seed(&self) -> String {
        self.pair.seed().expect("it was made with its seed")
    }

    /// The signature of what the server's greeting calls `nonce`, as a client sends it.
    pub fn sign(&self, nonce: &str) -> String {
        signature(&self.pair, nonce)
    }
}

/// A JSON web token in which the holder of `issuer` says `claims`.
pub(crate) fn token(issuer: &KeyPair, claims: &Value) -> String {
    let header = BASE64URL_NOPAD.encode(br#"{"typ":"JWT","alg":"ed25519-nkey"}"#);
    let claims = BASE64URL_NOPAD.encode(claims.to_string().as_bytes());
    let said = format!("{header}.{claims}");
    let signature = signature(issuer, &said);
    format!("{said}.{signature}")
}

fn signature(pair: &KeyPair, text: &str) -> String {
    let signed = pair.sign(text.as_bytes());
    BASE64URL_NOPAD.encode(&signed.expect("it was made with its seed"))
}
