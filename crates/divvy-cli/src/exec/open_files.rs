//! The limit of open files. A process that runs commands needs several file
//! descriptors for each, so it raises its soft limit to the hard one. Commands
//! get the soft limit that this process was started with: programs that use
//! `select` break on descriptors beyond 1024.

use std::sync::OnceLock;

use rustix::process::{Pid, Resource, Rlimit, getrlimit, prlimit, setrlimit};

/// The limit that this process was started with.
static ORIGINAL: OnceLock<Rlimit> = OnceLock::new();

/// Raises the limit of this process as far as it may.
pub(super) fn raise_limit() {
    let original = ORIGINAL.get_or_init(|| getrlimit(Resource::Nofile));
    let raised = Rlimit {
        current: original.maximum,
        maximum: original.maximum,
    };
    // Without it, fewer commands can be started; each failure is reported.
    let _unchanged = setrlimit(Resource::Nofile, raised);
}

/// Gives a child the limit that this process was started with.
pub(super) fn restore_limit(child: Pid) {
    if let Some(original) = ORIGINAL.get() {
        // Fails for a child that has ended, or has another user already.
        let _unchanged = prlimit(Some(child), Resource::Nofile, *original);
    }
}
