//! Secrets that are shared with whoever asks, or is asked, by HTTP.

use std::fmt;
use std::fs::File;
use std::io::Read as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use divvy::Invalid;
use ring::hmac;
use ring::rand::SystemRandom;

use crate::failure::Failure;

/// Longest and shortest secret, in bytes.
const BYTES_MAX: usize = 4096;
const BYTES_MIN: usize = 16;
/// The bits of a file's mode that let everybody read or change it.
const EVERYBODY: u32 = 0o006;

/// Reads a secret from a file that not everybody can read; `flag` names it in
/// errors, which never have it.
pub(crate) fn read_secret(flag: &'static str, path: &Path) -> Result<Box<[u8]>, Failure> {
    let refused = |rule: String| {
        let invalid = Invalid::new(flag, path.display(), rule);
        Failure::Usage(invalid.to_string())
    };
    let file = File::open(path).map_err(|error| refused(error.to_string()))?;
    let mode = file
        .metadata()
        .map_err(|error| refused(error.to_string()))?;
    if mode.mode() & EVERYBODY != 0 {
        let rule = "everybody on this machine may read or change it: chmod o-rw it";
        return Err(refused(rule.to_owned()));
    }
    let mut bytes = Vec::new();
    let read = file.take(BYTES_MAX as u64 + 1).read_to_end(&mut bytes);
    read.map_err(|error| refused(error.to_string()))?;
    let secret = bytes.trim_ascii_end();
    if !(BYTES_MIN..=BYTES_MAX).contains(&secret.len()) {
        return Err(refused(format!(
            "must hold {BYTES_MIN}..={BYTES_MAX} bytes"
        )));
    }
    Ok(secret.into())
}

/// A token that can be compared with others, in a time that says nothing
/// about it.
#[derive(Clone)]
pub(super) struct Token {
    key: hmac::Key,
    tag: hmac::Tag,
}

impl Token {
    pub(super) fn read(flag: &'static str, path: &Path) -> Result<Self, Failure> {
        Self::new(&read_secret(flag, path)?)
    }

    fn new(secret: &[u8]) -> Result<Self, Failure> {
        let key = hmac::Key::generate(hmac::HMAC_SHA256, &SystemRandom::new());
        let key = key.map_err(|_unspecified| {
            Failure::Failed(anyhow::anyhow!("the system gives no random bytes"))
        })?;
        let tag = hmac::sign(&key, secret);
        Ok(Self { key, tag })
    }

    pub(super) fn is(&self, presented: &[u8]) -> bool {
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
