//! A member in lease mode.

use std::sync::{Arc, Mutex, PoisonError};

use divvy::controller::{
    Controller, ControllerError, ControllerEvent, ControllerEventKind, ControllerSettings,
    ControllerView,
};
use divvy::lease::Group;
use divvy::store::{Leases, StoreErrorKind, StoreSettings, StoreUrl, open_leases};
use divvy_core::Invalid;
use tokio::sync::{mpsc, oneshot};

use super::hooks::Work;
use super::line::{Brief, Order, Said};
use super::mouth::{Mouth, nanos};
use super::weather::Sky;
use super::weathered::Weathered;
use super::{Ending, Followed, Habits, persist};

/// Events that wait to be said.
const EVENTS_MAX: usize = 4096;
/// Partitions of one line.
const PARTITIONS_PER_LINE: usize = 1000;

pub(super) struct Lease {
    habits: Habits,
    mouth: Mouth,
    sky: Sky,
    view: Mutex<Option<ControllerView>>,
}

impl Lease {
    pub(super) fn new(habits: Habits, mouth: Mouth, sky: &Sky) -> Self {
        Self {
            habits,
            mouth,
            sky: sky.clone(),
            view: Mutex::default(),
        }
    }

    /// Takes part until it is told to stop.
    pub(super) async fn live(
        self: Arc<Self>,
        url: StoreUrl,
        settings: StoreSettings,
        mut stopping: oneshot::Receiver<Ending>,
    ) -> Result<(), String> {
        let starting = async {
            let opened = persist(
                &self.mouth,
                || open_leases(&url, &settings),
                |error| error.kind() == StoreErrorKind::Unavailable,
            );
            let store: Arc<dyn Leases> = Arc::new(Weathered::new(opened.await?, &self.sky));
            let attempt = || self.start(Arc::clone(&store));
            persist(&self.mouth, attempt, may_help).await
        };
        let controller = tokio::select! {
            started = starting => started?,
            // A start that is given up leaves nothing behind.
            _ending = &mut stopping => return Ok(()),
        };
        let view = controller.view();
        let ended = tokio::select! {
            _ending = stopping => controller.stop().await,
            () = view.until_ended() => controller.ended().await,
        };
        ended.map_err(|error| error.to_string())
    }

    async fn start(&self, store: Arc<dyn Leases>) -> Result<Controller, ControllerError> {
        let brief = self.habits.now().clone();
        let (events, happening) = mpsc::channel(EVENTS_MAX);
        tokio::spawn(tell(happening, self.mouth.clone()));
        let work = Work {
            habits: self.habits.clone(),
            mouth: self.mouth.clone(),
        };
        Controller::builder(store, work)
            .settings(settings(&brief)?)
            .events(events)
            .start_with(|view| {
                view.report_health(brief.healthy);
                let mut slot = self.view.lock().unwrap_or_else(PoisonError::into_inner);
                *slot = Some(view);
            })
            .await
    }

    fn view(&self) -> Option<ControllerView> {
        let view = self.view.lock().unwrap_or_else(PoisonError::into_inner);
        view.clone()
    }

    /// Does what is not done by having heard it.
    pub(super) async fn follow(&self, order: &Order) -> Followed {
        let view = self.view();
        // Who has not begun begins with it.
        let Some(view) = view else { return Ok(()) };
        match order {
            Order::Healthy(on) => {
                view.report_health(*on);
                Ok(())
            }
            Order::Weight(weight) => view.report_weight(*weight),
            Order::Partitions(_) => {
                let group = group(&self.habits.now())?;
                view.regroup(vec![group]).await
            }
            _ => Ok(()),
        }
    }
}

fn group(brief: &Brief) -> Result<Group, Invalid> {
    Group::new(&brief.group, brief.partitions)
}

fn settings(brief: &Brief) -> Result<ControllerSettings, ControllerError> {
    let preset = match brief.preset.as_str() {
        "fast" => ControllerSettings::fast(),
        "rendezgo" => ControllerSettings::rendezgo(),
        _ => ControllerSettings::default(),
    };
    Ok(ControllerSettings {
        worker: Some(brief.name.clone()),
        weight: brief.weight,
        groups: vec![group(brief)?],
        ..preset
    })
}

/// Whether a start may work later as it is.
fn may_help(error: &ControllerError) -> bool {
    match error {
        ControllerError::Invalid(_) => false,
        ControllerError::Store(error) => error.kind() == StoreErrorKind::Unavailable,
        _ => true,
    }
}

/// Says what happens, until the controller has ended.
async fn tell(mut happening: mpsc::Receiver<ControllerEvent>, mouth: Mouth) {
    while let Some(event) = happening.recv().await {
        let at = nanos(event.at);
        let state = |state: &str| Said::State {
            state: state.to_owned(),
        };
        let said = match event.kind {
            ControllerEventKind::Deadline { keys, until } => {
                for some in keys.chunks(PARTITIONS_PER_LINE) {
                    mouth.say(&Said::Deadlines {
                        at,
                        partitions: some.iter().map(|key| key.number).collect(),
                        until: until.map(nanos),
                    });
                }
                continue;
            }
            ControllerEventKind::Joined => state("joined"),
            ControllerEventKind::Backoff => state("backoff"),
            ControllerEventKind::Recovered => state("recovered"),
            ControllerEventKind::SessionEnded(text) | ControllerEventKind::Problem(text) => {
                Said::Trouble { text: text.into() }
            }
            ControllerEventKind::Ended => return,
            _ => continue,
        };
        mouth.say(&said);
    }
}
