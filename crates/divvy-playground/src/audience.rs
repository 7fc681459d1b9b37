//! What followers have been told: all that they see, and up to which number.

use std::collections::VecDeque;

use crate::document::{Point, Snapshot};
use crate::engine::News;
use crate::shown::{Origin, Shown};
use crate::timeline::Timeline;

#[derive(Debug)]
pub(crate) struct Audience {
    /// What they see; nothing before something was shown.
    view: Option<Shown>,
    /// The number of the last news.
    sequence: u64,
    /// The number of the last event that they were told.
    told: u64,
}

impl Audience {
    /// One that has seen nothing, whose news are numbered after `first`.
    pub(crate) const fn new(first: u64) -> Self {
        Self {
            view: None,
            sequence: first,
            told: 0,
        }
    }

    /// What was shown last, if anything was.
    pub(crate) const fn view(&self) -> Option<&Shown> {
        self.view.as_ref()
    }

    /// What was shown last.
    pub(crate) fn shown(&self) -> &Shown {
        self.view().expect("a stage begins with a view")
    }

    /// This is shown, without a word.
    pub(crate) fn show(&mut self, shown: Shown) {
        self.view = Some(shown);
    }

    /// What it is to be told if this is shown next.
    pub(crate) fn news(&mut self, next: Shown, timeline: &Timeline) -> Option<News> {
        let before = self.shown();
        let mut delta = before.delta_to(&next);
        delta.events = timeline.untold(self.told);
        if !delta.is_news(before) {
            return None;
        }
        delta.sequence = self.count(timeline);
        self.show(next);
        Some(News::Delta(Box::new(delta)))
    }

    /// Something is told, all events up to now with it; gives its number.
    pub(crate) const fn count(&mut self, timeline: &Timeline) -> u64 {
        self.told = timeline.last();
        self.sequence += 1;
        self.sequence
    }

    /// Takes the place of another, whose numbers go on.
    pub(crate) const fn succeed(&mut self, before: &Self) {
        self.sequence = before.sequence;
    }

    /// Everything, as the last news left it.
    pub(crate) fn snapshot(&self, origin: Origin, points: &VecDeque<Point>) -> Snapshot {
        let shown = self.shown();
        let seen_ms = shown.clock.now_ms;
        let history = points.iter().filter(|point| point.at_ms <= seen_ms);
        let history = history.cloned().collect();
        shown.clone().snapshot(self.sequence, origin, history)
    }
}
