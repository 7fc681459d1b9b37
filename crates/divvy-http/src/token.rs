//! A secret that whoever asks has to know.

use std::fmt;

use ring::hmac;
use ring::rand::SystemRandom;

/// A token that can be compared with others, in a time that says nothing
/// about it.
#[derive(Clone)]
pub struct Token {
    key: hmac::Key,
    tag: hmac::Tag,
}

/// The system gives no random bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the system gives no random bytes")]
pub struct NoRandomness;

impl Token {
    /// The token with this secret.
    pub fn new(secret: &[u8]) -> Result<Self, NoRandomness> {
        let key = hmac::Key::generate(hmac::HMAC_SHA256, &SystemRandom::new());
        let key = key.map_err(|_unspecified| NoRandomness)?;
        let tag = hmac::sign(&key, secret);
        Ok(Self { key, tag })
    }

    /// Whether this is it.
    pub fn is(&self, presented: &[u8]) -> bool {
        hmac::verify(&self.key, presented, self.tag.as_ref()).is_ok()
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_itself_and_nothing_else_and_is_never_shown() {
        let token = Token::new(b"canary-canary-canary").unwrap();
        assert!(token.is(b"canary-canary-canary"));
        for other in ["", "canary-canary-canarx", "canary-canary-canary "] {
            assert!(!token.is(other.as_bytes()), "{other}");
        }
        assert_eq!(format!("{token:?}"), "***");
    }
}
