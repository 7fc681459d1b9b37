//! A member of a cluster on a real store, as a process of its own: a manager or
//! a controller whose hooks and store can be made to fail.
//!
//! It hears [orders](line::Order) on its standard input, a line each, and says
//! on its standard output what [happens](line::Said). When nobody speaks to it
//! any more, it leaves and ends.

mod basis;
mod hooks;
mod leader;
mod lease;
mod leases;
pub(crate) mod line;
mod mouth;
mod records;
mod source;
pub(crate) mod weather;
mod weathered;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use divvy::store::{StoreSettings, StoreUrl};
use divvy_core::Invalid;
use tokio::io::{AsyncBufRead, BufReader};
use tokio::sync::oneshot;
use tokio::time::timeout;

use self::basis::Basis;
use self::leader::Leader;
use self::lease::Lease;
use self::line::{Brief, LINE_BYTES_MAX, Numbered, Order, Said, next_line};
use self::mouth::Mouth;
use self::weather::Sky;

/// Longest that leaving may take when nobody speaks any more.
const LEAVING_MAX: Duration = Duration::from_secs(10);

/// What hooks do, and what a start begins with: as it was ordered last.
#[derive(Debug, Clone)]
pub(super) struct Habits(Arc<Mutex<Brief>>);

impl Habits {
    pub(super) fn now(&self) -> MutexGuard<'_, Brief> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// How a member was asked to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Ending {
    /// For how long its place is to be kept.
    pub(super) keep: Option<Duration>,
}

/// Either kind of member.
enum Life {
    Leader(Arc<Leader>),
    Lease(Arc<Lease>),
}

/// Is a member until it is told to stop, or nobody speaks to it any more. Why
/// it could not go on is an error.
///
/// # Panics
///
/// Outside of a tokio runtime.
pub async fn be_member(url: StoreUrl, settings: StoreSettings) -> Result<(), String> {
    let mut ear = BufReader::new(tokio::io::stdin());
    let heard = next_line(&mut ear, LINE_BYTES_MAX).await;
    let Some(line) = heard.map_err(|error| error.to_string())? else {
        return Ok(());
    };
    let brief: Brief = serde_json::from_str(&line).map_err(|error| error.to_string())?;
    let mouth = Mouth::new().map_err(|error| error.to_string())?;
    let sky = Sky::new(brief.weather, settings.operation_timeout);
    let is_led = brief.is_led();
    let habits = Habits(Arc::new(Mutex::new(brief)));
    let (stop, stopping) = oneshot::channel();
    let (life, living) = match is_led {
        true => {
            let basis = Basis::new(habits.clone(), mouth.clone(), &sky);
            let leader = Arc::new(Leader::new(basis));
            let living = Arc::clone(&leader).live(url, settings, stopping);
            (Life::Leader(leader), tokio::spawn(living))
        }
        false => {
            let basis = Basis::new(habits.clone(), mouth.clone(), &sky);
            let lease = Arc::new(Lease::new(basis));
            let living = Arc::clone(&lease).live(url, settings, stopping);
            (Life::Lease(lease), tokio::spawn(living))
        }
    };
    let mut living = living;
    let ending = tokio::select! {
        ending = listen(&mut ear, &life, &habits, &sky, &mouth) => ending,
        ended = &mut living => return ended.map_err(|error| error.to_string())?,
    };
    let is_alone = ending.is_none();
    // Where it has ended by itself, that is what it says.
    let _over = stop.send(ending.unwrap_or(Ending { keep: None }));
    match is_alone {
        true => match timeout(LEAVING_MAX, living).await {
            Ok(ended) => ended.map_err(|error| error.to_string())?,
            Err(_elapsed) => Err("it could not leave in time".to_owned()),
        },
        false => living.await.map_err(|error| error.to_string())?,
    }
}

/// Does as it is told until it is told to stop; nothing if nobody is there any
/// more to say so.
async fn listen(
    ear: &mut (impl AsyncBufRead + Unpin),
    life: &Life,
    habits: &Habits,
    sky: &Sky,
    mouth: &Mouth,
) -> Option<Ending> {
    loop {
        let line = next_line(ear, LINE_BYTES_MAX).await.ok()??;
        let Ok(Numbered { number, order }) = serde_json::from_str(&line) else {
            // Both ends are of one program: what it cannot read is cut off.
            return None;
        };
        if let Order::Stop { keep_ms } = order {
            mouth.say(&Said::Done {
                number,
                refused: None,
            });
            return Some(Ending {
                keep: keep_ms.map(Duration::from_millis),
            });
        }
        if let Order::Weather(weather) = order {
            sky.set(weather);
        }
        habits.now().apply(&order);
        let done = match life {
            Life::Leader(leader) => leader.follow(&order).await,
            Life::Lease(lease) => lease.follow(&order).await,
        };
        mouth.say(&Said::Done {
            number,
            refused: done.err().map(|invalid| invalid.to_string()),
        });
    }
}

/// The last part of a partition's name.
pub(super) fn number_of(partition: &str) -> u32 {
    let number = partition.rsplit(':').next();
    let number = number.and_then(|number| number.parse().ok());
    number.expect("partitions of a playground are numbered")
}

/// What an order may be refused for.
pub(super) type Followed = Result<(), Invalid>;
