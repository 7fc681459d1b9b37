//! Whether this worker is fit to have partitions: what a command says of it,
//! and what people say.

use std::io;
use std::process::{Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use divvy::controller::ControllerView;
use tokio::task::JoinHandle;
use tokio::time::{MissedTickBehavior, interval, timeout};

use crate::exec::{CommandLine, Leader, Sweeper};
use crate::failure::plain;
use crate::voice::say;

/// Who says what of a worker's fitness.
#[derive(Debug)]
pub(super) struct Fitness {
    view: ControllerView,
    said: Mutex<Said>,
}

#[derive(Debug, Clone, Copy)]
struct Said {
    /// By `--health-cmd`.
    is_healthy: bool,
    /// By whoever asked for it.
    is_drained: bool,
}

impl Fitness {
    pub(super) fn new(view: ControllerView) -> Arc<Self> {
        let said = Said {
            is_healthy: true,
            is_drained: false,
        };
        Arc::new(Self {
            view,
            said: Mutex::new(said),
        })
    }

    /// Nothing is taken before a command has said that it may be.
    pub(super) fn wait_for_answer(&self) {
        self.say(|said| said.is_healthy = false);
    }

    pub(super) fn drain(&self, wanted: bool) {
        self.say(|said| said.is_drained = wanted);
    }

    pub(super) fn is_drained(&self) -> bool {
        self.said().is_drained
    }

    pub(super) fn is_healthy(&self) -> bool {
        self.said().is_healthy
    }

    fn said(&self) -> MutexGuard<'_, Said> {
        self.said.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn say(&self, change: impl FnOnce(&mut Said)) {
        let mut said = self.said();
        change(&mut said);
        // Still locked, so that the last word is the one that counts.
        self.view.report_health(said.is_healthy);
        self.view.report_drained(said.is_drained);
    }
}

/// Asks so often, and says so.
pub(super) async fn watch(command: CommandLine, every: Duration, fitness: Arc<Fitness>) {
    let mut pace = interval(every);
    pace.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut before = true;
    let mut unrun = Unrun::default();
    let sweeper = Sweeper::new();
    // The command of an earlier check that was killed, and has not ended.
    let mut ending: Ending = None;
    loop {
        pace.tick().await;
        if ending.as_ref().is_some_and(|ending| !ending.is_finished()) {
            // There is no answer, as before; another command would be one too many.
            continue;
        }
        // Without it the command is asked all the same, and ended by hand.
        let _begun = sweeper.begin().await;
        let asked = asked(&command, every, &sweeper, &mut ending).await;
        let healthy = matches!(asked, Ok(None));
        let sick = asked.as_ref().ok().cloned().flatten();
        let sick = sick.map_or_else(String::new, |why| format!(" ({why})"));
        if let Some(why) = unrun.news(asked.err()) {
            say!("--health-cmd cannot be run: {why}");
        }
        fitness.say(|said| said.is_healthy = healthy);
        if healthy != before {
            let words = if healthy {
                "healthy again"
            } else {
                "unhealthy"
            };
            say!("{words}, by --health-cmd{sick}");
            before = healthy;
        }
    }
}

/// Why a command cannot be run, as far as that was told.
#[derive(Debug, Default)]
struct Unrun(Option<String>);

impl Unrun {
    /// What is to be told: a reason that is not the one of the last time.
    fn news(&mut self, why: Option<String>) -> Option<&str> {
        let is_new = self.0 != why;
        self.0 = why;
        self.0.as_deref().filter(|_| is_new)
    }
}

/// A command that was killed, and is waited for.
type Ending = Option<JoinHandle<io::Result<ExitStatus>>>;

/// Runs the command once, and says what is wrong, if anything is; otherwise
/// why it cannot be run. Nothing that it starts outlasts its time.
async fn asked(
    command: &CommandLine,
    limit: Duration,
    sweeper: &Arc<Sweeper>,
    ending: &mut Ending,
) -> Result<Option<String>, String> {
    let [program, arguments @ ..] = command.words() else {
        return Err("it is empty".to_owned());
    };
    let mut asking = Command::new(program);
    asking
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::null());
    let leader = Leader::spawn(asking).map_err(|error| format!("{program}: {}", plain(&error)))?;
    let _unknown = sweeper.watch(&leader).await;
    let is_late = timeout(limit, leader.exited()).await.is_err();
    let report = |words: &str| say!("warning: --health-cmd: {words}");
    let sweeper = Arc::clone(sweeper);
    let mut ended = tokio::spawn(async move { leader.end(&sweeper, report).await });
    Ok(match timeout(limit, &mut ended).await {
        Ok(Ok(Ok(status))) if status.success() && !is_late => None,
        Ok(Ok(Ok(status))) if !is_late => Some(status.to_string()),
        Ok(Ok(Err(error))) => Some(plain(&error)),
        late => {
            // It is killed, but may take long to end: it is waited for, so that
            // neither it nor the sweeper's record of it stays.
            *ending = late.is_err().then_some(ended);
            Some(format!("no answer within {limit:?}"))
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_command_that_fails_says_how_it_ended() {
        let (second, sweeper) = (Duration::from_secs(5), Sweeper::new());
        for (line, expected) in [("true", None), ("sh -c 'exit 3'", Some("exit status: 3"))] {
            let command = CommandLine::parse("health-cmd", line).unwrap();
            let found = asked(&command, second, &sweeper, &mut None).await.unwrap();
            assert_eq!(found.as_deref(), expected, "{line}");
        }
    }

    #[tokio::test]
    async fn why_a_command_cannot_be_run_is_told_once_and_when_it_changes() {
        let (second, sweeper) = (Duration::from_secs(1), Sweeper::new());
        let missing = CommandLine::parse("health-cmd", "/nowhere/at-all -x").unwrap();
        let mut unrun = Unrun::default();
        let expected = "/nowhere/at-all: No such file or directory";
        let why = asked(&missing, second, &sweeper, &mut None).await.err();
        assert_eq!(unrun.news(why), Some(expected));
        for _ in 0..3 {
            let why = asked(&missing, second, &sweeper, &mut None).await.err();
            assert_eq!(unrun.news(why), None);
        }
        assert_eq!(unrun.news(Some("other".to_owned())), Some("other"));
        assert_eq!(unrun.news(None), None);
        assert_eq!(unrun.news(Some("other".to_owned())), Some("other"));
    }
}
