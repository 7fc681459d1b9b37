//! How much heap a structure keeps.
//!
//! The binary installs [`Counting`]. It counts only while a structure is weighed: a count of every
//! allocation would be charged to the peers that allocate for each key.

use std::alloc::{GlobalAlloc, Layout, System};
use std::hint::black_box;
use std::sync::atomic::{AtomicBool, AtomicIsize, Ordering};

static IS_COUNTING: AtomicBool = AtomicBool::new(false);
static LIVE: AtomicIsize = AtomicIsize::new(0);

/// The system's allocator with a count of live bytes.
#[derive(Debug)]
pub struct Counting;

fn count(bytes: isize) {
    if IS_COUNTING.load(Ordering::Relaxed) {
        LIVE.fetch_add(bytes, Ordering::Relaxed);
    }
}

#[allow(
    unsafe_code,
    reason = "a global allocator is an unsafe trait; each call is handed to the system's as it came"
)]
// SAFETY: every method passes its arguments unchanged to `System`, which keeps the contract.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size() as isize);
        // SAFETY: the caller keeps the contract of `alloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        count(-(layout.size() as isize));
        // SAFETY: the caller keeps the contract of `dealloc`.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        count(new_size as isize - layout.size() as isize);
        // SAFETY: the caller keeps the contract of `realloc`.
        unsafe { System.realloc(pointer, layout, new_size) }
    }
}

/// The bytes of heap that what `make` returns keeps: 0 where [`Counting`] is not installed.
pub(crate) fn bytes_kept<T>(make: impl FnOnce() -> T) -> usize {
    LIVE.store(0, Ordering::Relaxed);
    IS_COUNTING.store(true, Ordering::Relaxed);
    let made = black_box(make());
    IS_COUNTING.store(false, Ordering::Relaxed);
    drop(made);
    usize::try_from(LIVE.load(Ordering::Relaxed)).unwrap_or(0)
}
