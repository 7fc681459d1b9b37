//! Secrets that are shared with whoever asks, or is asked, by HTTP.

use std::fs::File;
use std::io::Read as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use divvy::Invalid;
use divvy_http::Token;

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

/// Reads the token that clients have to send.
pub(crate) fn read_token(flag: &'static str, path: &Path) -> Result<Token, Failure> {
    Token::new(&read_secret(flag, path)?).map_err(|error| Failure::Failed(error.into()))
}
