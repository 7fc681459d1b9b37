//! Secrets that no log, error or panic can show.

use std::fmt;
use std::path::{Path, PathBuf};

use divvy_core::Invalid;
use divvy_core::store::StoreError;

/// Longest secret that is read from a file or the environment, in bytes.
const SECRET_BYTES_MAX: u64 = 64 * 1024;

/// A password, a token or a private key. Its `Debug` form is `***`, it has no
/// `Display`, and only stores can look inside.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(Box<str>);

impl Secret {
    /// A secret with this text.
    pub fn new(text: impl Into<Box<str>>) -> Self {
        Self(text.into())
    }

    /// The text, to be handed to the server and to nobody else.
    pub(crate) fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

/// Where a secret comes from. It is read when a store is opened, so that a
/// rotated one is found by opening anew.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum SecretSource {
    /// A file that holds it; white space at its end is dropped.
    File(PathBuf),
    /// A variable of the environment that holds it.
    Environment(String),
    /// It is at hand.
    Given(Secret),
}

impl SecretSource {
    /// Reads it. The error names where it was looked for, never what was found.
    pub(crate) fn read(&self, what: &'static str) -> Result<Secret, StoreError> {
        let text = match self {
            Self::File(path) => read_file(what, path)?,
            Self::Environment(name) => std::env::var(name).map_err(|error| {
                let rule = match error {
                    std::env::VarError::NotPresent => "names a variable that is not set",
                    std::env::VarError::NotUnicode(_) => "names a variable that is not UTF-8",
                };
                Invalid::new(what, name, rule)
            })?,
            Self::Given(secret) => return Ok(secret.clone()),
        };
        let text = text.trim_end();
        if text.is_empty() {
            return Err(Invalid::new(what, self.place(), "is empty").into());
        }
        Ok(Secret::new(text))
    }

    fn place(&self) -> String {
        match self {
            Self::File(path) => path.display().to_string(),
            Self::Environment(name) => name.clone(),
            Self::Given(_) => "given".to_owned(),
        }
    }
}

fn read_file(what: &'static str, path: &Path) -> Result<String, StoreError> {
    use std::io::Read;
    let refused = |rule: String| StoreError::from(Invalid::new(what, path.display(), rule));
    let file = std::fs::File::open(path).map_err(|error| refused(error.to_string()))?;
    let mut text = String::new();
    file.take(SECRET_BYTES_MAX + 1)
        .read_to_string(&mut text)
        .map_err(|error| refused(error.to_string()))?;
    if text.len() as u64 > SECRET_BYTES_MAX {
        return Err(refused(format!("is over {SECRET_BYTES_MAX} bytes long")));
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(source: &SecretSource) -> String {
        let error = source.read("password").unwrap_err();
        let shown = format!("{error} {error:?} {source:?}");
        assert!(!shown.contains("canary"), "{shown}");
        error.to_string()
    }

    #[test]
    fn a_secret_is_read_from_where_it_is_kept() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), "canary \n\r\n").unwrap();
        let source = SecretSource::File(file.path().to_owned());
        assert_eq!(source.read("password").unwrap().reveal(), "canary");
        // Read anew each time: a rotated one is found.
        std::fs::write(file.path(), "canary 2").unwrap();
        assert_eq!(source.read("password").unwrap().reveal(), "canary 2");
        let source = SecretSource::Environment("PATH".into());
        assert!(!source.read("password").unwrap().reveal().is_empty());
        let given = Secret::new("canary");
        let source = SecretSource::Given(given.clone());
        assert_eq!(source.read("password").unwrap(), given);
        assert!(!format!("{source:?} {given:?}").contains("canary"));
    }

    #[test]
    fn a_secret_that_cannot_be_had_is_refused_by_its_place() {
        let directory = tempfile::tempdir().unwrap();
        let source = |name: &str| SecretSource::File(directory.path().join(name));
        assert!(refused(&source("none")).contains("No such file"));
        assert!(refused(&SecretSource::File(directory.path().to_owned())).contains("directory"));
        let write = |name: &str, content: &[u8]| {
            std::fs::write(directory.path().join(name), content).unwrap();
            refused(&source(name))
        };
        assert!(write("empty", b"").contains("is empty"));
        assert!(write("blank", b" \n\t\n").contains("is empty"));
        assert!(write("binary", b"canary\xff").contains("UTF-8"));
        let large = "canary ".repeat(10_000);
        assert!(write("large", large.as_bytes()).contains("is over 65536 bytes long"));
        let endless = SecretSource::File("/dev/zero".into());
        assert!(refused(&endless).contains("is over 65536 bytes long"));
        let unset = SecretSource::Environment("DIVVY_TEST_NEVER_SET".into());
        assert!(
            refused(&unset).contains("DIVVY_TEST_NEVER_SET"),
            "{unset:?}"
        );
        assert!(refused(&unset).contains("not set"));
    }
}
