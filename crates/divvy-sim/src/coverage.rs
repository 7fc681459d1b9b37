//! What went wrong in a world, counted: a fault that never happened has not
//! been survived.

use std::collections::BTreeMap;

macro_rules! mishaps {
    ($($name:ident = $text:literal: $doc:literal,)*) => {
        /// Something that went wrong.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum Mishap {
            $(#[doc = $doc] $name,)*
        }

        impl Mishap {
            /// All of them.
            pub const ALL: &[Self] = &[$(Self::$name,)*];

            /// The name by which results know it.
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$name => $text,)*
                }
            }
        }
    };
}

mishaps! {
    Crash = "crash": "A process ended without a word.",
    LeaderCrash = "crash_of_leader": "The process that ended was leading.",
    MassRestart = "mass_restart": "Many processes ended at once.",
    Pause = "pause": "A process stood still, its clock went on.",
    Suspend = "suspend": "A machine slept.",
    IsolationFull = "isolation_full": "A member reached nothing.",
    IsolationOutward = "isolation_outward": "What a member sent was lost.",
    IsolationInward = "isolation_inward": "What a member should have got was lost.",
    IsolationStore = "isolation_store_only": "A member reached all but the store.",
    OperationDropped = "operation_dropped": "An operation never reached the store.",
    ReplyLost = "reply_lost": "An operation was carried out, its reply lost.",
    OperationDelayed = "operation_delayed": "An operation took far longer than usual.",
    OperationDuplicated = "operation_duplicated": "An operation reached the store twice.",
    OperationLate = "operation_late_applied": "An operation was applied after its caller had given up.",
    SpuriousConflict = "spurious_conflict": "A conditional write lost to nobody.",
    StaleRead = "stale_read": "A read gave a value of the past.",
    StoreStall = "store_stall": "The store stood still.",
    StoreUnavailable = "store_unavailable": "The store refused operations.",
    StoreRolledBack = "store_rolled_back": "The store forgot its latest writes.",
    StoreEmptied = "store_emptied": "The store forgot everything.",
    AmnesiaUnannounced = "amnesia_without_new_incarnation": "The store forgot and did not say so.",
    WatchLost = "watch_event_lost": "A watch event never came.",
    WatchRepeated = "watch_event_repeated": "A watch event came twice.",
    WatchLate = "watch_event_late": "A watch event came late.",
    HookSlow = "hook_slow": "A hook took its time.",
    HookOverdue = "hook_overdue": "A hook outlasted its deadline.",
    HookFailed = "hook_failed": "A hook failed or panicked.",
    HookStuck = "hook_never_returned": "A hook never returned.",
    Abort = "abort": "A member ended its process by policy.",
    SourceFailed = "source_failed": "The source of partitions failed.",
    SourceHung = "source_hung": "The source of partitions did not answer.",
    SourceEmpty = "source_empty": "The source gave nothing.",
    SourceShrunk = "source_shrunk": "The source gave less than half.",
    SourceDuplicated = "source_duplicated": "The source gave partitions twice.",
    WeightNoise = "weight_noise": "Partition weights changed from read to read.",
    PartitionsChanged = "partitions_changed": "Partitions were added or removed.",
    Refresh = "refresh_requested": "An application asked for a refresh.",
    Unhealthy = "worker_unhealthy": "A worker said that it is not well.",
    WeightChanged = "worker_weight_changed": "A worker's weight changed.",
    Join = "join": "A member joined.",
    Leave = "leave": "A member left for good.",
    Return = "return": "A member left and came back.",
    RollingRestart = "rolling_restart": "Members were restarted one after another.",
    FalseElection = "false_election": "A member was told to lead while another did.",
    MixedLeases = "mixed_leases": "Members with leases of two lengths made one cluster.",
    Scribble = "foreign_write": "A stranger wrote what is no record.",
    StaleEffect = "stale_effect_refused": "A resource refused an effect that came late with an old token.",
}

/// How often each mishap happened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Coverage([u64; Mishap::ALL.len()]);

impl Default for Coverage {
    fn default() -> Self {
        Self([0; Mishap::ALL.len()])
    }
}

impl Coverage {
    /// Counts one.
    pub fn count(&mut self, mishap: Mishap) {
        self.0[mishap as usize] += 1;
    }

    /// How often it happened.
    pub fn of(&self, mishap: Mishap) -> u64 {
        self.0[mishap as usize]
    }

    /// Adds what happened in another world.
    pub fn add(&mut self, other: &Self) {
        for (sum, count) in self.0.iter_mut().zip(other.0) {
            *sum += count;
        }
    }

    /// The counts by name.
    pub fn by_name(&self) -> BTreeMap<String, u64> {
        let named = |&mishap: &Mishap| (mishap.as_str().to_owned(), self.of(mishap));
        Mishap::ALL.iter().map(named).collect()
    }

    /// The counts that [`Coverage::by_name`] gave; names that nobody knows any
    /// more are left out.
    pub fn from_names(names: &BTreeMap<String, u64>) -> Self {
        let mut coverage = Self::default();
        for &mishap in Mishap::ALL {
            coverage.0[mishap as usize] = names.get(mishap.as_str()).copied().unwrap_or(0);
        }
        coverage
    }
}
