//! What operators override in a world.

use std::sync::Arc;

use divvy_core::Control;
use divvy_core::leader::Operation;
use divvy_core::store::{Expected, Key};

use super::World;
use crate::coverage::Mishap;

impl World {
    /// An operator cordons, drains or pins something more, or writes what
    /// nobody can read.
    pub(super) fn override_placement(&mut self, what: usize) {
        self.count(Mishap::Override);
        let member = what / 4 % self.processes.len();
        let machine = self.processes[member].machine.as_ref();
        let worker = machine.and_then(|machine| machine.worker_id());
        let worker = worker.unwrap_or("worker-0").to_owned();
        let partition = what / 4 % self.own.source.count().max(1);
        let text = self.store.table.get(&control_key());
        let mut control = text
            .and_then(|entry| Control::decode(&entry.value).ok())
            .unwrap_or_default();
        match what % 4 {
            0 => {
                control.cordoned.insert(worker);
            }
            1 => {
                control.drained.insert(worker);
            }
            2 => {
                control.pinned.insert(format!("p:{partition}"), worker);
            }
            _ => return self.write_control(b"{"),
        }
        self.write_control(&control.encode());
    }

    /// Nothing is overridden any more.
    pub(super) fn end_overrides(&mut self) {
        if self.store.table.get(&control_key()).is_some() {
            self.write_control(&Control::default().encode());
        }
    }

    fn write_control(&mut self, value: &[u8]) {
        let key = control_key();
        let found = self.store.table.get(&key).map(|entry| entry.revision);
        self.note(|| format!("an operator writes {}", String::from_utf8_lossy(value)));
        let operation = Operation::CompareAndSet {
            key,
            expected: Expected::from(found),
            value: value.into(),
        };
        if let (_, Some(change)) = self.store.apply(&operation, self.now) {
            self.spread(&Arc::new(change));
        }
    }
}

fn control_key() -> Key {
    Key::new(["ctl"]).expect("a valid key")
}
