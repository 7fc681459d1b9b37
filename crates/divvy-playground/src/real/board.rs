//! What a playground knows of its members: written by whoever hears them or
//! does something to them, read by the stage.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use divvy_sim::StoreState;
use tokio::sync::oneshot;

use super::judge::Judge;
use crate::live::Live;
use crate::member::line::Said;
use crate::member::weather::Weather;
use crate::setup::Setup;
use crate::timeline::Told;

/// Lines of members that are kept.
const LINES_MAX: usize = 20_000;
/// What waits to be told, at most.
const NOTES_MAX: usize = 10_000;

/// A member that was started, by number.
#[derive(Debug, Clone)]
pub(crate) struct Place {
    pub(crate) name: String,
    pub(crate) weight: f64,
    pub(crate) zone: Option<String>,
    pub(crate) healthy: bool,
    pub(crate) slow: bool,
    pub(crate) broken: bool,
    pub(crate) paused: bool,
    /// How it is cut off.
    pub(crate) isolated: Option<&'static str>,
    /// The life of its process; nothing while it has none.
    pub(crate) life: Option<usize>,
    /// Somebody wants it to end.
    pub(crate) is_leaving: bool,
    /// By which id the others know it.
    pub(crate) id: Option<String>,
    /// The last that went wrong, to be told once.
    trouble: Option<String>,
}

impl Place {
    pub(crate) fn new(name: String, weight: f64, zone: Option<String>) -> Self {
        Self {
            name,
            weight,
            zone,
            healthy: true,
            slow: false,
            broken: false,
            paused: false,
            isolated: None,
            life: None,
            is_leaving: false,
            id: None,
            trouble: None,
        }
    }

    pub(crate) const fn is_alive(&self) -> bool {
        self.life.is_some()
    }

    /// How it reaches a store that is like that.
    pub(crate) fn weather(&self, store: StoreState) -> Weather {
        match (self.isolated, store) {
            (Some("inward"), _) => Weather::Deaf,
            (Some(_), _) | (None, StoreState::Down) => Weather::Cut,
            (None, StoreState::Slow) => Weather::Slow,
            (None, StoreState::Up) => Weather::Open,
        }
    }
}

/// Something for the timeline.
#[derive(Debug)]
pub(crate) struct Note {
    pub(crate) kind: &'static str,
    pub(crate) told: Told,
    pub(crate) text: String,
}

/// Another cluster, which takes the place of the one before.
#[derive(Debug)]
pub(crate) struct Next {
    pub(crate) live: Live,
    pub(crate) why: String,
}

#[derive(Debug)]
pub(crate) struct Known {
    pub(crate) setup: Setup,
    /// The group of all partitions.
    pub(crate) group: String,
    pub(crate) lease_ms: u64,
    pub(crate) places: Vec<Place>,
    /// The number of the place of each life.
    pub(crate) lives: Vec<usize>,
    pub(crate) weights: BTreeMap<u32, f64>,
    /// The most partitions that there ever were.
    pub(crate) partitions_max: u32,
    pub(crate) store: StoreState,
    pub(crate) judge: Judge,
    pub(crate) notes: VecDeque<Note>,
    lines: VecDeque<String>,
    /// Who waits for an answer, by life and number.
    pub(crate) asked: BTreeMap<(usize, u64), oneshot::Sender<Option<String>>>,
    pub(crate) next: Option<Box<Next>>,
}

impl Known {
    pub(crate) fn new(setup: Setup, group: String, lease_ms: u64, judge: Judge) -> Self {
        Self {
            partitions_max: setup.partitions as u32,
            setup,
            group,
            lease_ms,
            places: Vec::new(),
            lives: Vec::new(),
            weights: BTreeMap::new(),
            store: StoreState::Up,
            judge,
            notes: VecDeque::new(),
            lines: VecDeque::new(),
            asked: BTreeMap::new(),
            next: None,
        }
    }

    pub(crate) fn alive(&self) -> usize {
        self.places.iter().filter(|place| place.is_alive()).count()
    }

    /// A life says a line.
    pub(crate) fn hear(&mut self, life: usize, line: String, said: Said) {
        let number = self.lives[life];
        let place = &mut self.places[number];
        self.judge.hear(life, &said);
        match said {
            Said::Done { number, refused } => {
                if let Some(asked) = self.asked.remove(&(life, number)) {
                    // Whoever asked may have lost patience.
                    let _unheard = asked.send(refused);
                }
                return;
            }
            Said::Deadline { identity, .. } => {
                place.id = identity.map(|(id, _)| id).or_else(|| place.id.take());
            }
            Said::Trouble { text } if place.trouble.as_ref() != Some(&text) => {
                place.trouble = Some(text.clone());
                let text = format!("{}: {text}", place.name);
                self.note_worker("error", number, text);
            }
            _ => {}
        }
        let name = &self.places[number].name;
        let line = format!("{name} {line}");
        if self.lines.len() == LINES_MAX {
            self.lines.pop_front();
        }
        self.lines.push_back(line);
    }

    /// A life is over; whether it was wanted.
    pub(crate) fn gone(&mut self, now: u64, life: usize, last_words: &str) {
        let number = self.lives[life];
        let place = &mut self.places[number];
        let (is_wanted, name) = (place.is_leaving, place.name.clone());
        if place.life == Some(life) {
            place.life = None;
            place.paused = false;
            place.isolated = None;
        }
        self.judge.gone(now, life, false);
        self.asked.retain(|(other, _), _| *other != life);
        if !is_wanted {
            let text = format!("{name} ended by itself: {last_words}");
            self.note_worker("error", number, text);
        }
    }

    pub(crate) fn note(&mut self, kind: &'static str, text: String) {
        self.push(kind, Told::default(), text);
    }

    pub(crate) fn note_worker(&mut self, kind: &'static str, worker: usize, text: String) {
        let told = Told {
            worker: Some(worker),
            ..Told::default()
        };
        self.push(kind, told, text);
    }

    fn push(&mut self, kind: &'static str, told: Told, text: String) {
        if self.notes.len() == NOTES_MAX {
            self.notes.pop_front();
        }
        self.notes.push_back(Note { kind, told, text });
    }

    /// The last lines of members, oldest first.
    pub(crate) fn lines(&self) -> Vec<String> {
        self.lines.iter().cloned().collect()
    }
}

/// Clones are the same.
#[derive(Debug, Clone)]
pub(crate) struct Board(Arc<Mutex<Known>>);

impl Board {
    pub(crate) fn new(known: Known) -> Self {
        Self(Arc::new(Mutex::new(known)))
    }

    pub(crate) fn known(&self) -> MutexGuard<'_, Known> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
