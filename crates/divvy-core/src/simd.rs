//! Loops compiled twice: for any processor of the platform, and for the wider
//! registers that the one at hand has.
//!
//! The code of a [`Batch`] is plain Rust over small arrays, which the compiler
//! turns into vector instructions. This module only decides which of two
//! compilations of it runs, so both give the same result by construction.
//! It is the one place in the crate with `unsafe`.

#![allow(
    unsafe_code,
    reason = "calling a function compiled for more than the platform's minimum"
)]

/// Work to be done with the widest registers there are.
pub(crate) trait Batch {
    /// What it gives.
    type Output;

    /// Does it. Must be `#[inline(always)]`, and so must what it calls, or it
    /// is not compiled again.
    fn run(self) -> Self::Output;
}

/// Runs a batch as fast as the processor can.
pub(crate) fn vectorised<B: Batch>(batch: B) -> B::Output {
    #[cfg(target_arch = "x86_64")]
    {
        #[target_feature(enable = "avx2")]
        fn with_avx2<B: Batch>(batch: B) -> B::Output {
            batch.run()
        }

        if std::arch::is_x86_feature_detected!("avx2") {
            // SAFETY: the only requirement is that the processor has AVX2,
            // which the line above has found out.
            return unsafe { with_avx2(batch) };
        }
    }
    batch.run()
}
