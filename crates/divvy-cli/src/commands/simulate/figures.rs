//! `divvy simulate --figures`: how long hand-overs take in the time of the
//! world, and how fast the simulator runs here.

use std::io::Write;
use std::time::{Duration, Instant};

use anyhow::anyhow;
use divvy_sim::figures::lease::{self, Going};
use divvy_sim::figures::{self, Peace, Spread, Victim};
use divvy_sim::{Broken, Mode};
use serde::Serialize;

use super::{mode, write_json};
use crate::args::SimulateArgs;
use crate::failure::Failure;
use crate::spinner::Spinner;
use crate::table::{Align, Table, Tone};
use crate::terminal::Terminal;

/// Worlds behind each spread.
const WORLDS: u64 = 300;
/// The bound of hand-overs after a crash with the preset `fast`.
const FAILOVER_MAX: Duration = Duration::from_millis(900);
/// Worlds behind the spread of a large cluster.
const WORLDS_LARGE: u64 = 5;
/// Simulated hours of five members, default timings, within a second.
const SPEED_MIN: f64 = 5.0;
/// The same in lease mode, where all leases are renewed all the time.
const SPEED_MIN_LEASES: f64 = 3.0;
/// How long peace lasts.
const DAY: Duration = Duration::from_secs(24 * 3600);

/// A figure with its bound.
#[derive(Serialize)]
struct Figure {
    figure: &'static str,
    measured: String,
    bound: String,
    holds: bool,
}

pub(super) fn run(args: &SimulateArgs, out: &mut dyn Write) -> Result<(), Failure> {
    let spinner = Spinner::start("measuring");
    let measured = match mode(args) {
        Mode::Leader => measure(),
        Mode::Lease => measure_leases(),
    };
    drop(spinner);
    let figures = measured.map_err(|broken| Failure::Failed(anyhow!("{broken}")))?;
    if args.json {
        write_json(out, &figures)?;
    } else {
        let headings = ["figure", "measured", "bound", ""];
        let mut table = Table::new(headings.map(|text| (text.to_owned(), Align::Left)));
        for figure in &figures {
            let (tone, holds) = match figure.holds {
                true => (Tone::Plain, "holds"),
                false => (Tone::Strong, "broken"),
            };
            let cells = [figure.figure, &figure.measured, &figure.bound, holds];
            table.push(tone, cells.map(str::to_owned).to_vec());
        }
        table
            .write(out, Terminal::of_stdout().colour)
            .map_err(Failure::output)?;
    }
    let broken = figures.iter().filter(|figure| !figure.holds).count();
    match broken {
        0 => Ok(()),
        _ => Err(Failure::Failed(anyhow!(
            "{broken} figures are out of bounds"
        ))),
    }
}

fn measure() -> Result<Vec<Figure>, Broken> {
    let worker = figures::failover(Victim::Worker, WORLDS)?;
    let leader = figures::failover(Victim::Leader, WORLDS)?;
    let planned = figures::planned_move(WORLDS)?;
    let planned_max = planned.round_trip * 4 + planned.hook;
    let rolling = figures::rolling_restart(100, 300)?;
    let start = Instant::now();
    let peace = figures::peace(DAY)?;
    let speed = speed_of(&peace, start);
    Ok(vec![
        timed("crash of a worker, fast", &worker, FAILOVER_MAX),
        timed("crash of the leader, fast", &leader, FAILOVER_MAX),
        timed(
            "planned move, 10 ms round trips, 20 ms hook",
            &planned.took,
            planned_max,
        ),
        Figure {
            figure: "rolling restart of 100 workers",
            measured: format!("{} moved, {} idle", rolling.moved, rolling.idle),
            bound: "0 moved, 0 idle".to_owned(),
            holds: rolling.moved == 0 && rolling.idle == 0,
        },
        peaceful(&peace),
        fast(speed, SPEED_MIN),
    ])
}

fn measure_leases() -> Result<Vec<Figure>, Broken> {
    let killed = lease::handed_on(Going::Killed, WORLDS)?;
    let asked = lease::handed_on(Going::Asked, WORLDS)?;
    let few = lease::cold_start(3, 24, WORLDS)?;
    let many = lease::cold_start(10, 2048, WORLDS_LARGE)?;
    let start = Instant::now();
    let peace = lease::peace(DAY)?;
    let speed = speed_of(&peace, start);
    let seconds = Duration::from_secs;
    Ok(vec![
        timed("a worker is killed, default", &killed, seconds(11)),
        timed("a worker stops, default", &asked, seconds(2)),
        timed("cold start, 24 partitions, 3 workers", &few, seconds(2)),
        timed("cold start, 2048 partitions, 10 workers", &many, seconds(5)),
        peaceful(&peace),
        fast(speed, SPEED_MIN_LEASES),
    ])
}

fn speed_of(peace: &Peace, start: Instant) -> f64 {
    peace.lasted.as_secs_f64() / 3600.0 / start.elapsed().as_secs_f64()
}

fn peaceful(peace: &Peace) -> Figure {
    Figure {
        figure: "24 h of peace, 5 members, default",
        measured: format!("{} moves", peace.moves),
        bound: "0 moves".to_owned(),
        holds: peace.moves == 0,
    }
}

fn fast(speed: f64, least: f64) -> Figure {
    Figure {
        figure: "speed of the same, one thread",
        measured: format!("{speed:.1} cluster-hours/s"),
        bound: format!("{least} cluster-hours/s"),
        holds: speed >= least,
    }
}

fn timed(figure: &'static str, spread: &Spread, most: Duration) -> Figure {
    let ms = |span: Duration| format!("{:.0} ms", span.as_secs_f64() * 1000.0);
    Figure {
        figure,
        measured: format!(
            "p50 {}, p99 {}, most {} of {}",
            ms(spread.quantile(0.5)),
            ms(spread.quantile(0.99)),
            ms(spread.quantile(1.0)),
            spread.count()
        ),
        bound: format!("p99 {}", ms(most)),
        holds: spread.count() > 0 && spread.quantile(0.99) <= most,
    }
}
