//! Signing what is sent, so that whoever gets it knows who sent it and when.

use std::fmt;
use std::time::{SystemTime, UNIX_EPOCH};

use ring::hmac;

/// The header that has the signature.
pub(super) const HEADER: &str = "divvy-signature";

pub(super) struct Signer(hmac::Key);

impl Signer {
    pub(super) fn new(secret: &[u8]) -> Self {
        Self(hmac::Key::new(hmac::HMAC_SHA256, secret))
    }

    /// The value of the header for a body that is sent now.
    pub(super) fn sign(&self, body: &str) -> String {
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        self.sign_at(now.map_or(0, |now| now.as_secs()), body)
    }

    fn sign_at(&self, seconds: u64, body: &str) -> String {
        let tag = hmac::sign(&self.0, format!("{seconds}.{body}").as_bytes());
        let digits: String = tag
            .as_ref()
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect();
        format!("t={seconds},v1={digits}")
    }
}

impl fmt::Debug for Signer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// By `printf '1700000000.{"event":"start"}' | openssl dgst -sha256 -hmac
    /// canary-secret-of-tests`.
    const SIGNED: &str = "e37077a549f7d32a0e0a97251fb1112acf7317e908aec743ce9c4f29825c0cf7";

    #[test]
    fn a_signature_is_what_openssl_makes_of_time_and_body() {
        let signer = Signer::new(b"canary-secret-of-tests");
        let signed = signer.sign_at(1_700_000_000, r#"{"event":"start"}"#);
        assert_eq!(signed, format!("t=1700000000,v1={SIGNED}"));
        assert_eq!(format!("{signer:?}"), "***");
    }
}
