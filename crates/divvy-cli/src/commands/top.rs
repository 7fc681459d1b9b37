//! `divvy top`: a live cluster as it changes, on a terminal.

mod screen;

use std::collections::VecDeque;
use std::io::{self, IsTerminal as _, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use divvy::MoveEntry;
use divvy::observer::{Observer, Snapshot};
use divvy::store::StoreError;
use ratatui::DefaultTerminal;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEventKind, KeyModifiers};
use tokio::sync::mpsc;
use tokio::time::{MissedTickBehavior, interval, timeout};

use super::live;
use crate::args::TopArgs;
use crate::failure::Failure;

/// Looks whose figures are shown as a curve.
const HISTORY_MAX: usize = 600;
/// How often the keyboard is looked at.
const KEYS_EVERY: Duration = Duration::from_millis(100);
/// Keys that wait.
const KEYS_MAX: usize = 64;

/// What is shown.
#[derive(Debug, Default)]
struct Shown {
    cluster: String,
    snapshot: Option<Snapshot>,
    /// Newest first.
    moves: Vec<MoveEntry>,
    /// Why the last look failed, if it did.
    trouble: Option<String>,
    /// How long the store took in milliseconds, the newest last.
    lags: VecDeque<u64>,
    order: Order,
    /// Rows of workers that are scrolled away.
    scrolled: usize,
    is_paused: bool,
}

/// How workers are ordered.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Order {
    #[default]
    Name,
    Load,
}

/// What a key asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Wish {
    End,
    Reorder,
    Pause,
    Scroll(isize),
    Redraw,
}

pub(crate) fn run(args: &TopArgs, _out: &mut dyn Write) -> Result<(), Failure> {
    if !io::stdout().is_terminal() || !io::stdin().is_terminal() {
        let text = "divvy top needs a terminal; divvy status shows the same once";
        return Err(Failure::Usage(text.to_owned()));
    }
    live::block_on(async {
        let observer = live::open(&args.at).await?;
        let mut shown = Shown {
            cluster: args.at.reach.cluster.clone(),
            ..Shown::default()
        };
        // Restores the terminal on a panic, too.
        let mut terminal = ratatui::try_init().map_err(Failure::output)?;
        let ended = Arc::new(AtomicBool::new(false));
        let (keys, pressed) = mpsc::channel(KEYS_MAX);
        let reading = std::thread::spawn({
            let ended = Arc::clone(&ended);
            move || read_keys(&keys, &ended)
        });
        let watched = watch(observer, &mut shown, &mut terminal, pressed, args.interval).await;
        ended.store(true, Ordering::Relaxed);
        let _read = reading.join();
        let restored = ratatui::try_restore();
        watched.and(restored).map_err(Failure::output)
    })
}

/// Looks and draws until a key ends it.
async fn watch(
    mut observer: Observer,
    shown: &mut Shown,
    terminal: &mut DefaultTerminal,
    mut pressed: mpsc::Receiver<Wish>,
    every: Duration,
) -> io::Result<()> {
    let mut looks = interval(every);
    looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        terminal.draw(|frame| screen::draw(frame, shown))?;
        tokio::select! {
            wish = pressed.recv() => match wish {
                None | Some(Wish::End) => return Ok(()),
                Some(wish) => shown.heed(wish),
            },
            _ = looks.tick(), if !shown.is_paused => {
                let looked = timeout(every.max(Duration::from_secs(2)), look(&mut observer)).await;
                match looked {
                    Ok(Ok((snapshot, moves))) => shown.update(snapshot, moves),
                    Ok(Err(error)) => shown.trouble = Some(error.to_string()),
                    Err(_elapsed) => shown.trouble = Some("no answer".to_owned()),
                }
            }
        }
    }
}

async fn look(observer: &mut Observer) -> Result<(Snapshot, Vec<MoveEntry>), StoreError> {
    let snapshot = observer.look().await?;
    Ok((snapshot, observer.moves().await?))
}

impl Shown {
    fn update(&mut self, snapshot: Snapshot, mut moves: Vec<MoveEntry>) {
        moves.reverse();
        self.moves = moves;
        self.trouble = None;
        // A curve of whole numbers: tenths of milliseconds.
        let lag = u64::try_from(snapshot.took.as_micros() / 100).unwrap_or(u64::MAX);
        self.lags.push_back(lag);
        if self.lags.len() > HISTORY_MAX {
            self.lags.pop_front();
        }
        self.scrolled = self.scrolled.min(snapshot.workers.len().saturating_sub(1));
        self.snapshot = Some(snapshot);
    }

    fn heed(&mut self, wish: Wish) {
        match wish {
            Wish::End | Wish::Redraw => {}
            Wish::Pause => self.is_paused = !self.is_paused,
            Wish::Reorder => {
                self.order = match self.order {
                    Order::Name => Order::Load,
                    Order::Load => Order::Name,
                };
            }
            Wish::Scroll(rows) => {
                let workers = self.snapshot.as_ref().map_or(0, |s| s.workers.len());
                let most = workers.saturating_sub(1);
                self.scrolled = self.scrolled.saturating_add_signed(rows).min(most);
            }
        }
    }
}

fn read_keys(keys: &mpsc::Sender<Wish>, ended: &AtomicBool) {
    while !ended.load(Ordering::Relaxed) {
        let event = match event::poll(KEYS_EVERY) {
            Ok(false) => continue,
            Ok(true) => event::read(),
            Err(error) => Err(error),
        };
        let wish = match event {
            Ok(event) => wish_of(&event),
            // Nobody can end it any more.
            Err(_) => Some(Wish::End),
        };
        if let Some(wish) = wish
            && keys.blocking_send(wish).is_err()
        {
            return;
        }
    }
}

fn wish_of(event: &Event) -> Option<Wish> {
    let key = match event {
        Event::Resize(..) => return Some(Wish::Redraw),
        Event::Key(key) if key.kind != KeyEventKind::Release => key,
        _ => return None,
    };
    match key.code {
        KeyCode::Char('c') if key.modifiers.contains(KeyModifiers::CONTROL) => Some(Wish::End),
        KeyCode::Char('q') | KeyCode::Esc => Some(Wish::End),
        KeyCode::Char('s') => Some(Wish::Reorder),
        KeyCode::Char(' ') => Some(Wish::Pause),
        KeyCode::Down | KeyCode::Char('j') => Some(Wish::Scroll(1)),
        KeyCode::Up | KeyCode::Char('k') => Some(Wish::Scroll(-1)),
        KeyCode::PageDown => Some(Wish::Scroll(10)),
        KeyCode::PageUp => Some(Wish::Scroll(-10)),
        _ => None,
    }
}
