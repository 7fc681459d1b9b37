//! One run of one case.

use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use divvy_core::store::{StoreError, StoreErrorKind};
use tokio::time::Instant;

use super::history::{History, brief};
use super::options::Options;
use super::report::Failure;
use crate::store::Store;

/// Between two looks at something that is waited for.
const LOOK_EVERY: Duration = Duration::from_millis(3);

/// One run of one case: its names, its random choices, its history.
#[derive(Debug, Clone)]
pub(super) struct Run {
    state: Arc<State>,
}

#[derive(Debug)]
struct State {
    case: &'static str,
    options: Options,
    tag: String,
    history: History,
    started: Instant,
}

impl Run {
    pub(super) fn new(case: &'static str, options: &Options) -> Self {
        // Not by the seed: a run that is repeated must find nothing of the last.
        let tag = format!("t{:016x}", fastrand::u64(..));
        let state = State {
            case,
            options: *options,
            tag,
            history: History::default(),
            started: Instant::now(),
        };
        Self {
            state: Arc::new(state),
        }
    }

    pub(super) fn options(&self) -> &Options {
        &self.state.options
    }

    /// A name that no other run has: of a cluster, or of a group.
    pub(super) fn name(&self, name: &str) -> String {
        format!("{}-{name}", self.state.tag)
    }

    /// Whether a name is one of this run.
    pub(super) fn is_own(&self, name: &str) -> bool {
        name.starts_with(&self.state.tag)
    }

    /// The random choices of this case, by its seed.
    pub(super) fn random(&self) -> fastrand::Rng {
        let case = self.state.case.as_bytes();
        fastrand::Rng::with_seed(divvy_core::hash::bytes64(case, self.state.options.seed))
    }

    pub(super) fn note(&self, line: fmt::Arguments<'_>) {
        let at = self.state.started.elapsed().as_millis();
        self.state.history.note(format_args!("{at:>6} ms {line}"));
    }

    pub(super) fn fail(&self, reason: impl Into<String>) -> Failure {
        let state = &self.state;
        let lines = state.history.lines();
        Failure::new(state.case, state.options.seed, reason.into(), lines)
    }

    /// Fails with `reason` unless it holds.
    pub(super) fn check(
        &self,
        holds: bool,
        reason: impl FnOnce() -> String,
    ) -> Result<(), Failure> {
        match holds {
            true => Ok(()),
            false => Err(self.fail(reason())),
        }
    }

    /// Waits for something by looking again and again.
    pub(super) fn wait(&self, what: impl Into<String>) -> Wait {
        Wait {
            run: self.clone(),
            what: what.into(),
            until: Instant::now() + self.state.options.wait,
        }
    }

    /// What `operation` gives, noted. Failing or not ending fails the case.
    pub(super) async fn done<T: fmt::Debug>(
        &self,
        who: &str,
        what: String,
        operation: impl Future<Output = Result<T, StoreError>>,
    ) -> Result<T, Failure> {
        match self.attempt(who, &what, operation).await? {
            Ok(value) => Ok(value),
            Err(error) => {
                let kind = error.kind();
                Err(self.fail(format!("{who} {what} failed as {kind:?}: {error}")))
            }
        }
    }

    /// Each says what it is and is reached, and all are of one incarnation.
    pub(super) async fn is_described(&self, clients: [&dyn Store; 3]) -> Result<(), Failure> {
        let mut incarnations = Vec::new();
        for client in clients {
            self.check(!client.describe().is_empty(), || {
                "a store must describe itself".to_owned()
            })?;
            let connection = client.connection().borrow().clone();
            self.check(connection.up && connection.connects > 0, || {
                format!("an open store must be connected, but says {connection:?}")
            })?;
            let asking = client.incarnation();
            incarnations.push(
                self.done("client", "incarnation".to_owned(), asking)
                    .await?,
            );
        }
        let same = incarnations.windows(2).all(|pair| pair[0] == pair[1]);
        self.check(same, || {
            format!("one life of a store has several incarnations: {incarnations:?}")
        })
    }

    /// What `operation` gives or fails with, noted. Not ending fails the case.
    pub(super) async fn attempt<T: fmt::Debug>(
        &self,
        who: &str,
        what: &str,
        operation: impl Future<Output = Result<T, StoreError>>,
    ) -> Result<Result<T, StoreError>, Failure> {
        let longest = self.state.options.wait;
        let Ok(result) = tokio::time::timeout(longest, operation).await else {
            return Err(self.fail(format!("{who} {what} did not end within {longest:?}")));
        };
        match &result {
            Ok(value) => self.note(format_args!("{who} {what} -> {value:?}")),
            Err(error) => self.note(format_args!("{who} {what} -> {:?}: {error}", error.kind())),
        }
        Ok(result)
    }

    /// Fails unless `operation` is refused as invalid input.
    pub(super) async fn refused<T: fmt::Debug>(
        &self,
        who: &str,
        what: &str,
        operation: impl Future<Output = Result<T, StoreError>>,
    ) -> Result<(), Failure> {
        let found = match self.attempt(who, what, operation).await? {
            Err(error) if error.kind() == StoreErrorKind::Invalid => return Ok(()),
            Err(error) => brief(format_args!("it failed as {:?}: {error}", error.kind())),
            Ok(value) => brief(format_args!("it gave {value:?}")),
        };
        let reason = format!("{who} {what} must be refused as Invalid, but {found}");
        Err(self.fail(reason))
    }
}

/// A client as the history shows it, by what it says of itself: what a store
/// prints for debugging may be all that it holds.
pub(super) struct Opened<S: ?Sized>(pub(super) Arc<S>);

impl<S: Store + ?Sized> fmt::Debug for Opened<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.describe())
    }
}

/// Begins `operation` and drops it half-way: after its first steps, or after
/// some time. Gives its result if it was faster.
pub(super) async fn cancelled<T>(
    operation: impl Future<Output = T>,
    random: &mut fastrand::Rng,
) -> Option<T> {
    let patience = Duration::from_micros(random.u64(..3000));
    let mut steps = match random.bool() {
        true => random.usize(1..4),
        false => usize::MAX,
    };
    let mut operation = std::pin::pin!(operation);
    let some_steps = std::future::poll_fn(|context| {
        steps -= 1;
        match operation.as_mut().poll(context) {
            Poll::Ready(result) => Poll::Ready(Some(result)),
            Poll::Pending if steps == 0 => Poll::Ready(None),
            Poll::Pending => Poll::Pending,
        }
    });
    let ended = tokio::time::timeout(patience, some_steps).await;
    ended.ok().flatten()
}

/// Something that is waited for, with a bound.
#[derive(Debug)]
pub(super) struct Wait {
    run: Run,
    what: String,
    until: Instant,
}

impl Wait {
    /// It is not there yet: lets a little time pass, unless it took too long.
    pub(super) async fn again(&self) -> Result<(), Failure> {
        self.again_because("").await
    }

    /// As [`Wait::again`], with what was found instead.
    pub(super) async fn again_because(&self, found: &str) -> Result<(), Failure> {
        if Instant::now() >= self.until {
            let (longest, what) = (self.run.options().wait, &self.what);
            let found = match found.is_empty() {
                true => String::new(),
                false => format!("; found {found}"),
            };
            return Err(self
                .run
                .fail(format!("not within {longest:?}: {what}{found}")));
        }
        tokio::time::sleep(LOOK_EVERY).await;
        Ok(())
    }
}
