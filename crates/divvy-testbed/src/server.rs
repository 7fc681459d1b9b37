//! A server that a test has started, whatever its kind.

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tempfile::TempDir;
use tokio::time::{Instant, sleep};

use crate::port::Port;
use crate::probe::Probe;
use crate::process::Process;
use crate::until::until;

const READY_WITHIN: Duration = Duration::from_secs(30);
const STOPPED_WITHIN: Duration = Duration::from_secs(30);
const PROBE_INTERVAL: Duration = Duration::from_millis(3);
/// Of the end of a log, in a failure's message.
const LOG_SHOWN: usize = 8_000;

/// A real server, on a port and with a directory of its own, which ends with this value.
///
/// Its port stays the same, and is no other server's, as long as this lives.
#[derive(Debug)]
pub struct Server {
    // Before the directory, so that the process has ended when that is removed.
    process: Option<Process>,
    place: Place,
    launch: Launch,
    version: String,
}

/// What a server has to itself: a port, and a directory for all that it writes.
#[derive(Debug)]
pub(crate) struct Place {
    pub(crate) port: Port,
    directory: TempDir,
}

/// How a server is started and asked whether it is ready.
#[derive(Debug)]
pub(crate) struct Launch {
    pub(crate) program: PathBuf,
    pub(crate) arguments: Vec<String>,
    /// Of the url.
    pub(crate) scheme: &'static str,
    pub(crate) probe: Probe,
}

impl Place {
    pub(crate) fn claim() -> Self {
        let directory = tempfile::Builder::new()
            .prefix("divvy-testbed-")
            .tempdir()
            .expect("a temporary directory can be made");
        let place = Self {
            port: Port::claim(),
            directory,
        };
        fs::create_dir(place.data()).expect("a directory can be made in our own");
        place
    }

    pub(crate) fn path(&self) -> &Path {
        self.directory.path()
    }

    /// What [`Server::start_empty`] wipes.
    pub(crate) fn data(&self) -> PathBuf {
        self.path().join("data")
    }

    fn log(&self) -> PathBuf {
        self.path().join("log")
    }

    /// Writes a file into the directory, and returns its path.
    pub(crate) fn write(&self, name: &str, text: &str) -> String {
        let path = self.path().join(name);
        fs::write(&path, text).expect("a file can be written to our own directory");
        path.display().to_string()
    }
}

impl Server {
    pub(crate) fn new(place: Place, launch: Launch) -> Self {
        Self {
            process: None,
            place,
            launch,
            version: String::new(),
        }
    }

    /// Where clients connect to, with the scheme.
    pub fn url(&self) -> String {
        format!("{}://{}", self.launch.scheme, self.address())
    }

    /// Where clients connect to.
    pub fn address(&self) -> SocketAddr {
        self.place.port.address()
    }

    /// The port on 127.0.0.1.
    pub fn port(&self) -> u16 {
        self.place.port.number()
    }

    /// The version, as the server itself reports it.
    pub fn version(&self) -> &str {
        &self.version
    }

    /// Whether it has been started and not ended by the test since; paused servers run, too.
    pub fn is_running(&self) -> bool {
        self.process.is_some()
    }

    /// The process's id.
    ///
    /// # Panics
    ///
    /// When it has been stopped or killed.
    pub fn pid(&self) -> u32 {
        self.running().pid()
    }

    /// Everything that it has logged since its first start.
    pub fn log(&self) -> String {
        let log = fs::read(self.place.log()).unwrap_or_default();
        String::from_utf8_lossy(&log).into_owned()
    }

    /// The directory that its files are in, removed with this value.
    pub fn directory(&self) -> &Path {
        self.place.path()
    }

    /// Stops all its threads, its connections staying open; returns when they have stopped.
    pub fn pause(&self) {
        self.running().pause();
    }

    /// Lets it go on after [`pause`](Self::pause).
    pub fn resume(&self) {
        self.running().resume();
    }

    /// Has it meet a disk that is full for every file of that many bytes, until it is called with
    /// nothing.
    pub fn fill_disk(&self, file_bytes_max: Option<u64>) {
        self.running().limit_files(file_bytes_max);
    }

    /// Ends it without warning, as a crash would; returns when it has ended.
    pub fn kill(&mut self) {
        self.running();
        self.process = None;
    }

    /// Asks it to end, as an operator would; returns when it has ended.
    pub async fn stop(&mut self) {
        self.running().terminate();
        let deadline = Instant::now() + STOPPED_WITHIN;
        while let Some(process) = &mut self.process {
            if process.ended().is_some() {
                self.process = None;
            } else if Instant::now() > deadline {
                self.fail(&format!("has not ended within {STOPPED_WITHIN:?}"));
            } else {
                sleep(PROBE_INTERVAL).await;
            }
        }
    }

    /// Starts it after [`stop`](Self::stop) or [`kill`](Self::kill): same port, same data.
    pub async fn start_again(&mut self) {
        if let Err(why) = self.try_start().await {
            self.fail(&why);
        }
    }

    /// Starts it after [`stop`](Self::stop) or [`kill`](Self::kill): same port, no data.
    pub async fn start_empty(&mut self) {
        assert!(self.process.is_none(), "end the server first");
        let data = self.place.data();
        fs::remove_dir_all(&data).expect("our own directory can be removed");
        fs::create_dir(&data).expect("a directory can be made in our own");
        self.start_again().await;
    }

    /// Waits until the log contains `text`.
    ///
    /// # Panics
    ///
    /// When it does not within `bound`.
    pub async fn until_logged(&self, bound: Duration, text: &str) {
        let what = format!("{text:?} in the log of {}", self.title());
        until(bound, &what, async || self.log().contains(text)).await;
    }

    /// Starts the process and waits until it is ready.
    pub(crate) async fn try_start(&mut self) -> Result<(), String> {
        assert!(self.process.is_none(), "end the server first");
        let log = self.place.log();
        let mut process = Process::spawn(&self.launch.program, &self.launch.arguments, &log)
            .map_err(|error| format!("can't be started: {error}"))?;
        let deadline = Instant::now() + READY_WITHIN;
        loop {
            let asked = self.launch.probe.ask(self.address(), &log).await;
            if let Some(status) = process.ended() {
                return Err(format!("ended: {status}"));
            }
            match asked {
                Ok(version) => {
                    self.version = version;
                    self.process = Some(process);
                    return Ok(());
                }
                Err(why) if Instant::now() > deadline => {
                    return Err(format!("not ready after {READY_WITHIN:?}: {why}"));
                }
                Err(_) => sleep(PROBE_INTERVAL).await,
            }
        }
    }

    /// Whether its last start failed because another process was faster to take the port.
    pub(crate) fn has_lost_its_port(&self) -> bool {
        self.log().to_lowercase().contains("address already in use")
    }

    pub(crate) fn fail(&self, why: &str) -> ! {
        let log = self.log();
        let hidden = log.len().saturating_sub(LOG_SHOWN);
        let shown = &log[log.ceil_char_boundary(hidden)..];
        panic!("{} {why}; its log:\n{shown}", self.title());
    }

    fn title(&self) -> String {
        format!("{} on {}", self.launch.program.display(), self.address())
    }

    fn running(&self) -> &Process {
        match &self.process {
            Some(process) => process,
            None => self.fail("has been ended by the test"),
        }
    }
}
