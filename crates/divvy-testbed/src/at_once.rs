//! One test in several places at the same time.

use std::fmt::Debug;
use std::thread;

/// Runs `scenario` in each of `places`, in all at once and each with a runtime
/// of its own: tests of clusters wait for leases most of the time.
///
/// # Panics
///
/// Where it fails somewhere, with the places; the panics themselves are
/// printed before.
pub fn at_once<P>(places: &[P], scenario: impl AsyncFn(P) + Copy + Send + 'static)
where
    P: Copy + Debug + Send + 'static,
{
    let begin = |&place: &P| {
        let run = move || {
            let runtime = tokio::runtime::Builder::new_multi_thread()
                .worker_threads(2)
                .enable_all()
                .build()
                .expect("a runtime for the test");
            runtime.block_on(async { scenario(place).await });
        };
        (place, thread::spawn(run))
    };
    let running: Vec<_> = places.iter().map(begin).collect();
    let ended = running.into_iter();
    let failed: Vec<P> = ended
        .filter_map(|(place, thread)| thread.join().is_err().then_some(place))
        .collect();
    assert!(failed.is_empty(), "failed in {failed:?}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[should_panic(expected = "failed in [2]")]
    fn where_it_fails_is_told() {
        at_once(&[1, 2, 3], async |place| assert_ne!(place, 2));
    }
}
