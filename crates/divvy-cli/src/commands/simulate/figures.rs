//! `divvy simulate --figures`: how long hand-overs take in the time of the
//! world, and how fast the simulator runs here.

use std::io::Write;
use std::time::{Duration, Instant};

use anyhow::anyhow;
use divvy_sim::Broken;
use divvy_sim::figures::{self, Spread, Victim};
use serde::Serialize;

use super::write_json;
use crate::args::SimulateArgs;
use crate::failure::Failure;
use crate::spinner::Spinner;
use crate::table::{Align, Table, Tone};
use crate::terminal::Terminal;

/// Worlds behind each spread.
const WORLDS: u64 = 300;
/// The bound of hand-overs after a crash with the preset `fast`.
const FAILOVER_MAX: Duration = Duration::from_millis(900);
/// Simulated hours of five members, default timings, within a second.
const SPEED_MIN: f64 = 5.0;

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
    let measured = measure();
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
    let peace = figures::peace(Duration::from_secs(24 * 3600))?;
    let speed = peace.lasted.as_secs_f64() / 3600.0 / start.elapsed().as_secs_f64();
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
        Figure {
            figure: "24 h of peace, 5 members, default",
            measured: format!("{} moves", peace.moves),
            bound: "0 moves".to_owned(),
            holds: peace.moves == 0,
        },
        Figure {
            figure: "speed of the same, one thread",
            measured: format!("{speed:.1} cluster-hours/s"),
            bound: format!("{SPEED_MIN} cluster-hours/s"),
            holds: speed >= SPEED_MIN,
        },
    ])
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
