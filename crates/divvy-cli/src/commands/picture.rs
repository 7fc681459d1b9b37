//! `--plot FILE.svg`: where a picture goes.

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Write as _};
use std::path::{Path, PathBuf};
use std::process;

use anyhow::Context as _;

use crate::failure::Failure;

/// The path of a picture, which is of one form only.
pub(super) fn path(given: Option<&Path>) -> Result<Option<&Path>, Failure> {
    let is_svg = |path: &Path| {
        path.extension()
            .is_some_and(|ending| ending.eq_ignore_ascii_case("svg"))
    };
    match given {
        Some(path) if !is_svg(path) => Err(Failure::usage(
            "plot",
            path.display(),
            "the name must end in .svg",
        )),
        given => Ok(given),
    }
}

/// Puts a picture there.
pub(super) fn write(path: &Path, svg: &str) -> Result<(), Failure> {
    put(path, svg.as_bytes())
        .with_context(|| format!("plot '{}'", path.display()))
        .map_err(Failure::Failed)?;
    tracing::debug!("drew {}", path.display());
    Ok(())
}

/// Puts a file in the place of what there is, all of it or nothing. What is
/// not a file, such as a pipe, is written to.
fn put(path: &Path, content: &[u8]) -> io::Result<()> {
    let Some(target) = target(path) else {
        return fs::write(path, content);
    };
    let draft = target.with_file_name(format!(".divvy-{}.svg.tmp", process::id()));
    let created = OpenOptions::new().write(true).create_new(true).open(&draft);
    let file = match created {
        Ok(file) => file,
        // Where no file can be added, the one that there is may still be ours.
        Err(error) => match error.kind() {
            ErrorKind::PermissionDenied | ErrorKind::AlreadyExists => {
                return fs::write(path, content);
            }
            _ => return Err(error),
        },
    };
    let done = fill(file, &target, content).and_then(|()| fs::rename(&draft, &target));
    if done.is_err() {
        // What went wrong is worth more than what cannot be cleared away.
        let _ = fs::remove_file(&draft);
    }
    done
}

/// The file that a path names, or would name; `None` where it is none, or
/// where a link says so.
fn target(path: &Path) -> Option<PathBuf> {
    match fs::metadata(path) {
        Ok(metadata) if metadata.is_file() => fs::canonicalize(path).ok(),
        Ok(_) => None,
        Err(_) => fs::symlink_metadata(path).is_err().then(|| path.to_owned()),
    }
}

/// Writes a file that is to replace another, and may be read by whom that may.
fn fill(mut file: File, replaced: &Path, content: &[u8]) -> io::Result<()> {
    file.write_all(content)?;
    if let Ok(metadata) = fs::metadata(replaced) {
        file.set_permissions(metadata.permissions())?;
    }
    file.sync_all()
}
