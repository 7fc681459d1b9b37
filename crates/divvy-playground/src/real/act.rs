//! What is done to a cluster on a real store. An action is answered when it was
//! done, or was refused.

use divvy_core::Control;
use divvy_core::store::StoreError;
use divvy_sim::Mode;
use serde_json::Value;

use super::board::Place;
use super::troupe::{PLACES_MAX, REAL_WORKERS_MAX, Troupe};
use crate::action::{Action, ISOLATIONS, STORE_STATES};
use crate::engine::{Answer, Refusal};
use crate::member::line::Order;
use crate::setup::Setup;

/// What cannot be done where time is real.
const TIME: [&str; 4] = ["speed", "run", "hold", "step"];
/// The ways to be cut off that there are here.
pub(super) const ISOLATED: [&str; 2] = ["full", "inward"];

/// The names of the actions of a mode.
pub(super) fn names(mode: Mode) -> Vec<&'static str> {
    let names = Action::names(mode).into_iter();
    names.filter(|name| !TIME.contains(name)).collect()
}

impl Troupe {
    /// Does what a request asks for.
    pub(crate) async fn request(&mut self, value: Value) -> Result<Answer, Refusal> {
        let action = self.read(value)?;
        let mode = self.board.known().setup.mode;
        if !action.is_of(mode) {
            return conflict(format!("{mode} mode does not know that"));
        }
        match action {
            Action::Add { .. } => self.add_some(action),
            Action::Stop { worker, keep } => {
                let name = self.alive(worker)?;
                let keep_ms = keep.map(|keep| keep.as_millis() as u64);
                self.board.known().places[worker].is_leaving = true;
                self.tell(worker, Order::Stop { keep_ms }).await?;
                self.done_to(worker, "wish", format!("{name} was asked to stop"))
            }
            Action::Kill(worker) => {
                let name = self.alive(worker)?;
                self.kill(worker).await?;
                self.done_to(worker, "killed", format!("{name} was killed"))
            }
            Action::Restart(worker) => self.restart(worker),
            Action::Pause(worker) => {
                let name = self.alive(worker)?;
                if self.board.known().places[worker].paused {
                    return conflict(format!("{name} stands still already"));
                }
                self.pause(worker).await?;
                self.done_to(worker, "paused", format!("{name} stands still"))
            }
            Action::Resume(worker) => {
                let name = self.alive(worker)?;
                if !self.board.known().places[worker].paused {
                    return conflict(format!("{name} does not stand still"));
                }
                self.resume(worker).await?;
                self.done_to(worker, "resumed", format!("{name} goes on"))
            }
            Action::Isolate(..) | Action::Reconnect(_) => self.cut(action).await,
            Action::Slow(..) | Action::Broken(..) => self.set_hooks(action).await,
            Action::Unhealthy(..) | Action::Weight(..) | Action::Zone(..) => {
                self.describe(action).await
            }
            Action::Cordon(_) | Action::Uncordon(_) | Action::Drain(_) => self.wish(action).await,
            Action::Pin(..) | Action::Unpin(_) | Action::Refresh => self.pin(action).await,
            Action::Partitions(_) | Action::PartitionWeight(..) => self.divide(action).await,
            _ => self.act_on_all(action).await,
        }
    }

    fn read(&self, mut value: Value) -> Result<Action, Refusal> {
        let name = value["action"].as_str().unwrap_or_default();
        if TIME.contains(&name) {
            let text = "time is real here: it neither stands still nor passes faster";
            return conflict(text.to_owned());
        }
        if name == "amnesia" {
            if value["announced"] == true {
                let text = "a real store says by itself that it has lost everything: what can be \
                            done here is to delete the keys of this cluster, which nobody is told";
                return conflict(text.to_owned());
            }
            value["announced"] = false.into();
        }
        let setup = self.board.known().setup.clone();
        Ok(Action::read(value, &setup)?)
    }

    /// The name of a place that is alive.
    fn alive(&self, worker: usize) -> Result<String, Refusal> {
        let place = self.place(worker)?;
        match place.is_alive() {
            true => Ok(place.name),
            false => conflict(format!("{} is gone: restart it first", place.name)),
        }
    }

    fn place(&self, worker: usize) -> Result<Place, Refusal> {
        let known = self.board.known();
        let place = known.places.get(worker).cloned();
        place.ok_or_else(|| {
            let text = format!("there is no worker {worker} that was started here");
            Refusal::Missing(text)
        })
    }

    fn done(&self, kind: &'static str, text: String) -> Result<Answer, Refusal> {
        self.board.known().note(kind, text.clone());
        Answer::of(text)
    }

    fn done_to(&self, worker: usize, kind: &'static str, text: String) -> Result<Answer, Refusal> {
        let mut known = self.board.known();
        known.note_worker(kind, worker, text.clone());
        Answer::of(text)
    }

    fn add_some(&mut self, action: Action) -> Result<Answer, Refusal> {
        let Action::Add {
            count,
            weight,
            zone,
            name,
        } = action
        else {
            unreachable!("workers are added by the action add");
        };
        self.check_room(count)?;
        {
            let known = self.board.known();
            if known.places.len() + count > PLACES_MAX {
                return conflict(format!("this cluster had {PLACES_MAX} workers: reset it"));
            }
            let is_taken = |name: &String| known.places.iter().any(|place| place.name == *name);
            if let Some(name) = name.as_ref().filter(|name| is_taken(name)) {
                return conflict(format!("there is a worker {name} already"));
            }
        }
        let like = Place::new(String::new(), weight.unwrap_or(1.0), zone);
        let first = self.add(count, &like, name)?;
        let mut known = self.board.known();
        let name = known.places[first].name.clone();
        for worker in first..first + count {
            let text = format!("{} joins", known.places[worker].name);
            known.note_worker("joined", worker, text);
        }
        Ok(Answer {
            done: match count {
                1 => format!("{name} joins"),
                count => format!("{count} workers join"),
            },
            worker: Some(first),
        })
    }

    fn check_room(&self, count: usize) -> Result<(), Refusal> {
        let alive = self.board.known().alive();
        match alive + count > REAL_WORKERS_MAX {
            true => conflict(format!(
                "{count} more than {alive} workers: on a real store each is a process, and at \
                 most {REAL_WORKERS_MAX} can be"
            )),
            false => Ok(()),
        }
    }

    fn restart(&mut self, worker: usize) -> Result<Answer, Refusal> {
        let place = self.place(worker)?;
        let name = place.name.clone();
        if place.is_alive() {
            return conflict(format!("{name} is there: kill or stop it first"));
        }
        self.check_room(1)?;
        self.start(worker)?;
        self.done_to(worker, "joined", format!("{name} starts again"))
    }

    async fn cut(&mut self, action: Action) -> Result<Answer, Refusal> {
        let (worker, how, text) = match action {
            Action::Isolate(worker, how) => {
                let way = ISOLATIONS.iter().find(|(_, known)| *known == how);
                let way = way.expect("all ways have names").0;
                if !ISOLATED.contains(&way) {
                    let ways = ISOLATED.join(" or ");
                    return conflict(format!("on a real store, one is cut off {ways}"));
                }
                let name = self.alive(worker)?;
                (worker, Some(way), format!("{name} is cut off: {way}"))
            }
            Action::Reconnect(worker) => {
                let name = self.alive(worker)?;
                if self.board.known().places[worker].isolated.is_none() {
                    return conflict(format!("{name} is not cut off"));
                }
                (worker, None, format!("{name} is connected again"))
            }
            other => unreachable!("{other:?} cuts nobody off"),
        };
        let weather = {
            let known = self.board.known();
            let mut place = known.places[worker].clone();
            place.isolated = how;
            place.weather(known.store)
        };
        self.tell(worker, Order::Weather(weather)).await?;
        self.board.known().places[worker].isolated = how;
        self.done_to(worker, "note", text)
    }

    async fn set_hooks(&mut self, action: Action) -> Result<Answer, Refusal> {
        let (worker, order, what, on) = match action {
            Action::Slow(worker, on) => (worker, Order::Slow(on), "hooks are slow", on),
            Action::Broken(worker, on) => (worker, Order::Broken(on), "hooks fail", on),
            other => unreachable!("{other:?} is not about hooks"),
        };
        let name = self.alive(worker)?;
        self.tell(worker, order.clone()).await?;
        {
            let mut known = self.board.known();
            let place = &mut known.places[worker];
            match order {
                Order::Slow(on) => place.slow = on,
                _ => place.broken = on,
            }
        }
        let no_longer = if on { "" } else { " no longer" };
        self.done_to(worker, "setting", format!("{name}: its {what}{no_longer}"))
    }

    async fn describe(&mut self, action: Action) -> Result<Answer, Refusal> {
        let (worker, order) = match &action {
            Action::Unhealthy(worker, on) => (*worker, Order::Healthy(!on)),
            Action::Weight(worker, weight) => (*worker, Order::Weight(*weight)),
            Action::Zone(worker, zone) => (*worker, Order::Zone(zone.clone())),
            other => unreachable!("{other:?} describes no worker"),
        };
        let name = self.alive(worker)?;
        self.tell(worker, order.clone()).await?;
        let text = {
            let mut known = self.board.known();
            let place = &mut known.places[worker];
            match order {
                Order::Healthy(true) => {
                    place.healthy = true;
                    format!("{name} is healthy")
                }
                Order::Healthy(false) => {
                    place.healthy = false;
                    format!("{name} is unhealthy")
                }
                Order::Weight(weight) => {
                    place.weight = weight;
                    format!("{name} has the weight {weight}")
                }
                _ => {
                    let Action::Zone(_, zone) = action else {
                        unreachable!("zones are the rest");
                    };
                    let text = zone.as_deref().unwrap_or("none");
                    let text = format!("{name} is in the zone {text}");
                    place.zone = zone;
                    text
                }
            }
        };
        self.done_to(worker, "setting", text)
    }

    /// The name of a worker and the id that operators know it by.
    fn named(&self, worker: usize) -> Result<(String, String), Refusal> {
        let name = self.alive(worker)?;
        let known = self.board.known();
        let id = match known.setup.mode {
            Mode::Leader => known.places[worker].id.clone(),
            Mode::Lease => Some(name.clone()),
        };
        match id {
            Some(id) => Ok((name, id)),
            None => conflict(format!("{name} has no id yet")),
        }
    }

    async fn change(&self, change: impl FnMut(&mut Control)) -> Result<(), Refusal> {
        let changed = self.observer.change(change).await;
        changed.map(drop).map_err(refused)
    }

    async fn wish(&self, action: Action) -> Result<Answer, Refusal> {
        let (Action::Cordon(worker) | Action::Uncordon(worker) | Action::Drain(worker)) = action
        else {
            unreachable!("three actions are wishes for a worker");
        };
        let (name, id) = self.named(worker)?;
        let text = match action {
            Action::Cordon(_) => {
                self.change(|control| {
                    control.drained.remove(&id);
                    control.cordoned.insert(id.clone());
                })
                .await?;
                format!("{name} is cordoned: it keeps what it has, and gets nothing more")
            }
            Action::Drain(_) => {
                self.change(|control| {
                    control.cordoned.remove(&id);
                    control.drained.insert(id.clone());
                })
                .await?;
                format!("{name} is drained: it gives everything back")
            }
            _ => {
                let before = self.observer.control().await.map_err(refused)?;
                if !before.cordoned.contains(&id) && !before.drained.contains(&id) {
                    return conflict(format!("{name} is neither cordoned nor drained"));
                }
                self.change(|control| {
                    control.cordoned.remove(&id);
                    control.drained.remove(&id);
                })
                .await?;
                format!("{name} gets its share again")
            }
        };
        self.done_to(worker, "wish", text)
    }

    async fn pin(&self, action: Action) -> Result<Answer, Refusal> {
        let text = match action {
            Action::Pin(partition, worker) => {
                self.number_of(&partition)?;
                let (name, id) = self.named(worker)?;
                self.change(|control| {
                    control.pinned.insert(partition.clone(), id.clone());
                })
                .await?;
                format!("{partition} is pinned to {name}")
            }
            Action::Unpin(partition) => {
                self.number_of(&partition)?;
                let before = self.observer.control().await.map_err(refused)?;
                if !before.pinned.contains_key(&partition) {
                    return conflict(format!("{partition} is not pinned"));
                }
                self.change(|control| {
                    control.pinned.remove(&partition);
                })
                .await?;
                format!("{partition} may go where it belongs")
            }
            _ => {
                self.change(|control| control.refresh += 1).await?;
                "all workers look at everything".to_owned()
            }
        };
        self.done("wish", text)
    }

    /// The number of the partition of this name.
    fn number_of(&self, name: &str) -> Result<u32, Refusal> {
        let known = self.board.known();
        let count = known.setup.partitions as u32;
        let number = name
            .strip_prefix(known.group.as_str())
            .and_then(|rest| rest.strip_prefix(':'))
            .and_then(|number| number.parse().ok())
            .filter(|number| *number < count && name == format!("{}:{number}", known.group));
        number.ok_or_else(|| {
            let invalid = divvy_core::Invalid::new("partition", name, "is not among those here");
            Refusal::Missing(invalid.to_string())
        })
    }

    async fn divide(&mut self, action: Action) -> Result<Answer, Refusal> {
        let (order, text) = match action {
            Action::Partitions(count) => {
                let mut known = self.board.known();
                known.setup.partitions = count;
                known.partitions_max = known.partitions_max.max(count as u32);
                known.weights.retain(|number, _| *number < count as u32);
                let text = format!("there are {count} partitions");
                (Order::Partitions(count as u32), text)
            }
            Action::PartitionWeight(partition, weight) => {
                let number = self.number_of(&partition)?;
                self.board.known().weights.insert(number, weight);
                let text = format!("{partition} has the weight {weight}");
                (Order::PartitionWeight(number, weight), text)
            }
            other => unreachable!("{other:?} divides nothing"),
        };
        self.tell_all(|_place| order.clone()).await?;
        self.done("setting", text)
    }

    /// What is about no single worker.
    async fn act_on_all(&mut self, action: Action) -> Result<Answer, Refusal> {
        match action {
            Action::Store(state) => {
                self.board.known().store = state;
                self.tell_all(|place| Order::Weather(place.weather(state)))
                    .await?;
                let name = STORE_STATES.iter().find(|(_, known)| *known == state);
                let name = name.expect("all states have names").0;
                self.done("store", format!("the store is {name} for all workers"))
            }
            Action::Amnesia { .. } => {
                self.forget().await.map_err(refused)?;
                let text = "everything of this cluster was deleted, and nobody was told";
                self.done("store", text.to_owned())
            }
            Action::Renew(setup) => self.begin_again(*setup).await,
            other => unreachable!("{other:?} is done elsewhere"),
        }
    }

    async fn forget(&self) -> Result<(), StoreError> {
        let (group, partitions) = {
            let mut known = self.board.known();
            known.judge.forgot(super::now());
            (known.group.clone(), known.partitions_max)
        };
        match self.opened.forget().await? {
            true => Ok(()),
            // Leases go by their names, with all that is beside them.
            false => self.ground.erase(Mode::Lease, &group, partitions).await,
        }
    }

    async fn begin_again(&mut self, setup: Setup) -> Result<Answer, Refusal> {
        self.ground
            .check(setup.mode)
            .map_err(|invalid| Refusal::Conflict(invalid.to_string()))?;
        if setup.workers > REAL_WORKERS_MAX {
            let text = format!(
                "{} workers: on a real store each is a process, and at most {REAL_WORKERS_MAX} \
                 can be",
                setup.workers
            );
            return conflict(text);
        }
        let (mode, strategy) = (setup.mode, setup.strategy);
        let text = format!(
            "another cluster begins: {mode} mode, {strategy}, {}",
            setup.preset
        );
        self.renew(setup, "another cluster begins").await?;
        self.done("setting", text)
    }
}

fn refused(error: StoreError) -> Refusal {
    Refusal::Conflict(error.to_string())
}

fn conflict<T>(why: String) -> Result<T, Refusal> {
    Err(Refusal::Conflict(why))
}
