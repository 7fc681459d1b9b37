//! How much of a processor a large playground takes:
//! `cargo run --release -p divvy-playground --example scale -- leader 200 10000`

use std::time::{Duration, Instant};

use divvy_playground::{Engine, Setup};
use divvy_sim::Mode;

fn main() {
    let mut words = std::env::args().skip(1);
    let mode = match words.next().as_deref() {
        Some("lease") => Mode::Lease,
        _ => Mode::Leader,
    };
    let mut number = |default| {
        let word = words.next();
        word.and_then(|word| word.parse().ok()).unwrap_or(default)
    };
    let mut setup = Setup::default().in_mode(mode);
    (setup.workers, setup.partitions) = (number(200), number(10_000));
    let seconds = number(15);
    let mut engine = Engine::new(setup, 0).expect("a valid setup");
    for second in 0..seconds {
        let begun = Instant::now();
        let mut longest = Duration::ZERO;
        for _ in 0..10 {
            let tick = Instant::now();
            engine.pass(Duration::from_millis(100));
            let _ = engine.news();
            longest = longest.max(tick.elapsed());
        }
        println!(
            "second {second}: {:?}, a tenth of it at most {longest:?}, {} owned",
            begun.elapsed(),
            engine.snapshot().summary.owned
        );
    }
}
