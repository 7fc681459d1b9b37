//! Settings of leader mode: the timings and limits that a cluster agrees on.

use std::time::Duration;

use crate::error::Invalid;
use crate::spelled::Spelled;
use crate::worker::WORKER_NAME_BYTES_MAX;

/// How far a process's clock may run off from true time, in thousandths: 2 %.
pub const CLOCK_DRIFT_PER_MILLE: u32 = 20;
/// Shortest lease: below it, scheduling and the network alone would end it.
pub const LEASE_MIN: Duration = Duration::from_millis(300);
/// Longest of all timings.
pub const TIMING_MAX: Duration = Duration::from_secs(24 * 60 * 60);
/// Most stable ids of one cluster.
pub const WORKER_IDS_MAX: u32 = 100_000;
/// Most failures of a start in a row before its partition is offered to others.
pub const START_ATTEMPTS_MAX: u32 = 100;
/// Longest prefix of stable ids, in bytes.
pub const WORKER_ID_PREFIX_BYTES_MAX: usize = WORKER_NAME_BYTES_MAX - 11;

/// How long an answer to a renewal is waited for at most, however long the
/// lease is.
const RENEWAL_TRY_MAX: Duration = Duration::from_secs(2);

/// What happens to a hook that does not end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Overdue {
    /// Once it has taken twice its deadline the process is ended, so that no
    /// partition stays in hands that cannot let go of it.
    Abort,
    /// It is reported, and its partition stays unavailable until it ends.
    Report,
}

/// What happens to work when the store is not reached for a whole lease.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StoreOutage {
    /// It stops before the lease ends, and goes on by itself when the store is
    /// back: a partition never has two owners.
    Exclusive,
    /// It goes on until the store says that the session is over. Whoever is
    /// cut off alone works on beside the worker that its partitions were
    /// handed to, for as long as it is cut off: only for work that may be done
    /// twice, or whose resource compares tokens.
    Overlap,
}

/// Settings of a member in leader mode. All members of a cluster should use the
/// same; those of a cluster that is being changed need not.
///
/// ```
/// use divvy_core::leader::LeaderSettings;
/// use std::time::Duration;
///
/// let mut settings = LeaderSettings::default();
/// assert!(settings.check().is_ok());
/// settings.heartbeat_interval = Duration::from_secs(3);
/// let wrong = settings.check().unwrap_err();
/// assert_eq!(wrong.field(), "heartbeat_interval");
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct LeaderSettings {
    /// What stable ids begin with: `worker` gives `worker-0`. Choose one for
    /// each kind of worker; 1..=[`WORKER_ID_PREFIX_BYTES_MAX`] bytes. Another
    /// prefix is another set of ids: partitions of the old one move.
    pub worker_id_prefix: Box<str>,
    /// The first number of stable ids.
    pub worker_id_min: u32,
    /// The last number of stable ids. Choose it at least twice as high as
    /// there are workers: where ids are scarce, a start waits for one; at most
    /// [`WORKER_IDS_MAX`] ids.
    pub worker_id_max: u32,
    /// How long an id that nobody renews stays reserved for the instance that
    /// held it. Longer than a restart takes; too short gives ids away during
    /// deploys, too long only prefers higher numbers.
    pub worker_id_ttl: Duration,
    /// How often a worker renews its lease: at most a third of
    /// `heartbeat_ttl`, so that two renewals may fail. Shorter costs one small
    /// write each.
    pub heartbeat_interval: Duration,
    /// The lease L: how long work may go on without a renewal, and how long
    /// the partitions of a crashed worker wait for the next owner. At least
    /// [`LEASE_MIN`]. Too short pauses work at every hiccup of the store, too
    /// long leaves partitions of a crashed worker alone.
    pub heartbeat_ttl: Duration,
    /// The lease of the leader: how long a cluster is without one after a
    /// crash. Running work is not touched by that. At least a third of
    /// [`LEASE_MIN`], at most `heartbeat_ttl`.
    pub leader_lease: Duration,
    /// How long the first placement, or the one after everybody restarted,
    /// waits for workers at most. It closes early once `expected_workers` are
    /// there or nobody came for three heartbeats.
    pub cold_start_window: Duration,
    /// How many workers the first placement need not wait beyond, if that is
    /// known.
    pub expected_workers: Option<u32>,
    /// How long a join waits for more of them, so that several make one
    /// rebalance. Too short moves partitions more than once, too long leaves
    /// new workers idle.
    pub planned_scale_window: Duration,
    /// The share of workers, in 0..=1, whose being gone at once counts as a
    /// restart of everybody and not as a crash. One worker alone never does.
    pub restart_detection_ratio: f64,
    /// How long an operation on the store may take. Renewals are bounded by a
    /// third of `heartbeat_ttl` besides.
    pub operation_timeout: Duration,
    /// How long an answer of an external election agent may take.
    pub election_timeout: Duration,
    /// How long a start may take, open windows not counted. The driver's to
    /// watch.
    pub startup_timeout: Duration,
    /// How long a stop may take, at least `stop_deadline`; after it the member
    /// ends without its id being given back.
    pub shutdown_timeout: Duration,
    /// The imbalance (largest load over the mean, minus 1) that is worth
    /// moving partitions for. 0 follows the strategy always; a new worker gets
    /// its share whatever this is.
    pub min_rebalance_threshold: f64,
    /// How long after a planned rebalance the next one waits. Never holds back
    /// the partitions of a crashed worker.
    pub rebalance_cooldown: Duration,
    /// How long the partitions of a crashed worker wait, after its lease is
    /// over, for it to come back under its id. 0 hands them on at once.
    pub grace: Duration,
    /// How long a start hook may take before it is reported and its partition
    /// offered to other workers. After twice that it is ended, where that is
    /// possible, and what it began is stopped.
    pub start_deadline: Duration,
    /// After how many failures in a row a partition is offered to other
    /// workers, 1..=[`START_ATTEMPTS_MAX`]. It stays where it is while nobody
    /// else could take it.
    pub start_attempts: u32,
    /// How long a worker at most is not given a partition that it could not
    /// start: `start_deadline`, or `heartbeat_ttl` if that is longer, the first
    /// time, and twice as long each time after. Also bounds how long the next
    /// try of a start waits that nobody else can take over.
    pub start_backoff_max: Duration,
    /// How long a stop hook may take before it is reported. May be longer than
    /// a lease: renewals go on meanwhile.
    pub stop_deadline: Duration,
    /// What happens to a hook that does not end.
    pub overdue: Overdue,
    /// What happens to work when the store is not reached for a whole lease.
    pub store_outage: StoreOutage,
    /// How often the leader asks the source for partitions unasked; nothing
    /// asks only at its start and when a refresh is requested.
    pub partition_poll_interval: Option<Duration>,
    /// How often root and leader are read although no watch said so: bounds
    /// how long a lost event can go unnoticed. At most `heartbeat_ttl`.
    pub root_poll_interval: Duration,
    /// Whether the store can lose what it acknowledged. Only where that is
    /// impossible, as in memory, set it to false: a first start then does not
    /// wait for a lease.
    pub store_forgets: bool,
}

impl LeaderSettings {
    /// For hand-over within a second: a lease of 700 ms and short windows. For
    /// a store nearby and an idle network.
    pub fn fast() -> Self {
        let ms = Duration::from_millis;
        Self {
            worker_id_ttl: ms(3_000),
            heartbeat_interval: ms(150),
            heartbeat_ttl: ms(700),
            leader_lease: ms(400),
            cold_start_window: ms(2_000),
            planned_scale_window: ms(300),
            operation_timeout: ms(1_000),
            rebalance_cooldown: ms(500),
            start_deadline: ms(2_000),
            start_backoff_max: ms(30_000),
            stop_deadline: ms(2_000),
            root_poll_interval: ms(500),
            ..Self::default()
        }
    }

    /// For stores far away or under load: a lease of 15 s, and heartbeats that
    /// leave 9 s to a replicated store that has to choose a leader.
    pub fn calm() -> Self {
        let ms = Duration::from_millis;
        Self {
            heartbeat_interval: ms(2_000),
            heartbeat_ttl: ms(15_000),
            leader_lease: ms(5_000),
            ..Self::default()
        }
    }

    /// Whether all values are inside their bounds and fit together.
    pub fn check(&self) -> Result<(), Invalid> {
        self.check_ids()?;
        self.check_lease()?;
        for (field, value) in self.timings() {
            if value > TIMING_MAX {
                let rule = format!("must be at most {}", Spelled(TIMING_MAX));
                return Err(Invalid::new(field, Spelled(value), rule));
            }
        }
        let (ms_1, ms_10) = (Duration::from_millis(1), Duration::from_millis(10));
        let polled = self.partition_poll_interval.unwrap_or(TIMING_MAX);
        let least = [
            ("operation_timeout", self.operation_timeout, ms_10),
            ("election_timeout", self.election_timeout, ms_10),
            ("startup_timeout", self.startup_timeout, ms_10),
            ("shutdown_timeout", self.shutdown_timeout, ms_10),
            ("start_deadline", self.start_deadline, ms_1),
            ("stop_deadline", self.stop_deadline, ms_1),
            ("root_poll_interval", self.root_poll_interval, ms_1),
            ("partition_poll_interval", polled, ms_10),
        ];
        for (field, value, least) in least {
            if value < least {
                let rule = format!("must be at least {}", Spelled(least));
                return Err(Invalid::new(field, Spelled(value), rule));
            }
        }
        if self.shutdown_timeout < self.stop_deadline {
            let least = Spelled(self.stop_deadline);
            let rule = format!("must be at least stop_deadline, {least}");
            let value = Spelled(self.shutdown_timeout);
            return Err(Invalid::new("shutdown_timeout", value, rule));
        }
        if !(1..=START_ATTEMPTS_MAX).contains(&self.start_attempts) {
            let rule = format!("must be in 1..={START_ATTEMPTS_MAX}");
            return Err(Invalid::new("start_attempts", self.start_attempts, rule));
        }
        if self.start_backoff_max < self.heartbeat_interval {
            let least = Spelled(self.heartbeat_interval);
            let rule = format!("must be at least heartbeat_interval, {least}");
            let value = Spelled(self.start_backoff_max);
            return Err(Invalid::new("start_backoff_max", value, rule));
        }
        check_ratio("restart_detection_ratio", self.restart_detection_ratio, 1.0)?;
        check_ratio("min_rebalance_threshold", self.min_rebalance_threshold, 1e6)
    }

    fn check_ids(&self) -> Result<(), Invalid> {
        crate::name::check(
            "worker_id_prefix",
            &self.worker_id_prefix,
            WORKER_ID_PREFIX_BYTES_MAX,
        )?;
        let last = self.worker_id_min.saturating_add(WORKER_IDS_MAX - 1);
        if !(self.worker_id_min..=last).contains(&self.worker_id_max) {
            let rule = format!("must be in {}..={last}", self.worker_id_min);
            return Err(Invalid::new("worker_id_max", self.worker_id_max, rule));
        }
        let ids = self.worker_id_max - self.worker_id_min + 1;
        match self.expected_workers {
            Some(expected) if !(1..=ids).contains(&expected) => {
                let rule = format!("must be in 1..={ids}, as many as there are ids");
                Err(Invalid::new("expected_workers", expected, rule))
            }
            _ => Ok(()),
        }
    }

    fn check_lease(&self) -> Result<(), Invalid> {
        if self.heartbeat_ttl < LEASE_MIN {
            let rule = format!("must be at least {}", Spelled(LEASE_MIN));
            let value = Spelled(self.heartbeat_ttl);
            return Err(Invalid::new("heartbeat_ttl", value, rule));
        }
        let bounded = [
            (
                "heartbeat_interval",
                self.heartbeat_interval,
                Duration::from_millis(1),
                self.heartbeat_ttl / 3,
            ),
            (
                "leader_lease",
                self.leader_lease,
                LEASE_MIN / 3,
                self.heartbeat_ttl,
            ),
            (
                "root_poll_interval",
                self.root_poll_interval,
                Duration::ZERO,
                self.heartbeat_ttl,
            ),
        ];
        for (field, value, least, most) in bounded {
            if !(least..=most).contains(&value) {
                let rule = format!("must be in {}..={}", Spelled(least), Spelled(most));
                return Err(Invalid::new(field, Spelled(value), rule));
            }
        }
        Ok(())
    }

    fn timings(&self) -> [(&'static str, Duration); 15] {
        [
            ("worker_id_ttl", self.worker_id_ttl),
            ("heartbeat_ttl", self.heartbeat_ttl),
            ("cold_start_window", self.cold_start_window),
            ("planned_scale_window", self.planned_scale_window),
            ("operation_timeout", self.operation_timeout),
            ("election_timeout", self.election_timeout),
            ("startup_timeout", self.startup_timeout),
            ("shutdown_timeout", self.shutdown_timeout),
            ("rebalance_cooldown", self.rebalance_cooldown),
            ("grace", self.grace),
            ("start_deadline", self.start_deadline),
            ("start_backoff_max", self.start_backoff_max),
            ("stop_deadline", self.stop_deadline),
            ("root_poll_interval", self.root_poll_interval),
            (
                "partition_poll_interval",
                self.partition_poll_interval.unwrap_or_default(),
            ),
        ]
    }

    /// How long others wait for a lease to be over on their own clocks, when
    /// its holder's may be slow and theirs fast.
    pub fn observed(lease: Duration) -> Duration {
        let drift = u128::from(CLOCK_DRIFT_PER_MILLE);
        let nanos = (lease.as_nanos() * (1000 + drift)).div_ceil(1000 - drift);
        Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }

    /// How long before the end of a lease authority ends.
    pub fn margin(&self) -> Duration {
        self.heartbeat_ttl / 20
    }

    /// How long before the end of a lease work begins to stop.
    pub fn drain_ahead(&self) -> Duration {
        self.heartbeat_ttl / 6
    }

    /// How long a renewal of the own lease is waited for before the next try:
    /// a store that stalls may swallow several, and one must come through
    /// before work has to stop.
    pub fn renewal_try(&self) -> Duration {
        let most = self.operation_timeout.min(RENEWAL_TRY_MAX);
        most.min(self.heartbeat_ttl / 5)
    }

    /// How long the other writes that a lease depends on may take.
    pub fn renewal_timeout(&self) -> Duration {
        self.operation_timeout.min(self.heartbeat_ttl / 3)
    }

    /// How long after a failed renewal the next try follows.
    pub fn renewal_retry(&self) -> Duration {
        self.heartbeat_ttl / 10
    }

    /// For how long a partition that could not be started is refused at first,
    /// and at most.
    pub fn start_backoff(&self) -> (Duration, Duration) {
        let first = self.start_deadline.max(self.heartbeat_ttl);
        (first.min(self.start_backoff_max), self.start_backoff_max)
    }

    /// How often a leader renews its lease.
    pub fn leader_beat(&self) -> Duration {
        self.leader_lease / 4
    }
}

impl Default for LeaderSettings {
    fn default() -> Self {
        let seconds = Duration::from_secs;
        Self {
            worker_id_prefix: "worker".into(),
            worker_id_min: 0,
            worker_id_max: 99,
            worker_id_ttl: seconds(30),
            heartbeat_interval: seconds(2),
            heartbeat_ttl: seconds(6),
            leader_lease: seconds(3),
            cold_start_window: seconds(30),
            expected_workers: None,
            planned_scale_window: seconds(10),
            restart_detection_ratio: 0.5,
            operation_timeout: seconds(10),
            election_timeout: seconds(5),
            startup_timeout: seconds(30),
            shutdown_timeout: seconds(10),
            min_rebalance_threshold: 0.15,
            rebalance_cooldown: seconds(10),
            grace: Duration::ZERO,
            start_deadline: seconds(10),
            start_attempts: 3,
            start_backoff_max: seconds(300),
            stop_deadline: seconds(10),
            overdue: Overdue::Abort,
            store_outage: StoreOutage::Exclusive,
            partition_poll_interval: None,
            root_poll_interval: seconds(5),
            store_forgets: true,
        }
    }
}

fn check_ratio(field: &'static str, value: f64, most: f64) -> Result<(), Invalid> {
    match (0.0..=most).contains(&value) {
        true => Ok(()),
        false => Err(Invalid::new(field, value, format!("must be in 0..={most}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_preset_is_valid() {
        for preset in [
            LeaderSettings::fast(),
            LeaderSettings::default(),
            LeaderSettings::calm(),
        ] {
            assert_eq!(preset.check(), Ok(()));
        }
    }

    #[test]
    fn a_wrong_value_is_named_with_its_bound() {
        fn wrong(change: impl FnOnce(&mut LeaderSettings)) -> String {
            let mut settings = LeaderSettings::default();
            change(&mut settings);
            settings.check().expect_err("it is wrong").to_string()
        }
        assert_eq!(
            wrong(|s| s.heartbeat_ttl = Duration::from_millis(299)),
            "heartbeat_ttl '299ms': must be at least 300ms"
        );
        assert_eq!(
            wrong(|s| s.heartbeat_interval = Duration::from_secs(3)),
            "heartbeat_interval '3s': must be in 1ms..=2s"
        );
        assert_eq!(
            wrong(|s| s.worker_id_min = 100),
            "worker_id_max '99': must be in 100..=100099"
        );
        for expected in [0, 101] {
            let told = wrong(|s| s.expected_workers = Some(expected));
            let rule = "must be in 1..=100, as many as there are ids";
            assert_eq!(told, format!("expected_workers '{expected}': {rule}"));
        }
        assert_eq!(
            wrong(|s| s.restart_detection_ratio = f64::NAN),
            "restart_detection_ratio 'NaN': must be in 0..=1"
        );
        assert_eq!(
            wrong(|s| s.stop_deadline = Duration::ZERO),
            "stop_deadline '0s': must be at least 1ms"
        );
        assert_eq!(
            wrong(|s| s.operation_timeout = Duration::from_millis(1)),
            "operation_timeout '1ms': must be at least 10ms"
        );
        assert_eq!(
            wrong(|s| s.stop_deadline = Duration::from_secs(11)),
            "shutdown_timeout '10s': must be at least stop_deadline, 11s"
        );
        assert_eq!(
            wrong(|s| s.grace = Duration::from_secs(86_401)),
            "grace '24h1s': must be at most 24h"
        );
    }

    #[test]
    fn observers_wait_longer_than_a_slow_holder_believes() {
        let lease = Duration::from_secs(6);
        let waited = LeaderSettings::observed(lease);
        // The holder's clock runs 2 % slow, the observer's 2 % fast.
        assert!(waited.mul_f64(1.0 / 1.02) >= lease.mul_f64(1.0 / 0.98));
        assert!(waited < lease.mul_f64(1.05));
    }
}
