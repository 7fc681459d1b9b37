//! What happened, told in sentences.

use divvy_core::Health;
use divvy_sim::{Deed, Done, PlaceState};

use super::Engine;
use crate::gauge::Start;
use crate::timeline::Told;

impl Engine {
    /// Notes something that is about nobody in particular.
    pub(super) fn note(&mut self, kind: &'static str, text: String) {
        let at_ms = self.now_ms();
        self.timeline.tell(at_ms, kind, Told::default(), text);
    }

    /// Notes something about a worker.
    pub(super) fn note_worker(&mut self, kind: &'static str, worker: usize, text: String) {
        let told = Told {
            worker: Some(worker),
            ..Told::default()
        };
        self.timeline.tell(self.now_ms(), kind, told, text);
    }

    /// Takes in what was done in the world.
    pub(super) fn hear_deeds(&mut self) {
        for done in self.world.take_deeds() {
            if let Some(start) = self.gauge.hear(&done) {
                let cause = self.cause(&start);
                self.gauge.begin(&start, cause, self.setup.exclusive);
                self.failing
                    .retain(|(_, failed)| *failed != start.partition);
                self.tell_start(&start, cause);
                continue;
            }
            self.tell_deed(&done);
        }
        let places = 0..self.world.count_places();
        let mut leaders = places.filter(|place| self.world.place(*place).is_leader);
        let leader = leaders.next();
        if leader != self.leader {
            self.leader = leader;
            if let Some(leader) = leader {
                let text = format!("{} leads", self.name(leader));
                self.note_worker("leader", leader, text);
            }
        }
    }

    /// What an invariant has seen, with the names that are shown: it knows
    /// only numbers.
    pub(super) fn named_in(&self, seen: &str) -> String {
        let mut after_partition = false;
        let words = seen.split(' ').map(|word| {
            let plain = word.trim_end_matches([',', ':', ';', '.']);
            let rest = &word[plain.len()..];
            let number = |text: &str| text.parse::<usize>().ok();
            let place = plain.strip_prefix('m').and_then(number);
            let place = place.filter(|place| *place < self.world.count_places());
            let partition = number(plain).filter(|_| after_partition);
            let partition = partition.filter(|it| *it < self.world.count_partitions());
            after_partition = plain == "partition";
            match (place, partition) {
                (Some(place), _) => format!("{}{rest}", self.name(place)),
                (_, Some(partition)) => format!("{}{rest}", self.world.name_of(partition)),
                _ => word.to_owned(),
            }
        });
        words.collect::<Vec<_>>().join(" ")
    }

    fn name(&self, worker: usize) -> String {
        self.world.place(worker).name
    }

    fn tell_deed(&mut self, done: &Done) {
        let at_ms = done.at.nanos() / 1_000_000;
        let (kind, worker, partition, text) = match &done.deed {
            // Tries follow one another: that they fail is told once.
            Deed::StartFailed { place, partition }
                if !self.failing.insert((*place, *partition)) =>
            {
                return;
            }
            Deed::StartFailed { place, partition } => {
                let (name, of) = (self.name(*place), self.world.name_of(*partition));
                (
                    "error",
                    *place,
                    Some(of.clone()),
                    format!("{name} could not start {of}, and tries again"),
                )
            }
            Deed::Stopped { place, partition } => {
                let (name, of) = (self.name(*place), self.world.name_of(*partition));
                (
                    "stopped",
                    *place,
                    Some(of.clone()),
                    format!("{name} stopped {of}"),
                )
            }
            Deed::Gone { place, in_order } => {
                self.failing.retain(|(failed, _)| failed != place);
                let name = self.name(*place);
                let (kind, text) = match in_order {
                    true => ("left", format!("{name} left")),
                    false => ("killed", format!("{name} is gone, and told nobody")),
                };
                (kind, *place, None, text)
            }
            // That is told already, by what happened.
            Deed::Problem { text, .. }
                if text.starts_with("the start hook of ") && text.ends_with(" failed") =>
            {
                return;
            }
            Deed::Problem { place, text } => {
                let text = format!("{}: {text}", self.name(*place));
                ("error", *place, None, text)
            }
            Deed::Started { .. } | Deed::Stopping { .. } | Deed::Leads { .. } => return,
        };
        let told = Told {
            worker: Some(worker),
            partition,
            ..Told::default()
        };
        self.timeline.tell(at_ms, kind, told, text);
    }

    fn tell_start(&mut self, start: &Start, cause: &'static str) {
        let partition = self.world.name_of(start.partition);
        let to = self.name(start.worker);
        let (kind, text) = match start.before {
            None => (
                "started",
                format!("{to} started {partition}: {}", words(cause)),
            ),
            Some(before) => {
                let from = self.name(before);
                let why = words(cause);
                (
                    "moved",
                    format!("{partition} moved from {from} to {to}: {why}"),
                )
            }
        };
        let told = Told {
            worker: Some(start.worker),
            partition: Some(partition),
            from: start.before,
            to: Some(start.worker),
            token: Some(start.token.to_string()),
            cause: Some(cause),
        };
        self.timeline.tell(start.at_ms, kind, told, text);
    }

    /// Why a partition was started where it was, seen from above: what became
    /// of whoever had it before.
    fn cause(&self, start: &Start) -> &'static str {
        let Some(before) = start.before else {
            let is_new = self.gauge.tenures(start.partition).next().is_none();
            return if is_new { "new" } else { "again" };
        };
        let name = self.world.name_of(start.partition);
        if self.control.pinned.contains_key(&name) {
            return "pinned";
        }
        let place = self.world.place(before);
        let is_drained = |id: &String| self.control.drained.contains(id);
        match place.state {
            PlaceState::Gone | PlaceState::Joining => "lost",
            PlaceState::Stopping => "left",
            _ if place.is_paused || place.isolation.is_some() => "cut_off",
            _ if place.id.as_ref().is_some_and(is_drained) => "drained",
            _ if place.health != Health::Healthy || place.weight == 0.0 => "unhealthy",
            _ => "balance",
        }
    }
}

/// A cause in words.
pub(super) fn words(cause: &str) -> &'static str {
    match cause {
        "new" => "nobody had it before",
        "again" => "it had it before",
        "pinned" => "an operator pinned it",
        "lost" => "its worker was lost",
        "left" => "its worker left",
        "cut_off" => "its worker was not heard of any more",
        "drained" => "an operator drained its worker",
        "unhealthy" => "its worker may not have it",
        _ => "it belongs there",
    }
}
