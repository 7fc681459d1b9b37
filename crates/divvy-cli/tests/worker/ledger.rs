//! A resource that compares tokens: it takes an effect or refuses it when that
//! arrives, whoever sent it and whenever.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::PathBuf;
use std::process::Command;
use std::sync::{Arc, Mutex};

use crate::bed::Bed;

/// Sends an effect with the token of its grant, again and again, until it is
/// ended: a process of its own, which a pause of its worker does not pause.
const EFFECTS: &str = r#"
while :; do
    printf '%s %s\n' "$DIVVY_PARTITION" "$DIVVY_TOKEN"
    sleep 0.1
done >"$1"
"#;
/// Leaves two processes behind that do the same whatever asks them to end, one
/// of them outside of its group.
const LEFTOVERS: &str = r#"
sends='trap "" TERM HUP; while :; do printf "%s %s\n" "$DIVVY_PARTITION" "$DIVVY_TOKEN"; sleep 0.1; done'
sh -c "$sends" >"$1" &
setsid sh -c "$sends" >"$1" &
exec sleep 1000
"#;
/// Sends one effect and fails, so that it is started again.
const CRASHES: &str = r#"
printf '%s %s\n' "$DIVVY_PARTITION" "$DIVVY_TOKEN" >"$1"
exit 1
"#;
/// What ends it.
const OVER: &str = "over";

#[derive(Debug, Default)]
struct Book {
    highest: BTreeMap<String, i64>,
    /// Effects that were refused, by partition and token.
    refused: BTreeMap<(String, i64), usize>,
}

pub(crate) struct Ledger {
    script: PathBuf,
    inbox: PathBuf,
    book: Arc<Mutex<Book>>,
    /// Its own end of the inbox: it is never without a writer.
    sender: File,
}

impl Ledger {
    pub(crate) fn open(bed: &Bed) -> Self {
        Self::of(bed, EFFECTS)
    }

    pub(crate) fn of_leftovers(bed: &Bed) -> Self {
        Self::of(bed, LEFTOVERS)
    }

    pub(crate) fn of_crashes(bed: &Bed) -> Self {
        Self::of(bed, CRASHES)
    }

    fn of(bed: &Bed, effects: &str) -> Self {
        let (script, inbox) = (bed.file("effects"), bed.file("inbox"));
        std::fs::write(&script, effects).unwrap();
        let made = Command::new("mkfifo").arg(&inbox).status().unwrap();
        assert!(made.success(), "{made}");
        // Both ways, or each end would wait for the other.
        let both = OpenOptions::new().read(true).write(true).open(&inbox);
        let both = both.unwrap();
        let sender = both.try_clone().unwrap();
        let book = Arc::new(Mutex::new(Book::default()));
        let kept = Arc::clone(&book);
        std::thread::spawn(move || {
            // A line is short enough to arrive as a whole.
            let lines = BufReader::new(both).lines().map_while(Result::ok);
            for line in lines.take_while(|line| line != OVER) {
                let (partition, token) = line.split_once(' ').expect("an effect");
                let token = token.parse().expect("a token");
                kept.lock().unwrap().arrived(partition, token);
            }
        });
        Self {
            script,
            inbox,
            book,
            sender,
        }
    }

    /// What workers run for each partition.
    pub(crate) fn command(&self) -> String {
        format!("sh {} {}", self.script.display(), self.inbox.display())
    }

    /// The highest token of each partition that something came from.
    pub(crate) fn highest(&self) -> BTreeMap<String, i64> {
        self.book.lock().unwrap().highest.clone()
    }

    /// All that was refused, by partition and token.
    pub(crate) fn all_refused(&self) -> BTreeMap<(String, i64), usize> {
        self.book.lock().unwrap().refused.clone()
    }

    /// How many effects with this token were refused.
    pub(crate) fn refused(&self, partition: &str, token: i64) -> usize {
        let book = self.book.lock().unwrap();
        let refused = book.refused.get(&(partition.to_owned(), token));
        refused.copied().unwrap_or_default()
    }
}

impl Drop for Ledger {
    fn drop(&mut self) {
        // Nobody else reads it.
        let _gone = writeln!(self.sender, "{OVER}");
    }
}

impl Book {
    fn arrived(&mut self, partition: &str, token: i64) {
        let highest = self.highest.entry(partition.to_owned()).or_insert(token);
        if token < *highest {
            let refused = self.refused.entry((partition.to_owned(), token));
            *refused.or_default() += 1;
        }
        *highest = (*highest).max(token);
    }
}
