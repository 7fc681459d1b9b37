//! What went wrong in a world, counted: a fault that never happened has not
//! been survived.

use std::collections::BTreeMap;

use crate::mode::Mode;

macro_rules! mishaps {
    ($($name:ident = $text:literal $(in $mode:ident)?: $doc:literal,)*) => {
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

            /// The mode in which alone it can happen, if there is one.
            const fn only_in(self) -> Option<Mode> {
                match self {
                    $(Self::$name => mishaps!(@only $($mode)?),)*
                }
            }
        }
    };
    (@only $mode:ident) => { Some(Mode::$mode) };
    (@only) => { None };
}

impl Mishap {
    /// Whether it can happen in worlds of this mode.
    pub fn is_of(self, mode: Mode) -> bool {
        self.only_in().is_none_or(|only| only == mode)
    }

    /// All that can happen in worlds of this mode.
    pub fn all_of(mode: Mode) -> impl Iterator<Item = Self> {
        Self::ALL.iter().copied().filter(move |one| one.is_of(mode))
    }
}

mishaps! {
    Crash = "crash": "A process ended without a word.",
    KeyDeleted = "key_deleted" in Leader: "A stranger deleted a key.",
    Override = "override" in Leader: "An operator overrode placement.",
    WallStep = "wall_step": "The wall clock of a member was set.",
    LaggingRead = "lagging_read" in Leader: "A copy that lags behind answered.",
    WatchMissed = "watch_missed" in Leader: "A watch said that it had missed something.",
    LeaderCrash = "crash_of_leader" in Leader: "The process that ended was leading.",
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
    OperationDuplicated = "operation_duplicated" in Leader: "An operation reached the store twice.",
    OperationLate = "operation_late_applied": "An operation was applied after its caller had given up.",
    SpuriousConflict = "spurious_conflict" in Leader: "A conditional write lost to nobody.",
    StaleRead = "stale_read" in Leader: "A read gave a value of the past.",
    StoreStall = "store_stall": "The store stood still.",
    StoreUnavailable = "store_unavailable": "The store refused operations.",
    StoreRolledBack = "store_rolled_back" in Leader: "The store forgot its latest writes.",
    StoreEmptied = "store_emptied": "The store forgot everything.",
    AmnesiaUnannounced = "amnesia_without_new_incarnation" in Leader: "The store forgot and did not say so.",
    WatchLost = "watch_event_lost" in Leader: "A watch event never came.",
    WatchRepeated = "watch_event_repeated" in Leader: "A watch event came twice.",
    WatchLate = "watch_event_late" in Leader: "A watch event came late.",
    HookSlow = "hook_slow": "A hook took its time.",
    HookOverdue = "hook_overdue": "A hook outlasted its deadline.",
    HookFailed = "hook_failed": "A hook failed or panicked.",
    StartFailed = "start_never_succeeds" in Leader: "A start failed that never succeeds at this worker.",
    StartCancelled = "start_cancelled" in Leader: "A start hook that took too long was ended.",
    HookWaited = "hook_waited": "A hook waited for others.",
    StartRefused = "start_refused": "A start was not called, because its grant had ended.",
    Fenced = "command_fenced": "A command was ended because its grant had ended, and not by its agent.",
    HookStuck = "hook_never_returned": "A hook never returned.",
    Abort = "abort": "A member ended its process by policy.",
    SourceFailed = "source_failed" in Leader: "The source of partitions failed.",
    SourceHung = "source_hung" in Leader: "The source of partitions did not answer.",
    SourceEmpty = "source_empty" in Leader: "The source gave nothing.",
    SourceShrunk = "source_shrunk" in Leader: "The source gave less than half.",
    SourceDuplicated = "source_duplicated" in Leader: "The source gave partitions twice.",
    WeightNoise = "weight_noise" in Leader: "Partition weights changed from read to read.",
    PartitionsChanged = "partitions_changed" in Leader: "Partitions were added or removed.",
    Refresh = "refresh_requested": "An application asked for a refresh.",
    Unhealthy = "worker_unhealthy": "A worker said that it is not well.",
    WeightChanged = "worker_weight_changed": "A worker's weight changed.",
    Join = "join": "A member joined.",
    Leave = "leave": "A member left for good.",
    Return = "return": "A member left and came back.",
    RollingRestart = "rolling_restart": "Members were restarted one after another.",
    FalseElection = "false_election" in Leader: "A member was told to lead while another did.",
    MixedLeases = "mixed_leases" in Leader: "Members with leases of two lengths made one cluster.",
    Scribble = "foreign_write" in Leader: "A stranger wrote what is no record.",
    StoreRestarted = "store_restarted" in Lease: "The store was restarted, and had all that it had.",
    RestartForgot = "store_restarted_and_forgot" in Lease: "The store was restarted, and had forgotten some or all.",
    Quarantine = "quarantine" in Lease: "The store granted nothing because it had restarted or lost its data.",
    ClockForward = "store_clock_forward" in Lease: "The store's clock was set forward.",
    LeaveAsking = "leave_while_asking" in Lease: "A member was asked to stop while it asked for leases.",
    StoreWallStep = "store_wall_step" in Lease: "The wall clock of the store was set, and not the one of its leases.",
    ClockBack = "store_clock_back" in Lease: "The store's clock was set back.",
    Eviction = "eviction" in Lease: "The store threw keys away to make room.",
    ScriptFlush = "script_flush" in Lease: "The store forgot its scripts.",
    NoticeLost = "notice_lost" in Lease: "A notice never came.",
    NoticeRepeated = "notice_repeated" in Lease: "A notice came twice.",
    NoticeLate = "notice_late" in Lease: "A notice came late.",
    ForeignTake = "foreign_lease_taken" in Lease: "A stranger took a lease that nobody held.",
    ForeignDelete = "foreign_lease_deleted" in Lease: "A stranger deleted a lease that somebody held.",
    ForeignOverwrite = "foreign_lease_overwritten" in Lease: "A stranger wrote itself over the holder of a lease.",
    ForeignMember = "foreign_member" in Lease: "A stranger said that it is a live worker, and took nothing.",
    Spoilt = "key_spoilt" in Lease: "Another program wrote over a lease, a token, a mark, a session or what a worker says of itself.",
    GroupGarbled = "group_garbled" in Lease: "The document of a group was not one.",
    GroupChanged = "group_changed" in Lease: "A group got another size or limit.",
    GroupRemoved = "group_removed" in Lease: "A group was taken away.",
    Reloaded = "settings_reloaded" in Lease: "A worker read its settings again, with another limit.",
    Cordoned = "worker_cordoned" in Lease: "Operators wished that a worker takes nothing more, or took that back.",
    Drained = "worker_drained" in Lease: "Operators wished that a worker gives up everything, or took that back.",
    Pinned = "partition_pinned" in Lease: "Operators wished that a partition is with a worker, or took that back.",
    WishesGarbled = "wishes_garbled" in Lease: "What operators wish could not be read.",
    Namesake = "namesake" in Lease: "A second process was started with the name of a worker.",
    NameTaken = "name_taken" in Lease: "A process ended because another has its name.",
    EndedLate = "ended_late" in Lease: "A member ended although a hook had not.",
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

    /// The counts by name, of all that can happen in worlds of this mode.
    pub fn by_name(&self, mode: Mode) -> BTreeMap<String, u64> {
        let named = |mishap: Mishap| (mishap.as_str().to_owned(), self.of(mishap));
        Mishap::all_of(mode).map(named).collect()
    }
}
