//! A member in lease mode.

use std::sync::Arc;

use divvy::controller::{
    Controller, ControllerError, ControllerEvent, ControllerEventKind, ControllerSettings,
    ControllerView,
};
use divvy::lease::Group;
use divvy::store::{Leases, StoreErrorKind, StoreSettings, StoreUrl, open_leases};
use divvy_core::Invalid;
use tokio::sync::{mpsc, oneshot};

use super::basis::{Basis, EVENTS_MAX};
use super::line::{Brief, Order, Said};
use super::mouth::{Mouth, nanos};
use super::weathered::Weathered;
use super::{Ending, Followed};

/// Partitions of one line.
const PARTITIONS_PER_LINE: usize = 1000;

pub(super) struct Lease {
    basis: Basis<ControllerView>,
}

impl Lease {
    pub(super) const fn new(basis: Basis<ControllerView>) -> Self {
        Self { basis }
    }

    /// Takes part until it is told to stop.
    pub(super) async fn live(
        self: Arc<Self>,
        url: StoreUrl,
        settings: StoreSettings,
        mut stopping: oneshot::Receiver<Ending>,
    ) -> Result<(), String> {
        let starting = async {
            let opened = self.basis.reach(|| open_leases(&url, &settings));
            let store = Weathered::new(opened.await?, &self.basis.sky);
            let store: Arc<dyn Leases> = Arc::new(store);
            let attempt = || self.start(Arc::clone(&store));
            self.basis.persist(attempt, may_help).await
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
        let brief = self.basis.habits.now().clone();
        let (events, happening) = mpsc::channel(EVENTS_MAX);
        tokio::spawn(tell(happening, self.basis.mouth.clone()));
        Controller::builder(store, self.basis.work())
            .settings(settings(&brief)?)
            .events(events)
            .start_with(|view| {
                view.report_health(brief.healthy);
                self.basis.show(view);
            })
            .await
    }

    /// Does what is not done by having heard it.
    pub(super) async fn follow(&self, order: &Order) -> Followed {
        // Who has not begun begins with it.
        let Some(view) = self.basis.view() else {
            return Ok(());
        };
        match order {
            Order::Healthy(on) => {
                view.report_health(*on);
                Ok(())
            }
            Order::Weight(weight) => view.report_weight(*weight),
            Order::Partitions(_) => {
                let group = group(&self.basis.habits.now())?;
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
