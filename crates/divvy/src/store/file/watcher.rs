//! The thread that hears of changes by other processes.

use std::io::{self, PipeReader, PipeWriter};
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use divvy_core::store::{LeaseNotice, StoreError};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::inotify::{self, CreateFlags, WatchFlags};
use rustix::io::Errno;
use tokio::sync::{broadcast, oneshot};

use super::database::Database;
use super::failure::system_failure;
use super::log::{self, News};
use super::place::{Missing, Place, TURN_ENDING};
use super::queue;
use crate::store::backoff::Backoff;
use crate::store::connection::ConnectionReport;
use crate::store::notices::NoticeBoard;
use crate::store::watch::Hint;

/// First delay before a lost database is tried again.
const RETRY_FIRST: Duration = Duration::from_millis(50);

/// What the thread needs, and whom it tells.
#[derive(Debug)]
pub(super) struct Watcher {
    pub(super) place: Arc<Place>,
    pub(super) cluster: String,
    pub(super) busy_max: Duration,
    /// How often it looks even if nothing was heard.
    pub(super) interval: Duration,
    pub(super) retry_longest: Duration,
    pub(super) hints: broadcast::Sender<Hint>,
    pub(super) notices: NoticeBoard,
    pub(super) connection: ConnectionReport,
    /// Counts how often another thread has missed the database, perhaps for so
    /// short a time that nobody else noticed.
    pub(super) missed: Arc<AtomicU64>,
}

impl Watcher {
    /// Starts the thread. It ends when the writing end is dropped; `listening`
    /// is told when nothing can be missed any more.
    pub(super) fn start(
        self,
        listening: oneshot::Sender<Result<(), StoreError>>,
    ) -> Result<PipeWriter, StoreError> {
        let (stop, stopper) =
            io::pipe().map_err(|error| system_failure(&self.place, "make a pipe", error))?;
        let place = Arc::clone(&self.place);
        queue::spawn(&place, "divvy-watch", move || self.run(&stop, listening))?;
        Ok(stopper)
    }

    fn run(self, stop: &PipeReader, listening: oneshot::Sender<Result<(), StoreError>>) {
        let first = match self.listen() {
            Ok(first) => first,
            Err(error) => {
                let _unheard = listening.send(Err(error));
                return;
            }
        };
        if listening.send(Ok(())).is_err() {
            return; // opening was given up
        }
        let mut lost = self.follow(first, stop);
        let mut backoff = Backoff::new(RETRY_FIRST, self.retry_longest);
        while let Some(error) = lost {
            self.connection.lost(error.to_string());
            lost = match self.listen() {
                Ok(again) => {
                    backoff.reset();
                    self.connection.regained();
                    self.tell(News::Missed);
                    self.follow(again, stop)
                }
                Err(error) => match wait(None, stop, backoff.delay()) {
                    Ok(Heard::Stop) => None,
                    _ => Some(error),
                },
            };
        }
    }

    fn listen(&self) -> Result<Listening, StoreError> {
        let missed = self.missed.load(Ordering::Acquire);
        let mut database = Database::open(Arc::clone(&self.place), self.busy_max, Missing::Refuse)?;
        let bell = hang_bell(&self.place)?;
        // After the bell is there, so that nothing falls between the two.
        let seen = database.read(log::last)?;
        Ok(Listening {
            missed,
            database,
            bell,
            seen,
        })
    }

    /// Tells what happens until the database is lost; nothing if it was told
    /// to end.
    fn follow(&self, mut at: Listening, stop: &PipeReader) -> Option<StoreError> {
        loop {
            match wait(Some(&at.bell), stop, self.interval) {
                Ok(Heard::Stop) => return None,
                Ok(Heard::Bell | Heard::Nothing) => {}
                Err(error) => {
                    let error = io::Error::from(error);
                    return Some(system_failure(&self.place, "hear of changes", error));
                }
            }
            let has_missed = self.missed.load(Ordering::Acquire) != at.missed;
            if has_missed || !at.database.is_at_its_place() {
                return Some(StoreError::unavailable(format_args!(
                    "store '{}' was deleted, moved or replaced",
                    self.place
                )));
            }
            let news = at
                .database
                .read(|connection| log::since(connection, &self.cluster, at.seen));
            match news {
                Ok((news, last)) => {
                    at.seen = last;
                    news.into_iter().for_each(|news| self.tell(news));
                }
                Err(error) => return Some(error),
            }
        }
    }

    fn tell(&self, news: News) {
        // Nobody watching is as good as everyone told.
        match news {
            News::Key(key) => drop(self.hints.send(Hint::Touched(key))),
            News::Lease(notice) => self.notices.post(notice),
            News::Missed => {
                drop(self.hints.send(Hint::Missed));
                self.notices.post(LeaseNotice::Resync);
            }
        }
    }
}

/// A database and what tells of its changes.
struct Listening {
    /// How often the database had been missed before it was opened.
    missed: u64,
    database: Database,
    bell: OwnedFd,
    /// The last change that was told.
    seen: i64,
}

enum Heard {
    Bell,
    Nothing,
    Stop,
}

/// Listens to the file that writers touch. It is also closed by the kernel when
/// a process dies, so that a change is heard of even if its writer was killed
/// before it could ring. Of the database itself only its removal is of interest.
fn hang_bell(place: &Place) -> Result<OwnedFd, StoreError> {
    let gone = WatchFlags::ATTRIB | WatchFlags::MOVE_SELF;
    let hang = || {
        let bell = inotify::init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC)?;
        let rung = WatchFlags::MODIFY | WatchFlags::CLOSE_WRITE | gone;
        inotify::add_watch(&bell, place.beside(TURN_ENDING), rung)?;
        inotify::add_watch(&bell, place.database(), gone)?;
        Ok(bell)
    };
    hang().map_err(|error: Errno| match error {
        Errno::MFILE | Errno::NOSPC => StoreError::unfit(format_args!(
            "store '{place}': this user listens to too many files; raise \
             fs.inotify.max_user_instances and fs.inotify.max_user_watches"
        )),
        Errno::NOENT => {
            StoreError::unavailable(format_args!("store '{place}' was deleted or replaced"))
        }
        other => system_failure(place, "listen to its files", other.into()),
    })
}

/// Waits for the bell, the stop or the end of `longest`.
fn wait(bell: Option<&OwnedFd>, stop: &PipeReader, longest: Duration) -> Result<Heard, Errno> {
    let mut sources = vec![PollFd::new(stop, PollFlags::IN)];
    sources.extend(bell.map(|bell| PollFd::new(bell, PollFlags::IN)));
    let longest = Timespec {
        tv_sec: i64::try_from(longest.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: longest.subsec_nanos().into(),
    };
    match poll(&mut sources, Some(&longest)) {
        Ok(0) | Err(Errno::INTR) => return Ok(Heard::Nothing),
        Ok(_) => {}
        Err(error) => return Err(error),
    }
    if !sources[0].revents().is_empty() {
        return Ok(Heard::Stop);
    }
    if let Some(bell) = bell {
        silence(bell)?;
    }
    Ok(Heard::Bell)
}

/// Takes all that the bell has to say: that it rang is enough.
fn silence(bell: &OwnedFd) -> Result<(), Errno> {
    let mut buffer = [MaybeUninit::uninit(); 4096];
    let mut reader = inotify::Reader::new(bell, &mut buffer);
    loop {
        match reader.next() {
            Ok(_) => {}
            Err(Errno::AGAIN) => return Ok(()),
            Err(Errno::INTR) => {}
            Err(error) => return Err(error),
        }
    }
}
