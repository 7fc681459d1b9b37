//! Settings of lease mode.

use std::time::Duration;

use crate::error::Invalid;
use crate::leader::{CLOCK_DRIFT_PER_MILLE, Overdue};
use crate::store::GivingUp;

/// Shortest lease: below it, scheduling and the network alone would end it.
pub const LEASE_TTL_MIN: Duration = Duration::from_millis(300);
/// Longest of all timings.
pub const LEASE_TIMING_MAX: Duration = Duration::from_hours(24);

/// How long an answer to a renewal is waited for at most, however long the
/// lease is.
const RENEWAL_TRY_MAX: Duration = Duration::from_secs(2);

/// Settings of a member in lease mode.
///
/// ```
/// use divvy_core::lease::LeaseSettings;
/// use std::time::Duration;
///
/// let mut settings = LeaseSettings::default();
/// assert!(settings.check().is_ok());
/// settings.renew_interval = Duration::from_secs(5);
/// assert_eq!(settings.check().unwrap_err().field(), "renew_interval");
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct LeaseSettings {
    /// How long a worker counts as alive after its last heartbeat.
    pub heartbeat_ttl: Duration,
    /// How often it beats: less than `heartbeat_ttl`.
    pub heartbeat_interval: Duration,
    /// How long a partition stays its owner's without a renewal, and how long
    /// the partitions of a crashed worker wait for the next owner. At least
    /// [`LEASE_TTL_MIN`].
    pub lease_ttl: Duration,
    /// How often leases are renewed: less than half of `lease_ttl`.
    pub renew_interval: Duration,
    /// How often everything is looked at although nothing was announced.
    pub reconcile_interval: Duration,
    /// The share, in 0..=1, by which that interval varies, so that workers do
    /// not look all at once.
    pub reconcile_jitter: f64,
    /// How often the documents of groups are read although no change was
    /// announced.
    pub config_refresh_interval: Duration,
    /// Whether partitions that another worker should have are given up.
    pub shedding: bool,
    /// Whether at most `releases_per_reconcile` of them are at a time.
    pub gentle_handoff: bool,
    /// How many partitions are given up in one reconcile; 0 is no limit.
    pub releases_per_reconcile: u32,
    /// How long a partition runs before it is given up for another worker.
    pub min_runtime: Duration,
    /// How long a partition stays after it moved; 0 is not at all.
    pub move_cooldown: Duration,
    /// How long nothing is taken or given up after a failure of the store, and
    /// how long a partition whose start failed is left alone, at first.
    pub backoff: Duration,
    /// The same after many failures in a row.
    pub backoff_max: Duration,
    /// How many partitions this worker owns at most; 0 is no limit.
    pub max_partitions: u32,
    /// How many of one group; 0 is no limit. The group's own limit holds
    /// besides.
    pub max_per_group: u32,
    /// Below how many it gives up none for another worker.
    pub min_partitions: u32,
    /// How many partitions that another worker should have, and does not take,
    /// are taken in one reconcile; 0 is no limit.
    pub acquires_per_reconcile: u32,
    /// Whether leases are given back when the worker stops. Otherwise they run
    /// out, and a worker that is back before gets them again.
    pub release_on_shutdown: bool,
    /// The weight of workers that say nothing of themselves.
    pub default_weight: f64,
    /// How long an operation on the store may take. Renewals are bounded by a
    /// fifth of `lease_ttl` besides.
    pub operation_timeout: Duration,
    /// How long a start hook may take before it is reported.
    pub start_deadline: Duration,
    /// How long a stop hook may take before it is reported. May be longer than
    /// a lease: renewals go on meanwhile.
    pub stop_deadline: Duration,
    /// How long a stop hook may run before its lease is no longer renewed, and
    /// for how long a start hook may outlast `start_deadline`. The lease then
    /// expires by itself; it is never released before the hook has returned.
    /// Only for hooks that ask another service to stop, which may be
    /// gone: without a value, leases are renewed until their stop has returned.
    pub stop_confirm_timeout: Option<Duration>,
    /// What happens to a hook that does not end.
    pub overdue: Overdue,
    /// How long a stop may take; after it the member ends, and what has not
    /// stopped keeps its lease until that runs out.
    pub shutdown_timeout: Duration,
    /// How long a worker that starts waits for others to start, while nobody
    /// came for a third of it.
    pub start_window: Duration,
}

impl LeaseSettings {
    /// For hand-over within a second: a lease of 1 s. For a store nearby and
    /// an idle network.
    pub fn fast() -> Self {
        let ms = Duration::from_millis;
        Self {
            heartbeat_ttl: ms(1_000),
            heartbeat_interval: ms(250),
            lease_ttl: ms(1_000),
            renew_interval: ms(250),
            reconcile_interval: ms(400),
            config_refresh_interval: ms(2_000),
            min_runtime: ms(300),
            move_cooldown: ms(500),
            backoff: ms(100),
            backoff_max: ms(1_000),
            operation_timeout: ms(1_000),
            start_deadline: ms(2_000),
            stop_deadline: ms(2_000),
            start_window: ms(450),
            ..Self::default()
        }
    }

    /// The timings of the system whose layout of keys is shared.
    pub fn rendezgo() -> Self {
        let seconds = Duration::from_secs;
        Self {
            heartbeat_ttl: seconds(120),
            heartbeat_interval: seconds(10),
            lease_ttl: seconds(90),
            renew_interval: seconds(30),
            reconcile_interval: seconds(22),
            min_runtime: seconds(90),
            move_cooldown: seconds(300),
            backoff: seconds(45),
            backoff_max: seconds(45),
            ..Self::default()
        }
    }

    /// The same with what may change while a worker runs taken from others:
    /// limits and the pace of moves. Nobody else's safety depends on those.
    #[must_use]
    pub fn tuned(self, others: &Self) -> Self {
        Self {
            shedding: others.shedding,
            gentle_handoff: others.gentle_handoff,
            releases_per_reconcile: others.releases_per_reconcile,
            acquires_per_reconcile: others.acquires_per_reconcile,
            min_runtime: others.min_runtime,
            move_cooldown: others.move_cooldown,
            max_partitions: others.max_partitions,
            max_per_group: others.max_per_group,
            min_partitions: others.min_partitions,
            ..self
        }
    }

    /// Whether all values are inside their bounds and fit together.
    pub fn check(&self) -> Result<(), Invalid> {
        for (field, value) in self.timings() {
            if value > LEASE_TIMING_MAX {
                let rule = format!("must be at most {LEASE_TIMING_MAX:?}");
                return Err(Invalid::new(field, format!("{value:?}"), rule));
            }
        }
        // First: what is not set besides follows it.
        if self.lease_ttl < LEASE_TTL_MIN {
            let rule = format!("must be at least {LEASE_TTL_MIN:?}");
            let value = format!("{:?}", self.lease_ttl);
            return Err(Invalid::new("lease_ttl", value, rule));
        }
        let least = Duration::from_millis(10);
        for (field, value) in self.intervals() {
            if value < least {
                let rule = format!("must be at least {least:?}");
                return Err(Invalid::new(field, format!("{value:?}"), rule));
            }
        }
        let below = [
            (
                "heartbeat_interval",
                self.heartbeat_interval,
                self.heartbeat_ttl.min(self.lease_ttl),
                "heartbeat_ttl and lease_ttl",
            ),
            (
                "renew_interval",
                self.renew_interval,
                self.lease_ttl / 2,
                "half of lease_ttl",
            ),
        ];
        for (field, value, most, what) in below {
            if value >= most {
                let rule = format!("must be below {what} ({most:?})");
                return Err(Invalid::new(field, format!("{value:?}"), rule));
            }
        }
        if let Some(timeout) = self.stop_confirm_timeout
            && timeout < self.stop_deadline
        {
            let rule = format!("must be at least stop_deadline ({:?})", self.stop_deadline);
            let value = format!("{timeout:?}");
            return Err(Invalid::new("stop_confirm_timeout", value, rule));
        }
        if self.backoff_max < self.backoff {
            let rule = format!("must be at least backoff ({:?})", self.backoff);
            let value = format!("{:?}", self.backoff_max);
            return Err(Invalid::new("backoff_max", value, rule));
        }
        self.check_numbers()
    }

    fn check_numbers(&self) -> Result<(), Invalid> {
        if !(0.0..=1.0).contains(&self.reconcile_jitter) {
            let value = self.reconcile_jitter;
            return Err(Invalid::new("reconcile_jitter", value, "must be in 0..=1"));
        }
        let weights = crate::worker::WORKER_WEIGHT_MIN..=crate::worker::WORKER_WEIGHT_MAX;
        if !weights.contains(&self.default_weight) {
            let rule = format!("must be in {}..={}", weights.start(), weights.end());
            return Err(Invalid::new("default_weight", self.default_weight, rule));
        }
        if self.max_partitions > 0 && self.min_partitions > self.max_partitions {
            let rule = format!("must be at most max_partitions ({})", self.max_partitions);
            return Err(Invalid::new("min_partitions", self.min_partitions, rule));
        }
        Ok(())
    }

    fn intervals(&self) -> [(&'static str, Duration); 10] {
        [
            ("heartbeat_ttl", self.heartbeat_ttl),
            ("heartbeat_interval", self.heartbeat_interval),
            ("renew_interval", self.renew_interval),
            ("reconcile_interval", self.reconcile_interval),
            ("config_refresh_interval", self.config_refresh_interval),
            ("backoff", self.backoff),
            ("operation_timeout", self.operation_timeout),
            ("start_deadline", self.start_deadline),
            ("stop_deadline", self.stop_deadline),
            ("shutdown_timeout", self.shutdown_timeout),
        ]
    }

    fn timings(&self) -> impl Iterator<Item = (&'static str, Duration)> {
        let others = [
            ("lease_ttl", self.lease_ttl),
            ("min_runtime", self.min_runtime),
            ("move_cooldown", self.move_cooldown),
            ("backoff_max", self.backoff_max),
            ("start_window", self.start_window),
        ];
        let confirm = self.stop_confirm_timeout;
        self.intervals()
            .into_iter()
            .chain(others)
            .chain(confirm.map(|timeout| ("stop_confirm_timeout", timeout)))
    }

    /// How partitions are given up for other workers, as others are told.
    pub fn giving_up(&self) -> GivingUp {
        let ms = |span: Duration| u64::try_from(span.as_millis()).unwrap_or(u64::MAX);
        GivingUp {
            never: !self.shedding,
            min_runtime_ms: ms(self.min_runtime),
            cooldown_ms: ms(self.move_cooldown),
            at_once: match self.gentle_handoff {
                true => self.releases_per_reconcile,
                false => 0,
            },
            every_ms: ms(self.reconcile_interval),
        }
    }

    /// How long after a renewal was sent the grant is current: the lease by a
    /// clock that may run slow against the store's that may run fast, without
    /// a margin.
    pub fn usable(&self) -> Duration {
        let drift = u128::from(CLOCK_DRIFT_PER_MILLE);
        let nanos = self.lease_ttl.as_nanos() * (1000 - drift) / (1000 + drift);
        let lease = Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX));
        lease.saturating_sub(self.lease_ttl / 20)
    }

    /// How long before the end of a grant its partition is asked to stop.
    pub fn drain_ahead(&self) -> Duration {
        self.lease_ttl / 10
    }

    /// How long a renewal is waited for before the next try.
    pub fn renewal_try(&self) -> Duration {
        let most = self.operation_timeout.min(RENEWAL_TRY_MAX);
        most.min(self.lease_ttl / 5)
    }

    /// How long after a failed renewal the next try follows.
    pub fn renewal_retry(&self) -> Duration {
        self.lease_ttl / 20
    }
}

impl Default for LeaseSettings {
    fn default() -> Self {
        let seconds = Duration::from_secs;
        Self {
            heartbeat_ttl: seconds(10),
            heartbeat_interval: seconds(3),
            lease_ttl: seconds(10),
            renew_interval: seconds(3),
            reconcile_interval: seconds(5),
            reconcile_jitter: 0.15,
            config_refresh_interval: seconds(30),
            shedding: true,
            gentle_handoff: true,
            releases_per_reconcile: 2,
            min_runtime: seconds(30),
            move_cooldown: seconds(60),
            backoff: seconds(1),
            backoff_max: seconds(30),
            max_partitions: 0,
            max_per_group: 0,
            min_partitions: 0,
            acquires_per_reconcile: 16,
            release_on_shutdown: true,
            default_weight: 1.0,
            operation_timeout: seconds(2),
            start_deadline: seconds(30),
            stop_deadline: seconds(20),
            stop_confirm_timeout: None,
            overdue: Overdue::Report,
            shutdown_timeout: seconds(30),
            start_window: Duration::from_millis(900),
        }
    }
}
