//! What a process says, while it says it.

use std::io::{BufRead as _, BufReader, Read};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;

/// All that has come out of a stream so far, by whole lines; nothing where there is no stream.
#[derive(Debug, Default)]
pub struct Heard {
    text: Arc<Mutex<String>>,
}

impl Heard {
    /// Reads `stream` to its end, so that whoever writes there never waits.
    pub fn of(stream: impl Read + Send + 'static) -> Self {
        let heard = Self::default();
        let hearing = Self {
            text: Arc::clone(&heard.text),
        };
        thread::spawn(move || {
            let mut reader = BufReader::new(stream);
            let mut line = Vec::new();
            while matches!(reader.read_until(b'\n', &mut line), Ok(1..)) {
                let words = String::from_utf8_lossy(&line);
                hearing.lock().push_str(&words);
                line.clear();
            }
        });
        heard
    }

    /// What was heard so far.
    pub fn text(&self) -> String {
        self.lock().clone()
    }

    fn lock(&self) -> MutexGuard<'_, String> {
        self.text.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
