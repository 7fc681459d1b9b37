//! What futures of commands run on.

use anyhow::Context as _;
use tokio::runtime::{Builder, Runtime};
use tokio::signal::unix::{SignalKind, signal};

/// A runtime of the thread that waits for it.
pub(crate) fn here() -> anyhow::Result<Runtime> {
    let runtime = Builder::new_current_thread().enable_all().build();
    handle_ended_children(runtime.context("no runtime")?)
}

/// A runtime with so many threads of its own.
pub(crate) fn with_threads(count: usize) -> anyhow::Result<Runtime> {
    let mut runtime = Builder::new_multi_thread();
    let runtime = runtime.worker_threads(count).enable_all().build();
    handle_ended_children(runtime.context("no threads")?)
}

/// Where SIGCHLD is ignored, as it may be by inheritance, children cannot be
/// waited for, and their ids are used again at once. A handler ends that.
fn handle_ended_children(runtime: Runtime) -> anyhow::Result<Runtime> {
    let entered = runtime.enter();
    // The handler stays when nobody listens to it.
    let _handled = signal(SignalKind::child()).context("cannot handle SIGCHLD")?;
    drop(entered);
    Ok(runtime)
}
