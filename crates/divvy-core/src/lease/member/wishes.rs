//! What operators wish, as this worker last read it.

use std::collections::BTreeMap;

use crate::control::Control;
use crate::lease::group::Group;

/// The last wishes that could be read.
#[derive(Debug, Clone, Default)]
pub(super) struct Wishes {
    control: Control,
    /// The text that was read last, so that each is judged and told once.
    text: Option<String>,
    is_read: bool,
}

/// What changed with wishes that were read.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum News {
    /// Nothing.
    None,
    /// Somebody is to own more, less or something else.
    Changed,
    /// Besides, everything is to be read anew.
    Refresh,
    /// They cannot be read: the last good ones stay.
    Unreadable(String),
}

impl Wishes {
    /// Takes in what the store has.
    pub(super) fn read(&mut self, text: Option<&str>) -> News {
        if self.is_read && self.text.as_deref() == text {
            return News::None;
        }
        let is_first = !std::mem::replace(&mut self.is_read, true);
        self.text = text.map(str::to_owned);
        let control = match text.map(|text| Control::decode(text.as_bytes())) {
            None => Control::default(),
            Some(Ok(control)) => control,
            Some(Err(invalid)) => return News::Unreadable(invalid.to_string()),
        };
        let is_refresh = control.refresh > self.control.refresh && !is_first;
        let is_changed = control != self.control;
        self.control = control;
        match (is_refresh, is_changed) {
            (true, _) => News::Refresh,
            (false, true) => News::Changed,
            (false, false) => News::None,
        }
    }

    /// The last good ones.
    pub(super) const fn control(&self) -> &Control {
        &self.control
    }

    /// Whether this worker keeps what it has, and takes nothing more.
    pub(super) fn is_cordoned(&self, worker: &str) -> bool {
        self.control.cordoned.contains(worker) || self.is_drained(worker)
    }

    /// Whether this worker gives up everything.
    pub(super) fn is_drained(&self, worker: &str) -> bool {
        self.control.drained.contains(worker)
    }

    /// Which partitions of a group are pinned, by their numbers, and to whom.
    pub(super) fn pins(&self, group: &Group) -> BTreeMap<u32, &str> {
        let prefix = format!("{}:", group.name());
        let pinned = self.control.pinned.range(prefix.clone()..);
        pinned
            .take_while(|(partition, _)| partition.starts_with(&prefix))
            .filter_map(|(partition, worker)| {
                let number = partition[prefix.len()..].parse().ok()?;
                Some((number, worker.as_str()))
            })
            .collect()
    }
}
