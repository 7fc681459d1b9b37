//! Hooks that do well, and hooks that do not.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use divvy::Partition;
use divvy::manager::{
    EventKind, Grant, HookError, Hooks, ManagerError, NoHooks, Overdue, Shutdown, State,
};
use divvy_testbed::until;

use crate::bed::{Bed, SOON};
use crate::fleet::Fleet;

/// Notes how its calls lie beside each other.
#[derive(Debug, Default)]
struct Order {
    /// What runs of each partition, and the most starts and stops at once.
    running: Mutex<BTreeMap<String, bool>>,
    at_once: [AtomicUsize; 2],
    most: [AtomicUsize; 2],
    /// Calls that come one at a time.
    inside: AtomicBool,
    told: Mutex<Vec<String>>,
    broken: Mutex<Vec<String>>,
}

struct Watchful(Arc<Order>);

impl Watchful {
    async fn alone(&self, text: String) {
        let order = &self.0;
        if order.inside.swap(true, Ordering::SeqCst) {
            order
                .broken
                .lock()
                .unwrap()
                .push(format!("{text} overlaps"));
        }
        tokio::task::yield_now().await;
        order.told.lock().unwrap().push(text);
        order.inside.store(false, Ordering::SeqCst);
    }

    async fn step(&self, partition: &Partition, starts: bool) {
        let order = &self.0;
        let kind = usize::from(starts);
        let now = order.at_once[kind].fetch_add(1, Ordering::SeqCst) + 1;
        order.most[kind].fetch_max(now, Ordering::SeqCst);
        let before = order
            .running
            .lock()
            .unwrap()
            .insert(partition.to_string(), starts);
        if before.unwrap_or(false) == starts {
            let text = format!("{partition} twice {starts}");
            order.broken.lock().unwrap().push(text);
        }
        for _ in 0..20 {
            tokio::task::yield_now().await;
        }
        order.at_once[kind].fetch_sub(1, Ordering::SeqCst);
    }
}

#[async_trait]
impl Hooks for Watchful {
    async fn assigned(&self, partition: &Partition, _grant: Grant) -> Result<(), HookError> {
        self.step(partition, true).await;
        Ok(())
    }

    async fn revoked(&self, partition: &Partition) -> Result<(), HookError> {
        self.step(partition, false).await;
        Ok(())
    }

    async fn assignment_changed(
        &self,
        added: &[Partition],
        removed: &[Partition],
    ) -> Result<(), HookError> {
        let text = format!("changed +{} -{}", added.len(), removed.len());
        self.alone(text).await;
        Ok(())
    }

    async fn state_changed(&self, from: State, to: State) {
        self.alone(format!("state {from:?} {to:?}")).await;
    }

    async fn leadership_changed(&self, is_leader: bool) {
        self.alone(format!("leads {is_leader}")).await;
    }

    async fn error(&self, error: &ManagerError) {
        self.alone(format!("error {error}")).await;
    }
}

/// Calls that belong in a line do not overlap, those of partitions alternate,
/// and no more run at once than may.
pub(crate) async fn calls_come_in_order_and_bounded(bed: Bed) {
    let mut fleet = Fleet::new(bed, 200);
    fleet.settings.hook_concurrency = 7;
    let order = Arc::new(Order::default());
    fleet.join_with("one", Watchful(Arc::clone(&order))).await;
    fleet.owned().await;
    let other = fleet.join("two").await;
    fleet.balanced().await;
    fleet.stop(other, Shutdown::Leave).await.unwrap();
    fleet.owned().await;
    fleet.end().await;
    assert!(
        order.broken.lock().unwrap().is_empty(),
        "{:?}",
        order.broken
    );
    for most in &order.most {
        let most = most.load(Ordering::SeqCst);
        assert!((2..=7).contains(&most), "{most} at once");
    }
    assert!(order.running.lock().unwrap().values().all(|runs| !runs));
    let told = order.told.lock().unwrap();
    let place = |text: &str| told.iter().position(|told| told.contains(text));
    let expected = ["state Init ClaimingId", "leads true", "leads false"];
    let places: Vec<_> = expected
        .iter()
        .map(|text| place(text).expect(text))
        .collect();
    assert!(places.is_sorted(), "{told:?}");
    let sums = told
        .iter()
        .filter_map(|text| text.strip_prefix("changed +"));
    let (mut added, mut removed) = (0, 0);
    for text in sums {
        let (plus, minus) = text.split_once(" -").unwrap();
        added += plus.parse::<u32>().unwrap();
        removed += minus.parse::<u32>().unwrap();
    }
    // More only where a busy machine could not keep the lease.
    assert!(added >= 300 && added == removed, "+{added} -{removed}");
}

/// Goes wrong the first time for every partition.
#[derive(Default)]
struct Clumsy {
    tried: Mutex<BTreeMap<String, u32>>,
    errors: Arc<Mutex<Vec<String>>>,
}

#[async_trait]
impl Hooks for Clumsy {
    async fn assigned(&self, partition: &Partition, _grant: Grant) -> Result<(), HookError> {
        let mut tried = self.tried.lock().unwrap();
        let count = tried.entry(partition.to_string()).or_default();
        *count += 1;
        let number: u32 = partition.segments().nth(1).unwrap().parse()?;
        match (*count, number % 2) {
            (1, 0) => Err("not today".into()),
            (1, _) => {
                drop(tried);
                panic!("a hook panics")
            }
            _ => Ok(()),
        }
    }

    async fn revoked(&self, _partition: &Partition) -> Result<(), HookError> {
        panic!("a stop hook panics")
    }

    async fn state_changed(&self, _from: State, _to: State) {
        panic!("a third hook panics")
    }

    async fn error(&self, error: &ManagerError) {
        self.errors.lock().unwrap().push(error.to_string());
        panic!("even this one")
    }
}

/// What fails or panics is told and tried again; nothing else suffers.
pub(crate) async fn failing_and_panicking_hooks_are_survived(bed: Bed) {
    let mut fleet = Fleet::new(bed, 10);
    let clumsy = Clumsy::default();
    let errors = Arc::clone(&clumsy.errors);
    fleet.join_with("one", clumsy).await;
    let view = fleet.views().remove(0);
    let started = |fleet: &mut Fleet| {
        let done = |kind: &EventKind| matches!(kind, EventKind::Started { failed: false, .. });
        fleet
            .events(0)
            .iter()
            .filter(|event| done(&event.kind))
            .count()
    };
    until(SOON, "all are started at last", async || {
        started(&mut fleet) == 10
    })
    .await;
    let is_told = |text: &str| {
        errors
            .lock()
            .unwrap()
            .iter()
            .any(|told| told.contains(text))
    };
    until(SOON, "failures are told", async || {
        is_told("hook assigned of 'p:0': not today")
            && is_told("hook assigned of 'p:1': panicked: a hook panics")
            && is_told("hook state_changed: panicked: a third hook panics")
    })
    .await;
    assert_eq!(view.metrics().heartbeat_failures(), 0);
    fleet.end().await;
}

/// Blocks every thread of the application's runtime.
struct Blocking(
    std::sync::mpsc::Sender<()>,
    Mutex<std::sync::mpsc::Receiver<()>>,
);

#[async_trait]
impl Hooks for Blocking {
    async fn assigned(&self, _partition: &Partition, _grant: Grant) -> Result<(), HookError> {
        self.0.send(())?;
        // Blocks the thread, and the others behind the lock.
        let _released = self.1.lock().unwrap().recv();
        Ok(())
    }
}

/// An application that blocks its runtime for several leases keeps its lease.
pub(crate) fn a_blocked_runtime_does_not_stop_heartbeats(bed: impl AsyncFnOnce() -> Bed) {
    let runtime = |threads| {
        tokio::runtime::Builder::new_multi_thread()
            .worker_threads(threads)
            .enable_all()
            .build()
            .unwrap()
    };
    let (own, blocked) = (runtime(2), runtime(1));
    let (entered, enters) = std::sync::mpsc::channel();
    let (release, released) = std::sync::mpsc::channel();
    own.block_on(async {
        let mut fleet = Fleet::unrecorded(bed().await, 4);
        fleet.settings.leader.heartbeat_ttl = Duration::from_secs(2);
        fleet.settings.leader.leader_lease = Duration::from_secs(1);
        let recruit = fleet
            .recruit("blocked", Blocking(entered, Mutex::new(released)))
            .await;
        let manager = blocked.spawn(recruit.builder.start());
        // The runtime may block before it can tell of the start.
        until(SOON, "its runtime is blocked", async || {
            manager.is_finished() || enters.try_recv().is_ok()
        })
        .await;
        let other = fleet.join("other").await;
        let view = fleet.workers[other].as_ref().unwrap().view();
        let lease = fleet.settings.leader.heartbeat_ttl;
        let beats = |fleet: &mut Fleet| {
            let is_beat =
                |kind: &EventKind| matches!(kind, EventKind::Deadline { until: Some(_), .. });
            fleet
                .events(0)
                .iter()
                .filter(|event| is_beat(&event.kind))
                .count()
        };
        let many = lease.as_millis() / fleet.settings.leader.heartbeat_interval.as_millis() * 3;
        let first = beats(&mut fleet);
        until(SOON, "it renews for three leases", async || {
            (beats(&mut fleet) - first) as u128 > many
        })
        .await;
        let ended = |kind: &EventKind| matches!(kind, EventKind::SessionEnded { .. });
        assert!(!fleet.events(0).iter().any(|event| ended(&event.kind)));
        assert!(view.worker_id().is_some());
        drop(release);
        fleet.workers[0] = Some(manager.await.unwrap().unwrap());
        fleet.end().await;
    });
}

/// Never returns from stopping one partition.
struct Stuck;

#[async_trait]
impl Hooks for Stuck {
    async fn revoked(&self, partition: &Partition) -> Result<(), HookError> {
        match partition.as_str() {
            "p:0" => std::future::pending().await,
            _ => Ok(()),
        }
    }
}

/// A stop that never ends holds back its own partition and no other; stopping
/// is bounded, and nothing that hung lives on.
pub(crate) async fn a_stop_that_never_ends_holds_back_only_its_own(bed: Bed) {
    let mut fleet = Fleet::new(bed, 10);
    fleet.settings.leader.overdue = Overdue::Report;
    fleet.settings.leader.stop_deadline = Duration::from_millis(300);
    fleet.settings.leader.shutdown_timeout = Duration::from_secs(2);
    let stuck = fleet.join_with("stuck", Stuck).await;
    fleet.owned().await;
    let other = fleet.join("other").await;
    fleet.views()[stuck].report_health(divvy::Health::Unhealthy);
    let view = fleet.workers[other].as_ref().unwrap().view();
    until(SOON, "the others are handed on", async || {
        view.current_assignment().partitions.len() == 9
    })
    .await;
    let overdue = |event: &EventKind| match event {
        EventKind::Error(error) => error.to_string().contains("stop hook of p:0 is overdue"),
        _ => false,
    };
    until(SOON, "it is told", async || {
        fleet.events(stuck).iter().any(|event| overdue(&event.kind))
    })
    .await;
    let stopped = fleet.stop(stuck, Shutdown::Leave).await;
    assert!(
        matches!(stopped, Err(ManagerError::StopTimedOut { .. })),
        "{stopped:?}"
    );
    fleet.owned().await;
    fleet.end().await;
}

/// Keeps the grants that it gets.
#[derive(Default, Clone)]
struct Keeping(Arc<Mutex<Vec<Grant>>>);

#[async_trait]
impl Hooks for Keeping {
    async fn assigned(&self, _partition: &Partition, grant: Grant) -> Result<(), HookError> {
        self.0.lock().unwrap().push(grant);
        Ok(())
    }

    async fn revoked(&self, partition: &Partition) -> Result<(), HookError> {
        let grants = self.0.lock().unwrap();
        let grant = grants
            .iter()
            .rev()
            .find(|grant| grant.partition() == partition);
        let grant = grant.ok_or("it was never granted")?;
        // What was begun may be finished here.
        match grant.is_revoked() && grant.is_current() {
            true => Ok(()),
            false => Err("it is over too early".into()),
        }
    }
}

/// Grants are current while owned, and over when given back; the next owner's
/// token is higher.
pub(crate) async fn grants_are_current_until_they_are_given_back(bed: Bed) {
    let mut fleet = Fleet::new(bed, 6);
    let (first, second) = (Keeping::default(), Keeping::default());
    let one = fleet.join_with("one", first.clone()).await;
    fleet.owned().await;
    assert!(first.0.lock().unwrap().iter().all(Grant::is_current));
    fleet.join_with("two", second.clone()).await;
    fleet.balanced().await;
    let over = || {
        let grants = first.0.lock().unwrap();
        grants.iter().filter(|grant| !grant.is_current()).count()
    };
    assert_eq!(over(), 3);
    fleet.stop(one, Shutdown::Leave).await.unwrap();
    fleet.owned().await;
    assert_eq!(over(), 6);
    for taken in second.0.lock().unwrap().iter() {
        let grants = first.0.lock().unwrap();
        let before = grants
            .iter()
            .find(|grant| grant.partition() == taken.partition());
        assert!(taken.is_current() && taken.token() > before.unwrap().token());
    }
    let failed = |kind: &EventKind| matches!(kind, EventKind::Error(ManagerError::Hook { .. }));
    for number in 0..2 {
        assert!(!fleet.events(number).iter().any(|event| failed(&event.kind)));
    }
    fleet.end().await;
    assert!(!second.0.lock().unwrap().iter().any(Grant::is_current));
}

/// Nothing to call is nothing wrong.
pub(crate) async fn a_manager_without_hooks_only_shows(bed: Bed) {
    let mut fleet = Fleet::new(bed, 5);
    fleet.join_with("one", NoHooks).await;
    let mut following = fleet.views()[0].watch_assignment();
    let mut shown = following.current();
    while shown.partitions.len() < 5 {
        shown = following.changed().await;
    }
    assert!(shown.version.is_some() && shown.lifecycle.is_some());
    fleet.end().await;
}

/// Never returns from what only tells.
struct Chatty;

#[async_trait]
impl Hooks for Chatty {
    async fn state_changed(&self, _from: State, _to: State) {
        std::future::pending::<()>().await;
    }

    async fn leadership_changed(&self, _is_leader: bool) {
        std::future::pending::<()>().await;
    }

    async fn error(&self, _error: &ManagerError) {
        std::future::pending::<()>().await;
    }
}

/// Hooks that only tell, and never return, hold up neither starts nor stops,
/// and end no process.
pub(crate) async fn hooks_that_only_tell_hold_up_nothing(bed: Bed) {
    let mut fleet = Fleet::new(bed, 10);
    let stop_deadline = fleet.settings.leader.stop_deadline;
    let chatty = fleet.join_with("chatty", Chatty).await;
    fleet.owned().await;
    fleet.join("other").await;
    fleet.balanced().await;
    let begun = std::time::Instant::now();
    fleet.stop(chatty, Shutdown::Leave).await.unwrap();
    assert!(begun.elapsed() < stop_deadline * 3, "{:?}", begun.elapsed());
    fleet.owned().await;
    fleet.end().await;
}

/// Takes a moment to start and to stop.
struct Unhurried;

#[async_trait]
impl Hooks for Unhurried {
    async fn assigned(&self, _partition: &Partition, _grant: Grant) -> Result<(), HookError> {
        a_moment().await;
        Ok(())
    }

    async fn revoked(&self, _partition: &Partition) -> Result<(), HookError> {
        a_moment().await;
        Ok(())
    }
}

async fn a_moment() {
    let begun = std::time::Instant::now();
    while begun.elapsed() < Duration::from_millis(20) {
        tokio::task::yield_now().await;
    }
}

/// One hook at a time, and all together far longer than one may take: that they
/// wait is reported, and not held against them.
pub(crate) async fn hooks_that_wait_for_their_turn_are_reported_and_not_ended(bed: Bed) {
    let mut fleet = Fleet::new(bed, 100);
    fleet.settings.hook_concurrency = 1;
    fleet.settings.leader.start_deadline = Duration::from_secs(1);
    fleet.settings.leader.stop_deadline = Duration::from_secs(1);
    let one = fleet.join_with("one", Unhurried).await;
    fleet.owned().await;
    fleet.stop(one, Shutdown::Leave).await.unwrap();
    let told = fleet
        .events(one)
        .iter()
        .filter_map(|event| match &event.kind {
            EventKind::Error(error) => Some(error.to_string()),
            _ => None,
        });
    let overdue: Vec<_> = told.filter(|text| text.contains("overdue")).collect();
    let waits = "for its turn, while as many start hooks run as may at once (hook_concurrency: 1)";
    assert!(
        overdue.iter().any(|text| text.contains(waits)),
        "{overdue:?}"
    );
    assert!(
        overdue.iter().all(|text| text.contains("for its turn")),
        "{overdue:?}"
    );
    fleet.check();
}

/// A runtime that ends takes its hooks with it: nothing is said to have been
/// stopped, and others wait for the lease.
pub(crate) fn a_runtime_that_ends_gives_nothing_back(bed: impl AsyncFnOnce() -> Bed) {
    let runtime = |threads| {
        tokio::runtime::Builder::new_multi_thread()
            .worker_threads(threads)
            .enable_all()
            .build()
            .unwrap()
    };
    let (own, short) = (runtime(2), runtime(1));
    own.block_on(async {
        let mut fleet = Fleet::unrecorded(bed().await, 4);
        let recruit = fleet.recruit("short", NoHooks).await;
        let manager = short.spawn(recruit.builder.start()).await.unwrap();
        let view = manager.as_ref().unwrap().view();
        until(SOON, "it owns everything", async || {
            view.current_assignment().partitions.len() == 4
        })
        .await;
        short.shutdown_background();
        until(SOON, "it has ended", async || {
            view.state() == State::Shutdown
        })
        .await;
        let stopped = manager.unwrap().stop(Shutdown::Leave).await;
        let told = stopped.unwrap_err().to_string();
        assert!(
            told.contains("the runtime that it was started on"),
            "{told}"
        );
        let gave_back = |kind: &EventKind| matches!(kind, EventKind::Stopped { .. });
        let events = fleet.events(0).iter();
        assert_eq!(events.filter(|event| gave_back(&event.kind)).count(), 0);
        fleet.join("other").await;
        fleet.owned().await;
        fleet.end().await;
    });
}
