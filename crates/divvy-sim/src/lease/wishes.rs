//! What operators wish of a world's members.

use divvy_core::Control;
use divvy_core::store::LeaseNotice;

use super::LeaseWorld;
use crate::coverage::Mishap;
use crate::world::Happening;

/// What is wished at the moment.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Wishes {
    pub(super) control: Control,
    /// Nobody can read it.
    pub(super) is_garbled: bool,
}

impl Wishes {
    fn text(&self) -> String {
        match self.is_garbled {
            true => "{".to_owned(),
            false => String::from_utf8(self.control.encode()).expect("JSON is a text"),
        }
    }
}

impl LeaseWorld {
    /// Operators wish this from now on.
    pub(super) fn set_wishes(&mut self, wishes: Wishes) {
        if self.own.wishes == wishes {
            return;
        }
        let before = std::mem::replace(&mut self.own.wishes, wishes);
        let (old, new) = (&before.control, &self.own.wishes.control);
        let mishaps = [
            (new.cordoned != old.cordoned, Mishap::Cordoned),
            (new.drained != old.drained, Mishap::Drained),
            (new.pinned != old.pinned, Mishap::Pinned),
            (
                self.own.wishes.is_garbled && !before.is_garbled,
                Mishap::WishesGarbled,
            ),
        ];
        for (happened, mishap) in mishaps {
            if happened {
                self.count(mishap);
            }
        }
        self.write_wishes();
    }

    /// Writes what is wished into the store, as soon as that is there.
    pub(super) fn write_wishes(&mut self) {
        if self.reach.down_until > self.now {
            self.queue
                .push(self.reach.down_until, Happening::Errand(Self::write_wishes));
            return;
        }
        let cluster = self.processes[0].host.worker.cluster.clone();
        let (table, text) = (&mut self.store.table, self.own.wishes.text());
        let before = table.wishes(&cluster);
        // Nothing was wished, and nothing is.
        if before.is_none() && self.own.wishes == Wishes::default() {
            return;
        }
        table.set_wishes(&cluster, before.as_deref(), &text);
        self.spread(&LeaseNotice::Members);
    }
}
