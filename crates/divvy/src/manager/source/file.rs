//! Partitions from a file.

use std::fs::{File, Metadata};
use std::io::Read as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use async_trait::async_trait;
use divvy_core::{Invalid, Partitions};

use super::PartitionSource;
use crate::listing::{Form, LIST_BYTES_MAX, partitions, text_of};
use crate::manager::hooks::HookError;

/// How often the file is looked at.
const LOOK_INTERVAL: Duration = Duration::from_secs(1);

/// Partitions that a file lists: CSV with a header, JSON or YAML, by its
/// ending. When the file changes, the leader reads it again; one that cannot
/// be read leaves the last list in force.
///
/// Every worker needs the same file: whoever leads reads its own.
///
/// ```
/// use divvy::manager::FileSource;
///
/// let path = std::env::temp_dir().join(format!("divvy-source-{}.csv", std::process::id()));
/// std::fs::write(&path, "key,weight\ntool001:chamber1,150\ntool001:chamber2,80\n")?;
/// let source = FileSource::new(&path)?;
/// assert_eq!(source.read()?.len(), 2);
/// # std::fs::remove_file(&path)?;
/// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
/// ```
#[derive(Debug, Clone)]
pub struct FileSource {
    path: PathBuf,
    form: Form,
}

impl FileSource {
    /// The partitions of the file at `path`, which need not be there yet.
    pub fn new(path: impl Into<PathBuf>) -> Result<Self, Invalid> {
        let path = path.into();
        match Form::of(&path) {
            Some(form) => Ok(Self { path, form }),
            None => {
                let rule = "the name of a file must end in .csv, .json, .yaml or .yml";
                Err(Invalid::new("partitions", path.display(), rule))
            }
        }
    }

    /// Reads the file now.
    pub fn read(&self) -> Result<Partitions, HookError> {
        let told = |error: &dyn std::fmt::Display| format!("{}: {error}", self.path.display());
        let bytes = bytes_of(&self.path).map_err(|error| told(&error))?;
        let text = text_of(bytes).map_err(|fault| told(&fault))?;
        let read = partitions(self.form, &text).map_err(|fault| told(&fault))?;
        Ok(read)
    }

    /// What tells one content from another without reading it.
    fn mark(&self) -> Option<(i64, i64, u64, u64)> {
        let of = |found: Metadata| (found.mtime(), found.mtime_nsec(), found.size(), found.ino());
        std::fs::metadata(&self.path).ok().map(of)
    }
}

#[async_trait]
impl PartitionSource for FileSource {
    async fn list_partitions(&self) -> Result<Partitions, HookError> {
        let source = self.clone();
        tokio::task::spawn_blocking(move || source.read()).await?
    }

    async fn changed(&self) {
        let before = self.mark();
        loop {
            tokio::time::sleep(LOOK_INTERVAL).await;
            if self.mark() != before {
                return;
            }
        }
    }
}

fn bytes_of(path: &Path) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let read = File::open(path)?
        .take(LIST_BYTES_MAX + 1)
        .read_to_end(&mut bytes)?;
    if read as u64 > LIST_BYTES_MAX {
        let text = format!("has more than {LIST_BYTES_MAX} bytes");
        return Err(std::io::Error::other(text));
    }
    Ok(bytes)
}
