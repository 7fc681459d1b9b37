//! A headless Chromium, driven over its DevTools protocol.

use std::path::Path;
use std::time::Duration;

use serde_json::json;
use tempfile::TempDir;

use crate::devtools::DevTools;
use crate::process::Process;
use crate::program::debian;
use crate::tab::{Tab, Window};

/// A browser that a test has started, with a profile of its own. It ends with this value.
#[derive(Debug)]
pub struct Browser {
    devtools: DevTools,
    // Before the directory, so that the process has ended when that is removed.
    process: Process,
    _profile: TempDir,
}

/// What it does not do: ask anybody but the test's own servers, or wait for a screen.
const FLAGS: [&str; 12] = [
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
    "--no-default-browser-check",
    "--hide-scrollbars",
    "--force-color-profile=srgb",
    "--remote-debugging-pipe",
];
/// The protocol's pipes are those that a child can be given: its input and its output.
const PIPES: &str = r#"exec "$@" 3<&0 4>&1 </dev/null >&2"#;
const ANSWERS_WITHIN: Duration = Duration::from_secs(60);
const ENDS_WITHIN: Duration = Duration::from_secs(10);

impl Browser {
    /// Starts one, and waits until it answers.
    ///
    /// # Panics
    ///
    /// When Chromium is missing or does not start.
    pub async fn start() -> Self {
        let profile = tempfile::Builder::new()
            .prefix("divvy-testbed-")
            .tempdir()
            .expect("a temporary directory can be made");
        let log = profile.path().join("log");
        let mut words = vec!["-c".to_owned(), PIPES.to_owned(), "sh".to_owned()];
        words.push(debian("chromium").display().to_string());
        words.extend(FLAGS.map(str::to_owned));
        words.push(format!("--user-data-dir={}", profile.path().display()));
        let spawned = Process::spawn_piped(Path::new("/bin/sh"), &words, &log);
        let (process, input, output) = spawned.expect("a shell can be started");
        let devtools = DevTools::new(input, output, log);
        let asked = devtools.ask(None, "Browser.getVersion", json!({}));
        tokio::time::timeout(ANSWERS_WITHIN, asked)
            .await
            .expect("Chromium answers");
        Self {
            devtools,
            process,
            _profile: profile,
        }
    }

    /// Opens a page in a tab of its own.
    ///
    /// # Panics
    ///
    /// When the browser has ended.
    pub async fn open(&self, address: &str, window: Window) -> Tab {
        Tab::open(self.devtools.clone(), address, window).await
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        // Its own children write to the profile until it has ended them; who is killed does not.
        self.devtools.close();
        let _ended = self.process.ends_within(ENDS_WITHIN);
    }
}
