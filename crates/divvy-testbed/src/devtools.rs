//! Chromium's DevTools protocol over pipes: JSON, each message ended by a zero byte.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, BufRead as _, BufReader, Write as _};
use std::path::PathBuf;
use std::process::{ChildStdin, ChildStdout};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;

use serde_json::{Value, json};
use tokio::sync::oneshot;

/// A connection to a browser. Its copies are the same one.
#[derive(Debug, Clone)]
pub(crate) struct DevTools {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    input: Mutex<ChildStdin>,
    state: Mutex<State>,
    log: PathBuf,
}

#[derive(Debug, Default)]
struct State {
    last: u64,
    asked: BTreeMap<u64, oneshot::Sender<Value>>,
    events: Vec<Value>,
}

impl DevTools {
    pub(crate) fn new(input: ChildStdin, output: ChildStdout, log: PathBuf) -> Self {
        let shared = Arc::new(Shared {
            input: Mutex::new(input),
            state: Mutex::default(),
            log,
        });
        let reading = Arc::clone(&shared);
        thread::Builder::new()
            .name("testbed-devtools".to_owned())
            .spawn(move || read(output, &reading))
            .expect("a thread can be started");
        Self { shared }
    }

    /// Asks the browser, or one of its tabs, and waits for the answer.
    ///
    /// # Panics
    ///
    /// When it refuses, or ends.
    pub(crate) async fn ask(&self, session: Option<&str>, method: &str, fields: Value) -> Value {
        let (reply, replied) = oneshot::channel();
        let number = {
            let mut state = self.shared.state();
            state.last += 1;
            let number = state.last;
            state.asked.insert(number, reply);
            number
        };
        let mut message = json!({"id": number, "method": method, "params": fields});
        if let Some(session) = session {
            message["sessionId"] = session.into();
        }
        let answer = match self.write(&message) {
            Ok(()) => replied.await.ok(),
            Err(_ended) => None,
        };
        let Some(answer) = answer else {
            let log = fs::read_to_string(&self.shared.log).unwrap_or_default();
            panic!("the browser ended before it answered {method}:\n{log}");
        };
        assert!(
            answer["error"].is_null(),
            "{method}: {}",
            answer["error"]["message"]
        );
        answer["result"].clone()
    }

    /// Asks the browser to end; whether it does is seen by its process.
    pub(crate) fn close(&self) {
        // It may have ended already.
        let _unheard = self.write(&json!({"id": 0, "method": "Browser.close"}));
    }

    fn write(&self, message: &Value) -> io::Result<()> {
        let mut bytes = message.to_string().into_bytes();
        bytes.push(0);
        let input = self.shared.input.lock();
        let mut input = input.unwrap_or_else(PoisonError::into_inner);
        input.write_all(&bytes)
    }

    /// What a tab has said by itself so far, of these kinds.
    pub(crate) fn events(&self, session: &str, methods: &[&str]) -> Vec<Value> {
        let state = self.shared.state();
        let events = state.events.iter();
        events
            .filter(|event| event["sessionId"] == session)
            .filter(|event| methods.iter().any(|method| event["method"] == *method))
            .map(|event| event["params"].clone())
            .collect()
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Until the browser ends; whoever still waits is told by that.
fn read(output: ChildStdout, shared: &Shared) {
    let mut output = BufReader::new(output);
    let mut bytes = Vec::new();
    while output.read_until(0, &mut bytes).is_ok() {
        // Without it, the browser has ended, perhaps in the middle of a message.
        if bytes.pop() != Some(0) {
            break;
        }
        let message: Value = serde_json::from_slice(&bytes).expect("the browser speaks JSON");
        bytes.clear();
        let mut state = shared.state();
        match message["id"].as_u64() {
            Some(number) => {
                if let Some(waits) = state.asked.remove(&number) {
                    // Who has stopped waiting needs no answer.
                    let _unread = waits.send(message);
                }
            }
            None => state.events.push(message),
        }
    }
    shared.state().asked.clear();
}
