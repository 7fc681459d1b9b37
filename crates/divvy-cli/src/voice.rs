//! What is said to people on stderr. Members of a cluster do not wait for
//! whoever reads it: once they have called [`begin`], lines wait in a short
//! queue, and those that find no room there are dropped and counted.

use std::fmt;
use std::io::{self, Write as _};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::{Duration, SystemTime};

use crate::utc::time_of_day;

/// Lines that wait to be written.
const LINES_MAX: usize = 1024;

static VOICE: OnceLock<Voice> = OnceLock::new();
/// Whether each line begins with the time.
static HAS_TIMES: AtomicBool = AtomicBool::new(false);

#[derive(Debug)]
struct Voice {
    lines: SyncSender<Spoken>,
    lost: AtomicU64,
}

#[derive(Debug)]
enum Spoken {
    Line(Vec<u8>),
    /// All before it is written.
    End(SyncSender<()>),
}

/// From now on, nobody waits for stderr.
pub(crate) fn begin() {
    VOICE.get_or_init(|| {
        let (lines, spoken) = sync_channel(LINES_MAX);
        std::thread::spawn(move || write(&spoken));
        Voice {
            lines,
            lost: AtomicU64::new(0),
        }
    });
}

/// The same, and each line begins with the time, unless whoever keeps them
/// notes it anyway, as systemd's journal does.
pub(crate) fn begin_with_times() {
    begin();
    let has_times = std::env::var_os("JOURNAL_STREAM").is_none();
    HAS_TIMES.store(has_times, Ordering::Relaxed);
}

/// Waits until everything so far is written, but not for longer than this.
pub(crate) fn end(limit: Duration) {
    let Some(voice) = VOICE.get() else { return };
    let (done, written) = sync_channel(1);
    // A full queue is one that nobody reads.
    if voice.lines.try_send(Spoken::End(done)).is_ok() {
        let _late = written.recv_timeout(limit);
    }
}

/// Says a line of this program: `divvy: …`.
pub(crate) fn utter(words: fmt::Arguments<'_>) {
    tell_timed(format!("divvy: {words}\n").into_bytes());
}

/// Says a line: `say!("{worker} starts")`.
macro_rules! say {
    ($($words:tt)*) => { $crate::voice::utter(format_args!($($words)*)) };
}
pub(crate) use say;

/// Says a line of a member's life, with the time where that is wanted.
fn tell_timed(mut line: Vec<u8>) {
    if HAS_TIMES.load(Ordering::Relaxed) {
        let time = time_of_day(SystemTime::now());
        line.splice(..0, format!("{time} ").into_bytes());
    }
    tell(line);
}

/// Says a line as it is given: why a command failed begins as in all others.
pub(crate) fn tell(line: Vec<u8>) {
    let Some(voice) = VOICE.get() else {
        // Where stderr is gone there is nobody left to tell.
        let _gone = io::stderr().write_all(&line);
        return;
    };
    if voice.lines.try_send(Spoken::Line(line)).is_err() {
        voice.lost.fetch_add(1, Ordering::Relaxed);
    }
}

fn write(spoken: &Receiver<Spoken>) {
    for words in spoken {
        let line = match words {
            Spoken::Line(line) => line,
            Spoken::End(done) => {
                let _gone = done.try_send(());
                continue;
            }
        };
        let _gone = io::stderr().write_all(&line);
        let lost = VOICE
            .get()
            .map(|voice| voice.lost.swap(0, Ordering::Relaxed));
        if let Some(lost @ 1..) = lost {
            let told = format!("divvy: {lost} lines were dropped: nobody read them in time\n");
            let _gone = io::stderr().write_all(told.as_bytes());
        }
    }
}

/// Writes what it is given as one line: for events of the library.
#[derive(Debug)]
pub(crate) struct Aloud;

impl io::Write for Aloud {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        tell_timed(bytes.to_vec());
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
