//! A member in leader mode.

use std::str::FromStr as _;
use std::sync::Arc;
use std::time::Duration;

use divvy::manager::{
    EventKind, Manager, ManagerError, ManagerEvent, Settings, Shutdown, StoreOutage, View,
    state_name,
};
use divvy::store::{KeyValue, StoreErrorKind, StoreSettings, StoreUrl, open_key_value};
use divvy_core::{Health, Invalid, StrategyName, StrategySettings};
use tokio::sync::{mpsc, oneshot};

use super::basis::{Basis, EVENTS_MAX};
use super::line::{Brief, Order, Said};
use super::mouth::{Mouth, nanos};
use super::source::Source;
use super::weathered::Weathered;
use super::{Ending, Followed};

/// More ids than there ever are workers at once.
const WORKER_ID_MAX: u32 = 999;
/// How often the partitions are listed unasked: a list that has lost more than
/// half of them is believed when it is given twice.
const LISTED_EVERY: Duration = Duration::from_secs(2);

pub(super) struct Leader {
    basis: Basis<View>,
    source: Arc<Source>,
}

impl Leader {
    pub(super) fn new(basis: Basis<View>) -> Self {
        Self {
            source: Arc::new(Source::new(basis.habits.clone())),
            basis,
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
            let opened = self.basis.reach(|| open_key_value(&url, &settings));
            let store = Weathered::new(opened.await?, &self.basis.sky);
            let store: Arc<dyn KeyValue> = Arc::new(store);
            let attempt = || self.start(Arc::clone(&store));
            self.basis.persist(attempt, may_help).await
        };
        let (manager, ended) = tokio::select! {
            started = starting => started?,
            // A start that is given up leaves nothing behind.
            _ending = &mut stopping => return Ok(()),
        };
        let ending = tokio::select! {
            ending = stopping => ending,
            _over = ended => return Err("its manager has ended".to_owned()),
        };
        let how = match ending.ok().and_then(|ending| ending.keep) {
            Some(within) => Shutdown::Return { within },
            None => Shutdown::Leave,
        };
        manager.stop(how).await.map_err(|error| error.to_string())
    }

    async fn start(
        &self,
        store: Arc<dyn KeyValue>,
    ) -> Result<(Manager, oneshot::Receiver<()>), ManagerError> {
        let brief = self.basis.habits.now().clone();
        let (events, happening) = mpsc::channel(EVENTS_MAX);
        let (over, ended) = oneshot::channel();
        tokio::spawn(tell(happening, self.basis.mouth.clone(), over));
        let manager = Manager::builder(store, Arc::clone(&self.source))
            .settings(settings(&brief)?)
            .hooks(self.basis.work())
            .events(events)
            .start_with(|view| {
                view.report_health(health(brief.healthy));
                self.basis.show(view);
            })
            .await?;
        Ok((manager, ended))
    }

    /// Does what is not done by having heard it.
    pub(super) async fn follow(&self, order: &Order) -> Followed {
        let view = self.basis.view();
        if let Order::Partitions(_) | Order::PartitionWeight(..) = order {
            self.source.change();
        }
        // Who has not begun begins with it.
        let Some(view) = view else { return Ok(()) };
        let described = match order {
            Order::Healthy(on) => {
                view.report_health(health(*on));
                Ok(())
            }
            Order::Weight(weight) => view.report_weight(*weight),
            Order::Zone(zone) => view.report_zone(zone.as_deref()),
            _ => Ok(()),
        };
        described.map_err(|error| match error {
            ManagerError::Invalid(invalid) => invalid,
            other => Invalid::new("order", format!("{order:?}"), other.to_string()),
        })
    }
}

fn settings(brief: &Brief) -> Result<Settings, ManagerError> {
    let mut settings = match brief.preset.as_str() {
        "fast" => Settings::fast(),
        "calm" => Settings::calm(),
        _ => Settings::default(),
    };
    settings.instance = Some(brief.name.clone());
    settings.weight = brief.weight;
    settings.zone.clone_from(&brief.zone);
    settings.strategy = StrategySettings::new(StrategyName::from_str(&brief.strategy)?);
    settings.leader.worker_id_max = WORKER_ID_MAX;
    settings.leader.partition_poll_interval = Some(LISTED_EVERY);
    settings.leader.store_outage = match brief.exclusive {
        true => StoreOutage::Exclusive,
        false => StoreOutage::Overlap,
    };
    Ok(settings)
}

const fn health(is_healthy: bool) -> Health {
    match is_healthy {
        true => Health::Healthy,
        false => Health::Unhealthy,
    }
}

/// Whether a start may work later as it is.
fn may_help(error: &ManagerError) -> bool {
    match error {
        ManagerError::Invalid(_) => false,
        ManagerError::Store(error) => error.kind() == StoreErrorKind::Unavailable,
        _ => true,
    }
}

/// Says what happens, until the manager has ended.
async fn tell(
    mut happening: mpsc::Receiver<ManagerEvent>,
    mouth: Mouth,
    over: oneshot::Sender<()>,
) {
    while let Some(event) = happening.recv().await {
        let at = nanos(event.at);
        let said = match event.kind {
            EventKind::Deadline { identity, until } => Said::Deadline {
                at,
                identity: identity.map(|(id, session)| (id.into(), format!("{:x}", session.0))),
                until: until.map(nanos),
            },
            EventKind::StateChanged { to, .. } => Said::State {
                state: state_name(to).to_owned(),
            },
            EventKind::Error(error) => Said::Trouble {
                text: error.to_string(),
            },
            EventKind::Ended => break,
            _ => continue,
        };
        mouth.say(&said);
    }
    // Whoever stopped it does not wait for that.
    let _unheard = over.send(());
}
