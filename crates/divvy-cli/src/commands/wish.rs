//! `divvy cordon`, `drain`, `uncordon`, `pin`, `unpin` and `refresh`: what
//! operators wish of a live cluster.

use std::io::Write;
use std::time::Duration;

use anyhow::anyhow;
use divvy::Control;
use divvy::observer::{Mode, Observer, Snapshot, WorkerStatus};
use tokio::time::Instant;

use super::live;
use crate::args::{DrainArgs, PinArgs, RefreshArgs, UnpinArgs, WorkerNameArgs};
use crate::failure::Failure;
use crate::spinner::Spinner;

/// Time between two looks at a worker that is being drained.
const LOOK_EVERY: Duration = Duration::from_millis(200);

pub(crate) fn cordon(args: &WorkerNameArgs, out: &mut dyn Write) -> Result<(), Failure> {
    let name = &args.worker;
    live::block_on(async {
        let mut observer = live::open(&args.at).await?;
        live::known_worker(&observer.look().await.map_err(live::refused)?, name)?;
        change(&observer, |control| {
            control.drained.remove(name);
            control.cordoned.insert(name.clone());
        })
        .await
    })?;
    let text = "is cordoned: it keeps what it has, and gets nothing more";
    writeln!(out, "{name} {text}").map_err(Failure::output)
}

pub(crate) fn drain(args: &DrainArgs, out: &mut dyn Write) -> Result<(), Failure> {
    let name = &args.worker;
    let text = live::block_on(async {
        let mut observer = live::open(&args.at).await?;
        let snapshot = observer.look().await.map_err(live::refused)?;
        live::known_worker(&snapshot, name)?;
        change(&observer, |control| {
            control.cordoned.remove(name);
            control.drained.insert(name.clone());
        })
        .await?;
        match args.wait {
            None if is_alone(&snapshot, name) => {
                let text = "is drained, and nobody else is there: it keeps what it has until \
                            somebody is";
                Ok(text.to_owned())
            }
            None => Ok("is drained: it gives up everything, and gets nothing".to_owned()),
            Some(most) => emptied(&mut observer, name, most).await,
        }
    })?;
    writeln!(out, "{name} {text}").map_err(Failure::output)
}

/// Whether nobody else could have what this worker gives up. Agents keep it
/// then.
fn is_alone(snapshot: &Snapshot, name: &str) -> bool {
    let can_take = |worker: &WorkerStatus| {
        let is_free = !worker.drained && !worker.cordoned;
        worker.life.is_here() && worker.healthy && worker.weight > 0.0 && is_free
    };
    let mut others = snapshot.workers.iter().filter(|worker| worker.name != name);
    snapshot.mode == Mode::Lease && !others.any(can_take)
}

/// Waits until a worker has nothing left.
async fn emptied(observer: &mut Observer, name: &str, most: Duration) -> Result<String, Failure> {
    let _spinner = Spinner::start("waiting until it has nothing left");
    let begun = Instant::now();
    loop {
        let snapshot = observer.look().await.map_err(live::refused)?;
        let left = snapshot.worker(name).map_or(0, |worker| worker.owned);
        let took = begun.elapsed();
        if left == 0 {
            return Ok(format!("is drained, and has nothing left after {took:.1?}"));
        }
        if took >= most {
            return Err(Failure::Failed(anyhow!(
                "{name} still has {left} after {most:?}: is anybody else able to take them? \
                 It stays drained until divvy uncordon"
            )));
        }
        tokio::time::sleep(LOOK_EVERY).await;
    }
}

pub(crate) fn uncordon(args: &WorkerNameArgs, out: &mut dyn Write) -> Result<(), Failure> {
    let name = &args.worker;
    let was = live::block_on(async {
        let mut observer = live::open(&args.at).await?;
        let before = observer.control().await.map_err(live::refused)?;
        let was = before.cordoned.contains(name) || before.drained.contains(name);
        if !was {
            live::known_worker(&observer.look().await.map_err(live::refused)?, name)?;
        }
        if was {
            change(&observer, |control| {
                control.cordoned.remove(name);
                control.drained.remove(name);
            })
            .await?;
        }
        Ok(was)
    })?;
    let text = match was {
        true => "gets its share again",
        false => "is neither cordoned nor drained: nothing is changed",
    };
    writeln!(out, "{name} {text}").map_err(Failure::output)
}

pub(crate) fn pin(args: &PinArgs, out: &mut dyn Write) -> Result<(), Failure> {
    let (partition, worker) = (&args.partition, &args.worker);
    live::block_on(async {
        let mut observer = live::open(&args.at).await?;
        let snapshot = observer.look().await.map_err(live::refused)?;
        live::known_partition(&snapshot, partition)?;
        live::known_worker(&snapshot, worker)?;
        change(&observer, |control| {
            control.pinned.insert(partition.clone(), worker.clone());
        })
        .await
    })?;
    let text = "it goes there, and stays while that worker can have it";
    writeln!(out, "{partition} is pinned to {worker}: {text}").map_err(Failure::output)
}

pub(crate) fn unpin(args: &UnpinArgs, out: &mut dyn Write) -> Result<(), Failure> {
    let partition = &args.partition;
    let was = live::block_on(async {
        let mut observer = live::open(&args.at).await?;
        let before = observer.control().await.map_err(live::refused)?;
        let was = before.pinned.get(partition).cloned();
        if was.is_none() {
            let snapshot = observer.look().await.map_err(live::refused)?;
            live::known_partition(&snapshot, partition)?;
        }
        if was.is_some() {
            change(&observer, |control| {
                control.pinned.remove(partition);
            })
            .await?;
        }
        Ok(was)
    })?;
    let text = match was {
        Some(worker) => format!("is no longer pinned to {worker}"),
        None => "is not pinned: nothing is changed".to_owned(),
    };
    writeln!(out, "{partition} {text}").map_err(Failure::output)
}

pub(crate) fn refresh(args: &RefreshArgs, out: &mut dyn Write) -> Result<(), Failure> {
    let mode = live::block_on(async {
        let observer = live::open(&args.at).await?;
        change(&observer, |control| control.refresh += 1).await?;
        Ok(observer.mode())
    })?;
    let text = match mode {
        Mode::Leader => "whoever leads reads the partitions anew",
        Mode::Lease => "all workers read workloads, members and leases anew",
    };
    writeln!(out, "{text}").map_err(Failure::output)
}

async fn change(observer: &Observer, change: impl FnMut(&mut Control)) -> Result<Control, Failure> {
    observer.change(change).await.map_err(live::refused)
}
