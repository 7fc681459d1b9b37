//! What futures of commands run on.

use anyhow::Context as _;
use tokio::runtime::{Builder, Runtime};

/// A runtime of the thread that waits for it.
pub(crate) fn here() -> anyhow::Result<Runtime> {
    let runtime = Builder::new_current_thread().enable_all().build();
    runtime.context("no runtime")
}

/// A runtime with so many threads of its own.
pub(crate) fn with_threads(count: usize) -> anyhow::Result<Runtime> {
    let mut runtime = Builder::new_multi_thread();
    let runtime = runtime.worker_threads(count).enable_all().build();
    runtime.context("no threads")
}
