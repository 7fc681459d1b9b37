//! A cluster of servers that loses one.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use divvy::manager::{EventKind, Manager, ManagerEvent, Settings, Shutdown, StaticSource};
use divvy::store::{Key, KeyValue, StoreSettings, StoreUrl, open_key_value};
use divvy::{Balanced, Partitions};
use divvy_testbed::{NatsCluster, NatsVersion, until, until_some};
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use crate::bed::SOON;
use crate::chronicle::Chronicle;
use crate::recorder::{Record, Recorder};

/// What several managers said, each under its number.
struct Events {
    hearing: Vec<mpsc::Receiver<ManagerEvent>>,
    heard: Vec<(usize, ManagerEvent)>,
}

impl Events {
    fn new(hearing: Vec<mpsc::Receiver<ManagerEvent>>) -> Self {
        let heard = Vec::new();
        Self { hearing, heard }
    }

    /// Takes what was said since, and gives how much it is by now.
    fn hear(&mut self) -> usize {
        for (number, hearing) in self.hearing.iter_mut().enumerate() {
            while let Ok(event) = hearing.try_recv() {
                self.heard.push((number, event));
            }
        }
        self.heard.len()
    }

    fn count(&self, since: usize, is_it: impl Fn(&EventKind) -> bool) -> usize {
        let new = self.heard[since..].iter();
        new.filter(|(_, event)| is_it(&event.kind)).count()
    }
}

/// Writes without pause until it is dropped, and counts.
fn load(url: &StoreUrl, store: &StoreSettings, count: &Arc<AtomicUsize>) -> JoinSet<()> {
    let settings = StoreSettings {
        cluster: "load".to_owned(),
        ..store.clone()
    };
    let (url, count) = (url.clone(), Arc::clone(count));
    let mut writing = JoinSet::new();
    writing.spawn(async move {
        let opened = open_key_value(&url, &settings).await.unwrap();
        let key = Key::new(["counter"]).unwrap();
        loop {
            let known = opened.get(&key).await;
            let Ok(known) = known.map(|known| known.map(|entry| entry.revision)) else {
                continue;
            };
            if opened
                .compare_and_set(&key, known.into(), b"x")
                .await
                .is_ok()
            {
                count.fetch_add(1, Ordering::Relaxed);
            }
        }
    });
    writing
}

/// Three managers that start at once, and what they say.
async fn started(
    url: &StoreUrl,
    store: &StoreSettings,
    partitions: &Partitions,
    record: &Record,
) -> (Vec<Manager>, Vec<mpsc::Receiver<ManagerEvent>>) {
    let (mut managers, mut heard) = (Vec::new(), Vec::new());
    for number in 0..3 {
        let mut settings = Settings {
            instance: Some(format!("host-{number}")),
            ..Settings::calm()
        };
        settings.leader.startup_timeout = SOON * 2;
        settings.leader.cold_start_window = Duration::from_secs(5);
        settings.leader.expected_workers = Some(3);
        let (told, hearing) = mpsc::channel(1 << 16);
        heard.push(hearing);
        let source = StaticSource::new(partitions.clone());
        let (url, store, record) = (url.clone(), store.clone(), record.clone());
        managers.push(tokio::spawn(async move {
            let opened = open_key_value(&url, &store).await.unwrap();
            let recorder: Arc<dyn KeyValue> =
                Arc::new(Recorder::new(opened, number, record, Arc::default()));
            let builder = Manager::builder(recorder, source).settings(settings);
            builder.strategy(Balanced::new()).events(told).start().await
        }));
    }
    let mut started = Vec::new();
    for manager in managers {
        started.push(manager.await.unwrap().unwrap());
    }
    (started, heard)
}

/// Three servers hold the bucket, which three workers make at once, and the one
/// that leads it is killed under load. Writes stall for seconds; then leases are
/// renewed, and no work was interrupted.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn with_calm_the_loss_of_the_leader_of_a_replicated_bucket_interrupts_nothing() {
    let mut cluster = NatsCluster::start(NatsVersion::Newest, 3).await;
    let partitions = Partitions::shards([("p", 30)]).unwrap();
    let record = Record::default();
    let store = StoreSettings {
        cluster: "tests".to_owned(),
        connect_timeout: Duration::from_secs(60),
        operation_timeout: Duration::from_secs(5),
        replicas: 3,
        ..StoreSettings::default()
    };
    let url: StoreUrl = cluster.url().parse().unwrap();
    let (started, heard) = started(&url, &store, &partitions, &record).await;
    let owned = || {
        let counts = started
            .iter()
            .map(|manager| manager.current_assignment().partitions.len());
        counts.sum::<usize>()
    };
    until(SOON * 2, "all are owned", async || owned() == 30).await;
    let written = Arc::new(AtomicUsize::new(0));
    let writing = load(&url, &store, &written);
    until(SOON, "load", async || written.load(Ordering::Relaxed) > 100).await;
    let mut events = Events::new(heard);
    let before_kill = events.hear();
    let leader = until_some(SOON, "a leader of the bucket", async || {
        cluster.leader_of("KV_divvy").await
    });
    let leader = leader.await;
    cluster.server(leader).kill();
    let before = written.load(Ordering::Relaxed);
    until(SOON * 2, "leases are renewed again", async || {
        events.hear();
        let is_renewal =
            |kind: &EventKind| matches!(kind, EventKind::Deadline { until: Some(_), .. });
        // More than were under way, by all of them.
        let renewals = events.count(before_kill, is_renewal);
        renewals >= 24 && written.load(Ordering::Relaxed) > before + 100
    })
    .await;
    let revoked = events.count(before_kill, |kind| {
        matches!(kind, EventKind::Revoked { .. })
    });
    assert_eq!((revoked, owned()), (0, 30));
    drop(writing);
    for manager in started {
        manager.stop(Shutdown::Leave).await.unwrap();
    }
    events.hear();
    let mut chronicle = Chronicle::default();
    for (number, event) in &events.heard {
        chronicle.say(*number, event);
    }
    record.tell(&mut chronicle.history);
    chronicle.history.listed(Default::default(), partitions);
    chronicle.check(Settings::calm().leader.heartbeat_ttl);
}
