//! What is done to a world.

use std::time::{Duration, Instant};

use divvy_core::Health;
use divvy_sim::{Broken, HookWeather, Mode, Newcomer, Place, StoreState};
use serde::Serialize;
use serde_json::Value;

use super::{Engine, Refusal};
use crate::action::{Action, ISOLATIONS, STORE_STATES};
use crate::setup::{PLACES_MAX, WORKERS_MAX};

/// How long may be calculated for a step: of a world that takes longer, less
/// passes.
const STEP: Duration = Duration::from_secs(5);
/// What one partition weighs by default, inside.
const WEIGHT: f64 = 100.0;

/// What was done.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Answer {
    /// What, in a sentence.
    pub done: String,
    /// The worker that joined; of several, the first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub worker: Option<usize>,
}

impl Answer {
    pub(crate) fn of(done: impl Into<String>) -> Result<Self, Refusal> {
        Ok(Self {
            done: done.into(),
            worker: None,
        })
    }
}

impl Engine {
    /// Does what a request asks for.
    pub fn request(&mut self, value: Value) -> Result<Answer, Refusal> {
        let action = Action::read(value, &self.home)?;
        self.act(&action)
    }

    /// Does something, and looks what became of it.
    pub fn act(&mut self, action: &Action) -> Result<Answer, Refusal> {
        let answer = self.act_now(action);
        self.look();
        answer
    }

    pub(super) fn act_now(&mut self, action: &Action) -> Result<Answer, Refusal> {
        if !action.is_of(self.setup.mode) {
            let mode = self.setup.mode;
            return Err(Refusal::Conflict(format!("{mode} mode does not know that")));
        }
        if self.is_replay && !action.is_of_replay() {
            let why = "a replay runs its course: reset begins a world to play with";
            return conflict(why.to_owned());
        }
        match action {
            Action::Add { .. } => self.add(action),
            Action::Stop { worker, keep } => {
                let place = self.alive(*worker)?;
                self.world.ask_to_stop(*worker, *keep);
                self.tell_worker("wish", *worker, format!("{} was asked to stop", place.name))
            }
            Action::Kill(worker) => {
                let place = self.alive(*worker)?;
                let done = self.world.crash(*worker);
                self.held_against(done);
                Answer::of(format!("{} was killed", place.name))
            }
            Action::Restart(worker) => self.restart(*worker),
            Action::Pause(worker) => {
                let place = self.alive(*worker)?;
                if place.is_paused {
                    return conflict(format!("{} stands still already", place.name));
                }
                self.world.pause(*worker);
                self.tell_worker("paused", *worker, format!("{} stands still", place.name))
            }
            Action::Resume(worker) => {
                let place = self.alive(*worker)?;
                if !place.is_paused {
                    return conflict(format!("{} does not stand still", place.name));
                }
                let done = self.world.go_on_at(*worker);
                self.held_against(done);
                self.tell_worker("resumed", *worker, format!("{} goes on", place.name))
            }
            Action::Isolate(worker, how) => {
                let place = self.alive(*worker)?;
                self.world.cut_off(*worker, Some(*how));
                let way = ISOLATIONS.iter().find(|(_, known)| known == how);
                let way = way.expect("all ways have names").0;
                let text = format!("{} is cut off: {way}", place.name);
                self.tell_worker("note", *worker, text)
            }
            Action::Reconnect(worker) => {
                let place = self.place(*worker)?;
                if place.isolation.is_none() {
                    return conflict(format!("{} is not cut off", place.name));
                }
                self.world.cut_off(*worker, None);
                self.tell_worker(
                    "note",
                    *worker,
                    format!("{} is connected again", place.name),
                )
            }
            Action::Slow(..) | Action::Broken(..) => self.set_hooks(action),
            Action::Unhealthy(..) | Action::Weight(..) | Action::Zone(..) => self.describe(action),
            Action::Cordon(_) | Action::Uncordon(_) | Action::Drain(_) => self.wish(action),
            Action::Pin(..) | Action::Unpin(_) => self.pin(action),
            Action::Partitions(_) | Action::PartitionWeight(..) => self.divide(action),
            _ => self.act_on_all(action),
        }
    }

    /// What is about no single worker.
    fn act_on_all(&mut self, action: &Action) -> Result<Answer, Refusal> {
        match action {
            Action::Store(state) => {
                self.world.set_store(*state);
                if let Some(neighbour) = &mut self.neighbour {
                    neighbour.set_store(*state);
                }
                let name = STORE_STATES.iter().find(|(_, known)| known == state);
                let name = name.expect("all states have names").0;
                self.tell("store", format!("the store is {name}"))
            }
            Action::Amnesia { announced } => {
                self.control = divvy_core::Control::default();
                let done = self.world.forget_all(*announced);
                self.held_against(done);
                let beside = self.neighbour.as_mut();
                let done = beside.map_or(Ok(()), |it| it.forget_all(*announced));
                self.held_against(done);
                if self.setup.mode == Mode::Lease {
                    self.world.wish(&self.control);
                }
                let how = if *announced {
                    "and says so"
                } else {
                    "and says nothing"
                };
                self.tell("store", format!("the store forgot everything, {how}"))
            }
            Action::Renew(setup) => {
                let (speed, is_running) = (self.speed, self.is_running);
                self.renew((**setup).clone(), "another world begins");
                self.home.clone_from(&self.setup);
                (self.speed, self.is_running) = (speed, is_running);
                let (mode, strategy) = (self.setup.mode, self.setup.strategy);
                let preset = &self.setup.preset;
                let text = format!("another world begins: {mode} mode, {strategy}, {preset}");
                self.tell("setting", text)
            }
            Action::Speed(speed) => {
                self.speed = *speed;
                Answer::of(format!("time passes {speed} times as fast"))
            }
            Action::Run => {
                self.is_running = true;
                Answer::of("time passes")
            }
            Action::Hold => {
                self.is_running = false;
                Answer::of("time stands still")
            }
            Action::Step(span) => {
                self.is_running = false;
                let before = self.now_ms();
                let until = self.world.time() + *span;
                self.pass_until(until, Some(Instant::now() + STEP));
                Answer::of(format!("{} ms passed", self.now_ms() - before))
            }
            Action::Refresh => {
                let done = self.world.refresh_all();
                self.held_against(done);
                self.tell("wish", "all workers look at everything".to_owned())
            }
            other => unreachable!("{other:?} is done elsewhere"),
        }
    }

    fn tell(&mut self, kind: &'static str, text: String) -> Result<Answer, Refusal> {
        self.note(kind, text.clone());
        Answer::of(text)
    }

    fn tell_worker(
        &mut self,
        kind: &'static str,
        worker: usize,
        text: String,
    ) -> Result<Answer, Refusal> {
        self.note_worker(kind, worker, text.clone());
        Answer::of(text)
    }

    /// What hands did may itself break an invariant.
    fn held_against(&mut self, done: Result<(), Broken>) {
        if let Err(broken) = done {
            self.broke(&broken);
            self.is_running = false;
        }
    }

    pub(super) fn place(&self, worker: usize) -> Result<Place, Refusal> {
        let is_known = worker < self.world.count_places() && !self.removed.contains(&worker);
        match is_known {
            true => Ok(self.world.place(worker)),
            false => Err(Refusal::Missing(format!("there is no worker {worker}"))),
        }
    }

    fn alive(&self, worker: usize) -> Result<Place, Refusal> {
        let place = self.place(worker)?;
        match place.is_alive() {
            true => Ok(place),
            false => conflict(format!("{} is gone: restart it first", place.name)),
        }
    }

    fn add(&mut self, action: &Action) -> Result<Answer, Refusal> {
        let Action::Add {
            count,
            weight,
            zone,
            name,
        } = action
        else {
            unreachable!("workers are added by the action add");
        };
        let places = self.places();
        let alive = places.iter().filter(|place| place.is_alive()).count();
        if alive + count > WORKERS_MAX {
            let text = format!("{count} more than {alive} workers: at most {WORKERS_MAX} can be");
            return conflict(text);
        }
        if places.len() + count > PLACES_MAX {
            let text = format!("this world had {PLACES_MAX} workers: reset it");
            return conflict(text);
        }
        if let Some(name) = name
            && places.iter().any(|place| place.name == *name)
        {
            return conflict(format!("there is a worker {name} already"));
        }
        let newcomer = Newcomer {
            name: name.clone(),
            weight: *weight,
            zone: zone.clone(),
        };
        let first = self.world.add(&newcomer);
        for _ in 1..*count {
            self.world.add(&newcomer);
        }
        let last = self.world.count_places();
        for worker in first..last {
            let text = format!("{} joins", self.world.place(worker).name);
            self.note_worker("joined", worker, text);
        }
        let name = self.world.place(first).name;
        Ok(Answer {
            done: match *count {
                1 => format!("{name} joins"),
                count => format!("{count} workers join"),
            },
            worker: Some(first),
        })
    }

    fn restart(&mut self, worker: usize) -> Result<Answer, Refusal> {
        let place = self.place(worker)?;
        if place.is_alive() {
            return conflict(format!("{} is there: kill or stop it first", place.name));
        }
        let alive = self
            .places()
            .iter()
            .filter(|place| place.is_alive())
            .count();
        if alive >= WORKERS_MAX {
            return conflict(format!(
                "there are {alive} workers: at most {WORKERS_MAX} can be"
            ));
        }
        let done = self.world.boot_again(worker);
        self.held_against(done);
        self.tell_worker("joined", worker, format!("{} starts again", place.name))
    }

    fn set_hooks(&mut self, action: &Action) -> Result<Answer, Refusal> {
        let (worker, what, on) = match action {
            Action::Slow(worker, on) => (*worker, "hooks are slow", *on),
            Action::Broken(worker, on) => (*worker, "hooks fail", *on),
            other => unreachable!("{other:?} is not about hooks"),
        };
        let place = self.place(worker)?;
        let rate = if on { 1.0 } else { 0.0 };
        let hooks = match action {
            Action::Slow(..) => HookWeather {
                slow: rate,
                ..place.hooks
            },
            _ => HookWeather {
                failing: rate,
                ..place.hooks
            },
        };
        self.world.set_hooks(worker, hooks);
        let no_longer = if on { "" } else { " no longer" };
        self.tell_worker(
            "setting",
            worker,
            format!("{}: its {what}{no_longer}", place.name),
        )
    }

    fn describe(&mut self, action: &Action) -> Result<Answer, Refusal> {
        let (Action::Unhealthy(worker, _) | Action::Weight(worker, _) | Action::Zone(worker, _)) =
            action
        else {
            unreachable!("workers are described by three actions");
        };
        let worker = *worker;
        let mut place = self.place(worker)?;
        let name = place.name.clone();
        let text = match action {
            Action::Unhealthy(_, true) => {
                place.health = Health::Unhealthy;
                format!("{name} is unhealthy")
            }
            Action::Unhealthy(_, false) => {
                place.health = Health::Healthy;
                format!("{name} is healthy")
            }
            Action::Weight(_, weight) => {
                place.weight = *weight;
                format!("{name} has the weight {weight}")
            }
            Action::Zone(_, zone) => {
                place.zone.clone_from(zone);
                let zone = zone.as_deref().unwrap_or("none");
                format!("{name} is in the zone {zone}")
            }
            other => unreachable!("{other:?} describes no worker"),
        };
        let (health, weight) = (place.health, place.weight);
        let zone = place.zone.as_deref();
        let done = self.world.set_description(worker, health, weight, zone);
        self.held_against(done);
        self.tell_worker("setting", worker, text)
    }

    fn wish(&mut self, action: &Action) -> Result<Answer, Refusal> {
        let (Action::Cordon(worker) | Action::Uncordon(worker) | Action::Drain(worker)) = action
        else {
            unreachable!("three actions are wishes for a worker");
        };
        let (place, id) = self.named(*worker)?;
        let name = place.name;
        let text = match action {
            Action::Cordon(_) => {
                self.control.cordoned.insert(id);
                format!("{name} is cordoned: it keeps what it has, and gets nothing more")
            }
            Action::Drain(_) => {
                self.control.drained.insert(id);
                format!("{name} is drained: it gives everything back")
            }
            _ => {
                let was_cordoned = self.control.cordoned.remove(&id);
                if !self.control.drained.remove(&id) && !was_cordoned {
                    return conflict(format!("{name} is neither cordoned nor drained"));
                }
                format!("{name} gets its share again")
            }
        };
        self.world.wish(&self.control);
        self.tell_worker("wish", *worker, text)
    }

    /// A worker that operators can name, where the store takes wishes.
    fn named(&self, worker: usize) -> Result<(Place, String), Refusal> {
        if self.world.store().state == StoreState::Down {
            return conflict("the store is down, and takes no wishes".to_owned());
        }
        let place = self.alive(worker)?;
        match place.id.clone() {
            Some(id) => Ok((place, id)),
            None => conflict(format!("{} has no id yet", place.name)),
        }
    }

    fn pin(&mut self, action: &Action) -> Result<Answer, Refusal> {
        let text = match action {
            Action::Pin(partition, worker) => {
                self.number_of(partition)?;
                let (place, id) = self.named(*worker)?;
                self.control.pinned.insert(partition.clone(), id);
                format!("{partition} is pinned to {}", place.name)
            }
            Action::Unpin(partition) => {
                self.number_of(partition)?;
                if self.world.store().state == StoreState::Down {
                    return conflict("the store is down, and takes no wishes".to_owned());
                }
                if self.control.pinned.remove(partition).is_none() {
                    return conflict(format!("{partition} is not pinned"));
                }
                format!("{partition} may go where it belongs")
            }
            other => unreachable!("{other:?} pins nothing"),
        };
        self.world.wish(&self.control);
        self.tell("wish", text)
    }

    /// The number of the partition of this name.
    pub(super) fn number_of(&self, name: &str) -> Result<usize, Refusal> {
        let number = name
            .rsplit_once(':')
            .and_then(|(_, text)| text.parse().ok());
        let is_it = |number: &usize| {
            *number < self.world.count_partitions() && self.world.name_of(*number) == name
        };
        // Where there are several groups, numbers count through all of them.
        let anywhere = || (0..self.world.count_partitions()).find(is_it);
        number.filter(is_it).or_else(anywhere).ok_or_else(|| {
            let invalid = divvy_core::Invalid::new("partition", name, "is not among those here");
            Refusal::Missing(invalid.to_string())
        })
    }

    fn divide(&mut self, action: &Action) -> Result<Answer, Refusal> {
        let (done, text) = match action {
            Action::Partitions(count) => {
                let done = self.world.set_partitions(*count);
                (done, format!("there are {count} partitions"))
            }
            Action::PartitionWeight(partition, weight) => {
                let number = self.number_of(partition)?;
                let inside = (weight * WEIGHT).round().max(1.0) as i64;
                let done = self.world.set_weight(number, inside);
                (done, format!("{partition} has the weight {weight}"))
            }
            other => unreachable!("{other:?} divides nothing"),
        };
        self.held_against(done);
        self.compass.relist(&*self.world);
        self.tell("setting", text)
    }
}

fn conflict<T>(why: String) -> Result<T, Refusal> {
    Err(Refusal::Conflict(why))
}
