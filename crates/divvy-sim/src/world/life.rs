//! The life of a world that somebody watches or plays with: time, processes
//! and what is told of them, which is the same for both modes.

use divvy_core::store::Token;

use super::WorldOf;
use super::coordination::Coordination;
use crate::fault::{HookWeather, Isolation};
use crate::hands::{Chronicle, Done, StoreState, StoreView, Trace};
use crate::invariants::Broken;
use crate::mode::Mode;
use crate::profile::LATENCY;
use crate::time::{NEVER, TrueTime};

/// What can be done with a world whichever mode it is of. Who asks for a place
/// that there is not panics.
pub trait Life {
    /// Which kind of coordination it is.
    fn mode(&self) -> Mode;

    /// What it is now.
    fn time(&self) -> TrueTime;

    /// Lets everything happen that is due by `until`.
    fn go_on(&mut self, until: TrueTime) -> Result<(), Broken> {
        self.go_on_while(until, &mut || true).map(|_| ())
    }

    /// The same for as long as there is `more` to be done: asked after
    /// everything that happens. Gives whether all of it has.
    fn go_on_while(
        &mut self,
        until: TrueTime,
        more: &mut dyn FnMut() -> bool,
    ) -> Result<bool, Broken>;

    /// Whether it has run its course, and nothing more will happen.
    fn has_ended(&self) -> bool;

    /// How many places there are, gone ones included.
    fn count_places(&self) -> usize;

    /// Calls `work` with the place, the partition and the token of everything
    /// that runs with authority.
    fn each_working(&self, work: &mut dyn FnMut(usize, usize, Token));

    /// Calls `hook` with the place and the partition of every hook that has
    /// not returned.
    fn each_hook(&self, hook: &mut dyn FnMut(usize, usize));

    /// A process ends, as a crash ends it.
    fn crash(&mut self, place: usize) -> Result<(), Broken>;

    /// A process is started where none is.
    fn boot_again(&mut self, place: usize) -> Result<(), Broken>;

    /// A process stands still.
    fn pause(&mut self, place: usize);

    /// It goes on.
    fn go_on_at(&mut self, place: usize) -> Result<(), Broken>;

    /// A member is cut off, or is not any more.
    fn cut_off(&mut self, place: usize, how: Option<Isolation>);

    /// How the hooks of a member fare from now on.
    fn set_hooks(&mut self, place: usize, hooks: HookWeather);

    /// All members look at everything.
    fn refresh_all(&mut self) -> Result<(), Broken>;

    /// How the store is.
    fn store(&self) -> StoreView;

    /// Takes what was done since the last time.
    fn take_deeds(&mut self) -> Vec<Done>;

    /// How many facts were held against the invariants.
    fn facts_told(&self) -> u64;

    /// The last lines of the trace.
    fn last_lines(&self) -> Vec<String>;
}

impl<C: Coordination> Life for WorldOf<C> {
    fn mode(&self) -> Mode {
        C::MODE
    }

    fn time(&self) -> TrueTime {
        self.now
    }

    fn go_on_while(
        &mut self,
        until: TrueTime,
        more: &mut dyn FnMut() -> bool,
    ) -> Result<bool, Broken> {
        while !self.has_ended() {
            let stage = self.next_stage_at(until);
            let stop = stage.unwrap_or(until);
            while let Some((at, happening)) = self.queue.pop(stop) {
                self.begin_at(at);
                self.happen(happening)?;
                if !more() {
                    return Ok(false);
                }
            }
            self.run_until(stop)?;
            match stage {
                Some(_) => self.next_stage()?,
                None => return Ok(true),
            }
        }
        Ok(true)
    }

    fn has_ended(&self) -> bool {
        self.frame().room.is_none() && self.course.is_none()
    }

    fn count_places(&self) -> usize {
        self.processes.len()
    }

    fn each_working(&self, work: &mut dyn FnMut(usize, usize, Token)) {
        for (place, process) in self.processes.iter().enumerate() {
            for (partition, token) in C::working(process, self.now) {
                work(place, partition, token);
            }
        }
    }

    fn each_hook(&self, hook: &mut dyn FnMut(usize, usize)) {
        for (place, process) in self.processes.iter().enumerate() {
            for call in process.calls.values() {
                hook(place, call.partition);
            }
        }
    }

    fn crash(&mut self, place: usize) -> Result<(), Broken> {
        self.processes[place].stillness = None;
        self.processes[place].comes_back = None;
        self.end(place, false)
    }

    fn boot_again(&mut self, place: usize) -> Result<(), Broken> {
        self.processes[place].stillness = None;
        self.processes[place].silent_since = None;
        self.boot(place)
    }

    fn pause(&mut self, place: usize) {
        self.processes[place].silent_since.get_or_insert(self.now);
        let paused = self.stand_still(place, NEVER.elapsed(), false);
        paused.expect("standing still breaks nothing");
    }

    fn go_on_at(&mut self, place: usize) -> Result<(), Broken> {
        let process = &mut self.processes[place];
        if let Some(still) = &mut process.stillness {
            still.until = self.now;
        }
        process.silent_since = process.silent_since.filter(|_| process.isolation.is_some());
        self.resume(place)
    }

    fn cut_off(&mut self, place: usize, how: Option<Isolation>) {
        let process = &mut self.processes[place];
        match how {
            Some(_) => {
                process.silent_since.get_or_insert(self.now);
            }
            None if process.stillness.is_none() => process.silent_since = None,
            None => {}
        }
        self.isolate(place, how);
    }

    fn set_hooks(&mut self, place: usize, hooks: HookWeather) {
        self.processes[place].hooks = hooks;
    }

    fn refresh_all(&mut self) -> Result<(), Broken> {
        for place in 0..self.processes.len() {
            self.refresh(place)?;
        }
        Ok(())
    }

    fn store(&self) -> StoreView {
        let latency = self.frame().latency;
        let is_down = self.reach.refuses_until.max(self.reach.down_until) > self.now;
        StoreView {
            state: match is_down {
                true => StoreState::Down,
                false if latency == LATENCY => StoreState::Up,
                false => StoreState::Slow,
            },
            latency: latency.1,
            incarnation: self.reach.incarnation().as_str().to_owned(),
        }
    }

    fn take_deeds(&mut self) -> Vec<Done> {
        self.chronicle
            .as_mut()
            .map_or_else(Vec::new, Chronicle::take)
    }

    fn facts_told(&self) -> u64 {
        self.chronicle.as_ref().map_or(0, Chronicle::told)
    }

    fn last_lines(&self) -> Vec<String> {
        self.trace.as_ref().map_or_else(Vec::new, Trace::lines)
    }
}
