//! Loads of several processes on one store: whether each gets its share.
//!
//! The processes are this program again, told by a hidden argument to take
//! part. They hear what to do on their standard input, one line for each load,
//! and answer each with a line of JSON.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use anyhow::{Context as _, anyhow};
use divvy::store::{StoreKind, StoreUrl};

use super::measure::{Figure, Tally};
use super::part::{Answer, Load, WRITERS};
use crate::args::{STORE_VARIABLE, StoresArgs};
use crate::failure::Failure;

/// Measures every load of `count` processes on the store that is the one
/// numbered `index` of those to be measured.
pub(super) fn measure(
    store: &str,
    url: &StoreUrl,
    index: usize,
    count: u32,
    args: &StoresArgs,
) -> Result<Vec<Figure>, Failure> {
    let at = |error: anyhow::Error| Failure::Failed(error.context(url.to_string()));
    let mut cast = Cast::start(url, index, count).map_err(at)?;
    let mut figures = Vec::new();
    let tallies = cast.play(Load::Keys).map_err(at)?;
    figures.push(figure(
        store,
        format!("compare-and-set, {count} processes"),
        tallies,
        1,
    ));
    if url.kind() != StoreKind::Nats {
        let (leases, interval) = (args.leases / count, args.interval);
        let renew = format!("{count} processes renew {leases} leases each every {interval:?}");
        cast.play(Load::Acquire).map_err(at)?;
        let tallies = cast.play(Load::Renew).map_err(at)?;
        figures.push(figure(store, renew.clone(), tallies, leases));
        if count > WRITERS {
            let tallies = cast.play(Load::RenewBesideWriters).map_err(at)?;
            let load = format!("{renew}, {WRITERS} of them write without pause instead");
            figures.push(figure(store, load, tallies, leases));
        }
    }
    cast.play(Load::End).map_err(at)?;
    Ok(figures)
}

fn figure(store: &str, load: String, tallies: Vec<Tally>, each: u32) -> Figure {
    let counts = || tallies.iter().map(Tally::count);
    let range = counts().min().zip(counts().max());
    let figure = Tally::together(tallies).figure(store, load, each);
    Figure {
        per_process: range.map(|(fewest, most)| [fewest, most]),
        ..figure
    }
}

/// The processes, which end with this.
struct Cast {
    actors: Vec<Actor>,
}

impl Cast {
    fn start(url: &StoreUrl, index: usize, count: u32) -> anyhow::Result<Self> {
        let mut actors = Vec::new();
        for number in 0..count {
            actors.push(Actor::start(url, index, number)?);
        }
        for actor in &mut actors {
            match actor.hear()? {
                Answer::Ready => {}
                other => return Err(unexpected(&other)),
            }
        }
        Ok(Self { actors })
    }

    /// Has all of them do it at once. Gives what those measured that measure
    /// it.
    fn play(&mut self, load: Load) -> anyhow::Result<Vec<Tally>> {
        for actor in &mut self.actors {
            actor.tell(load)?;
        }
        let mut tallies = Vec::new();
        for actor in &mut self.actors {
            match actor.hear()? {
                Answer::Done(tally) => tallies.extend(tally),
                other => return Err(unexpected(&other)),
            }
        }
        Ok(tallies)
    }
}

struct Actor {
    child: Child,
    cues: ChildStdin,
    answers: BufReader<ChildStdout>,
}

impl Actor {
    fn start(url: &StoreUrl, index: usize, number: u32) -> anyhow::Result<Self> {
        let program = std::env::current_exe().context("this program's own path")?;
        let mut command = Command::new(program);
        command
            .args(std::env::args_os().skip(1))
            .args(["--part", &format!("{index}:{number}")])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped());
        if number > 0 {
            // All of them would warn of the same.
            command.stderr(Stdio::null());
        }
        if url.kind() == StoreKind::File {
            // One of our own making is named by no argument.
            command.env(STORE_VARIABLE, url.to_string());
        }
        let mut child = command.spawn().context("a process cannot be started")?;
        let cues = child.stdin.take().expect("it is piped");
        let answers = BufReader::new(child.stdout.take().expect("it is piped"));
        Ok(Self {
            child,
            cues,
            answers,
        })
    }

    fn tell(&mut self, load: Load) -> anyhow::Result<()> {
        let line = serde_json::to_string(&load)?;
        writeln!(self.cues, "{line}").context("a process of the bench has ended")
    }

    fn hear(&mut self) -> anyhow::Result<Answer> {
        let mut line = String::new();
        self.answers.read_line(&mut line)?;
        match serde_json::from_str(&line) {
            Ok(Answer::Failed(message)) => Err(anyhow!(message)),
            Ok(answer) => Ok(answer),
            Err(_) => Err(anyhow!("a process of the bench has ended")),
        }
    }
}

impl Drop for Actor {
    fn drop(&mut self) {
        // Fails only if it has ended already.
        let _ended = self.child.kill();
        let _ended = self.child.wait();
    }
}

fn unexpected(answer: &Answer) -> anyhow::Error {
    anyhow!("a process of the bench answered out of turn: {answer:?}")
}
