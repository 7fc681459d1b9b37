//! A strategy on a thread of its own: one that is slow, or never returns,
//! holds up no heartbeat.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use divvy_core::{
    Assignment, Error, Explanation, MOVES_MAX, Partitions, Proposal, Strategy, Workers,
};

use super::calls::panic_text;

/// How long an answer is waited for at once; most strategies take less.
const QUICK: Duration = Duration::from_millis(50);
/// After so long without an answer, that is a failure to be told.
const PATIENCE: Duration = Duration::from_secs(30);

/// How long it may take to explain its changes, for the log of moves: as many
/// as that has room for.
const EXPLAINING: Duration = Duration::from_millis(10);

/// What a strategy is asked.
#[derive(Debug, Clone, PartialEq)]
struct Question {
    workers: Workers,
    partitions: Partitions,
    previous: Option<Assignment>,
}

type Answer = Result<Proposal, Error>;

/// Asks a strategy elsewhere. What is not answered quickly is
/// [`Error::Unfinished`], and answered when the same is asked again. While it
/// calculates for a question that nobody asks any more, others wait.
#[derive(Debug)]
pub(super) struct Aside {
    strategy: Arc<dyn Strategy>,
    desk: Mutex<Desk>,
}

#[derive(Debug, Default)]
struct Desk {
    thread: Option<Thread>,
    /// What is calculated, and since when.
    asked: Option<(Question, Instant)>,
    /// An answer that came late.
    late: Option<(Question, Answer)>,
}

#[derive(Debug)]
struct Thread {
    questions: Sender<Question>,
    answers: Receiver<Answer>,
    handle: JoinHandle<()>,
}

impl Aside {
    pub(super) fn new(strategy: Arc<dyn Strategy>) -> Self {
        Self {
            strategy,
            desk: Mutex::default(),
        }
    }

    fn failed(&self, message: String) -> Error {
        Error::Strategy {
            strategy: self.strategy.name().to_owned(),
            message,
        }
    }

    /// The answer to a question, if it is there soon enough.
    fn ask(&self, desk: &mut Desk, question: Question) -> Answer {
        if let Some((of, answer)) = desk.late.take()
            && of == question
        {
            desk.late = Some((of, answer.clone()));
            return answer;
        }
        if let Some((of, since)) = desk.asked.take() {
            match self.receive(desk, Duration::ZERO)? {
                Some(answer) if of == question => {
                    desk.late = Some((of, answer.clone()));
                    return answer;
                }
                // Of something that has changed meanwhile.
                Some(_outdated) => {}
                None => {
                    desk.asked = Some((of, since));
                    return Err(self.waiting(since.elapsed()));
                }
            }
        }
        self.send(desk, question.clone())?;
        let begun = Instant::now();
        if let Some(answer) = self.receive(desk, QUICK)? {
            return answer;
        }
        desk.asked = Some((question, begun));
        Err(self.waiting(Duration::ZERO))
    }

    fn waiting(&self, since: Duration) -> Error {
        match since > PATIENCE {
            true => self.failed(format!("has no answer after {} s", since.as_secs())),
            false => Error::Unfinished {
                strategy: self.strategy.name().to_owned(),
            },
        }
    }

    fn send(&self, desk: &mut Desk, question: Question) -> Result<(), Error> {
        let thread = match desk.thread.take() {
            Some(thread) => thread,
            None => Thread::start(Arc::clone(&self.strategy))
                .map_err(|error| self.failed(format!("cannot start a thread: {error}")))?,
        };
        // Its end is found where an answer is awaited.
        let _gone = thread.questions.send(question);
        desk.thread = Some(thread);
        Ok(())
    }

    fn receive(&self, desk: &mut Desk, wait: Duration) -> Result<Option<Answer>, Error> {
        let Some(thread) = &desk.thread else {
            return Ok(None);
        };
        match thread.answers.recv_timeout(wait) {
            Ok(answer) => Ok(Some(answer)),
            Err(RecvTimeoutError::Timeout) => Ok(None),
            Err(RecvTimeoutError::Disconnected) => {
                desk.thread = None;
                Err(self.failed("its thread has ended".to_owned()))
            }
        }
    }
}

impl Thread {
    fn start(strategy: Arc<dyn Strategy>) -> std::io::Result<Self> {
        let (questions, asked) = channel::<Question>();
        let (answer, answers) = channel();
        // Whoever listens to the manager listens to its strategy, too.
        let listener = tracing::dispatcher::get_default(Clone::clone);
        let thread = std::thread::Builder::new().name("divvy-strategy".to_owned());
        let handle = thread.spawn(move || {
            tracing::dispatcher::with_default(&listener, || {
                for question in asked {
                    if answer.send(calculate(&*strategy, &question)).is_err() {
                        return;
                    }
                }
            });
        })?;
        Ok(Self {
            questions,
            answers,
            handle,
        })
    }
}

fn calculate(strategy: &dyn Strategy, question: &Question) -> Answer {
    let Question {
        workers,
        partitions,
        previous,
    } = question;
    let propose = || {
        let proposal = strategy.propose(workers, partitions, previous.as_ref())?;
        let (begun, mut left) = (Instant::now(), MOVES_MAX);
        Ok(proposal.explained(strategy, previous.as_ref(), || {
            let goes_on = left > 0 && begun.elapsed() < EXPLAINING;
            left = left.saturating_sub(1);
            goes_on
        }))
    };
    catch_unwind(AssertUnwindSafe(propose)).unwrap_or_else(|panic| {
        Err(Error::Strategy {
            strategy: strategy.name().to_owned(),
            message: panic_text(panic.as_ref()),
        })
    })
}

impl Drop for Aside {
    fn drop(&mut self) {
        let desk = self.desk.get_mut().unwrap_or_else(PoisonError::into_inner);
        let Some(thread) = desk.thread.take() else {
            return;
        };
        drop(thread.questions);
        // One that still calculates ends when it has; nobody waits for it.
        if desk.asked.is_none() {
            let _ended = thread.handle.join();
        }
    }
}

impl Strategy for Aside {
    fn name(&self) -> &str {
        self.strategy.name()
    }

    fn assign(
        &self,
        workers: &Workers,
        partitions: &Partitions,
        previous: Option<&Assignment>,
    ) -> Result<Assignment, Error> {
        self.propose(workers, partitions, previous)
            .map(|proposal| proposal.assignment)
    }

    fn propose(
        &self,
        workers: &Workers,
        partitions: &Partitions,
        previous: Option<&Assignment>,
    ) -> Result<Proposal, Error> {
        let question = Question {
            workers: workers.clone(),
            partitions: partitions.clone(),
            previous: previous.cloned(),
        };
        let mut desk = self.desk.lock().unwrap_or_else(PoisonError::into_inner);
        self.ask(&mut desk, question)
    }

    fn explain(
        &self,
        partition: &str,
        workers: &Workers,
        partitions: &Partitions,
        previous: Option<&Assignment>,
    ) -> Result<Explanation, Error> {
        self.strategy
            .explain(partition, workers, partitions, previous)
    }
}
