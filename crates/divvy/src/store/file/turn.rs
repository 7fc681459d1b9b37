//! Whose turn it is to write.
//!
//! SQLite alone lets writers poll for its lock with growing pauses, so one that
//! writes without pause keeps the others out for seconds. Here they queue in
//! the kernel instead, on two locks:
//!
//! ```text
//! lock NEXT    one waiter at a time comes to the front
//! lock TURN    it waits for the writer to finish
//! unlock NEXT  the following waiter comes to the front
//! …write…
//! unlock TURN
//! ```
//!
//! Who has just written finds NEXT taken by who waits for TURN, and so cannot
//! take two turns in a row while somebody waits. The kernel gives up the locks
//! of a process that dies.
//!
//! Only fairness rests on these locks. Were they deleted, SQLite's own would
//! still keep writers apart.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use divvy_core::store::StoreError;

use super::place::{Missing, NEXT_ENDING, Place, TURN_ENDING};

/// The two locks. Each thread opens its own: a lock belongs to an open file.
#[derive(Debug)]
pub(super) struct Turns {
    next: File,
    turn: File,
}

impl Turns {
    pub(super) fn open(place: &Place, missing: Missing) -> Result<Self, StoreError> {
        Ok(Self {
            next: place.open_beside(NEXT_ENDING, missing)?,
            turn: place.open_beside(TURN_ENDING, missing)?,
        })
    }

    /// The file for notes, which are read and written in our turn.
    pub(super) const fn notes(&self) -> &File {
        &self.next
    }

    /// Waits for our turn, without bound: a process that is stopped in its own
    /// turn keeps everyone waiting until it goes on or ends.
    pub(super) fn take(&self) -> io::Result<Turn<'_>> {
        lock(&self.next)?;
        let turn = lock(&self.turn);
        self.next.unlock()?;
        turn?;
        Ok(Turn(self))
    }
}

/// Our turn, until it is dropped.
#[derive(Debug)]
pub(super) struct Turn<'a>(&'a Turns);

impl Turn<'_> {
    /// Wakes those who watch. Failing costs them only time, for they also look
    /// from time to time.
    pub(super) fn ring(&self) {
        if let Err(error) = self.0.turn.write_all_at(b"!", 0) {
            tracing::debug!(%error, "cannot wake the other processes");
        }
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        // Cannot fail on an open file.
        let _unlocked = self.0.turn.unlock();
    }
}

fn lock(file: &File) -> io::Result<()> {
    loop {
        match file.lock() {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            done => return done,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;
    use std::thread;

    use super::*;

    #[test]
    fn who_has_just_written_lets_who_waits_go_first() {
        let directory = tempfile::tempdir().unwrap();
        let place = Place::find(&directory.path().join("divvy.db")).unwrap();
        let open = || Turns::open(&place, Missing::Make).unwrap();
        let (mine, theirs) = (open(), open());
        let probe = place.open_beside(NEXT_ENDING, Missing::Refuse).unwrap();
        for _ in 0..100 {
            let order = Mutex::new(Vec::new());
            let first = mine.take().unwrap();
            thread::scope(|scope| {
                scope.spawn(|| {
                    let _turn = theirs.take().unwrap();
                    order.lock().unwrap().push("who waited");
                });
                while probe.try_lock().is_ok() {
                    probe.unlock().unwrap();
                    thread::yield_now();
                }
                drop(first);
                let _turn = mine.take().unwrap();
                order.lock().unwrap().push("who wrote");
            });
            assert_eq!(order.into_inner().unwrap(), ["who waited", "who wrote"]);
        }
    }
}
