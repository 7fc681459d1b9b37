//! `--plot FILE.svg`: where a picture goes.

use std::fs;
use std::path::Path;

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
    fs::write(path, svg)
        .with_context(|| format!("plot '{}'", path.display()))
        .map_err(Failure::Failed)?;
    tracing::debug!("drew {}", path.display());
    Ok(())
}
