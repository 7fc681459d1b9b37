//! What must hold in every world, one file for each property.
//!
//! Each invariant is told the facts of a world in their order and nothing
//! else, so it can be used over any history: of the simulator, of the memory
//! store, of real servers.

mod adoption;
mod alarms;
mod alternation;
mod bounds;
mod deadline;
mod excuse;
mod grant_condition;
mod handed_on;
mod leader_exists;
mod lease_names;
mod names;
mod no_idle_moves;
mod no_orphan;
mod one_session;
mod ownership_after_healing;
mod prompt_start;
mod rightful_leases;
mod rightful_writes;
mod rising_tokens;
mod room;
mod root_chain;
mod single_authority;
mod steady_work;
mod stop_before_start;
mod taken_over;
mod whole_roots;
mod witnesses;

use std::fmt;
use std::time::Duration;

use crate::fact::{Fact, Seen};

/// A property that does not hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Broken {
    /// Its number, such as I1.
    pub invariant: &'static str,
    /// The property.
    pub property: &'static str,
    /// What was seen instead.
    pub seen: String,
}

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({}): {}", self.invariant, self.property, self.seen)
    }
}

/// A property over the facts of a world.
pub(crate) trait Invariant {
    /// Its number.
    const NUMBER: &'static str;
    /// What it says.
    const PROPERTY: &'static str;
    /// Whether it is told of [`Fact::Stepped`] and [`Fact::Busy`], too: most
    /// facts are one of those, and few properties are about them.
    const HEARS_STEPS: bool = false;

    /// Looks at one fact; says what is wrong, if something is.
    fn observe(&mut self, seen: &Seen<'_>) -> Result<(), String>;
}

/// The bounds that some properties are about.
#[derive(Debug, Clone)]
pub struct Bounds {
    /// The lease length L.
    pub lease: Duration,
    /// Whether work stops when the store is not reached for a lease. Where it
    /// goes on, partitions can have two owners, and nothing else may happen.
    pub is_exclusive: bool,
    /// Whether reads may show what was there before.
    pub is_stale: bool,
    /// Whether nothing goes wrong but hooks, and members come and go only in
    /// order.
    pub is_calm: bool,
    /// Whether a member whose time for stopping is over ends as others do,
    /// with hooks that still run.
    pub ends_late: bool,
    /// The lease of leaders LL.
    pub leader_lease: Duration,
    /// Largest value that may be stored.
    pub value_bytes_max: usize,
    /// Most operations of one member that may be under way at once.
    pub operations_max: usize,
    /// Most members that a world has.
    pub members_max: usize,
    /// Most partitions that a world has.
    pub partitions_max: usize,
    /// Within which a committed grant is started when all is well.
    pub start_within: Duration,
    /// Within which a leader renews its record when all is well.
    pub beat_within: Duration,
}

macro_rules! several {
    ($(#[$doc:meta])* $set:ident { $($field:ident: $module:ident::$name:ident,)* }) => {
        $(#[$doc])*
        #[derive(Debug, Clone)]
        pub struct $set {
            $($field: $module::$name,)*
        }

        impl $set {
            /// The invariants, with nothing observed.
            pub fn new(bounds: &Bounds) -> Self {
                Self { $($field: $module::$name::new(bounds),)* }
            }

            /// Tells all of them a fact.
            pub fn observe(&mut self, seen: &Seen<'_>) -> Result<(), Broken> {
                match seen.fact {
                    Fact::Stepped { .. } | Fact::Busy { .. } => {
                        $(if $module::$name::HEARS_STEPS {
                            check(&mut self.$field, seen)?;
                        })*
                    }
                    _ => {
                        $(check(&mut self.$field, seen)?;)*
                    }
                }
                Ok(())
            }

            /// The number and the property of each.
            pub fn properties() -> Vec<(&'static str, &'static str)> {
                vec![$((<$module::$name as Invariant>::NUMBER, <$module::$name as Invariant>::PROPERTY),)*]
            }
        }
    };
}

several! {
    /// All invariants of one world in leader mode.
    Invariants {
        single_authority: single_authority::SingleAuthority,
        rising_tokens: rising_tokens::RisingTokens,
        root_chain: root_chain::RootChain,
        grant_condition: grant_condition::GrantCondition,
        handed_on: handed_on::HandedOn,
        alarms: alarms::Alarms,
        deadline: deadline::Deadlines,
        one_session: one_session::OneSession,
        adoption: adoption::Adoption,
        whole_roots: whole_roots::WholeRoots,
        rightful_writes: rightful_writes::RightfulWrites,
        names: names::Names,
        bounds: bounds::Bounded,
        alternation: alternation::Alternation,
        ownership_after_healing: ownership_after_healing::OwnershipAfterHealing,
        no_idle_moves: no_idle_moves::NoIdleMoves,
        prompt_start: prompt_start::PromptStart,
        no_orphan: no_orphan::NoOrphan,
        leader_exists: leader_exists::LeaderExists,
        taken_over: taken_over::TakenOver,
    }
}

several! {
    /// All invariants of one world in lease mode.
    LeaseInvariants {
        single_authority: single_authority::SingleAuthority,
        stop_before_start: stop_before_start::StopBeforeStart,
        rising_tokens: rising_tokens::RisingTokens,
        deadline: deadline::Deadlines,
        one_session: one_session::OneSession,
        rightful_leases: rightful_leases::RightfulLeases,
        names: lease_names::LeaseNames,
        bounds: bounds::Bounded,
        alternation: alternation::Alternation,
        ownership_after_healing: ownership_after_healing::OwnershipAfterHealing,
        steady_work: steady_work::SteadyWork,
        room: room::Room,
    }
}

several! {
    /// The invariants that can be told by what members say of themselves,
    /// where nobody sees what the store holds.
    OwnershipInvariants {
        single_authority: single_authority::SingleAuthority,
        rising_tokens: rising_tokens::RisingTokens,
        one_session: one_session::OneSession,
        adoption: adoption::Adoption,
        alternation: alternation::Alternation,
    }
}

several! {
    /// The invariants that can be told by what members say and by what they
    /// have written.
    RecordedInvariants {
        single_authority: single_authority::SingleAuthority,
        rising_tokens: rising_tokens::RisingTokens,
        root_chain: root_chain::RootChain,
        grant_condition: grant_condition::GrantCondition,
        deadline: deadline::Deadlines,
        one_session: one_session::OneSession,
        adoption: adoption::Adoption,
        whole_roots: whole_roots::WholeRoots,
        rightful_writes: rightful_writes::RightfulWrites,
        names: names::Names,
        alternation: alternation::Alternation,
    }
}

fn check<I: Invariant>(invariant: &mut I, seen: &Seen<'_>) -> Result<(), Broken> {
    invariant.observe(seen).map_err(|seen| Broken {
        invariant: I::NUMBER,
        property: I::PROPERTY,
        seen,
    })
}
