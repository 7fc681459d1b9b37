//! Leader mode, as a world drives it.

use std::sync::Arc;
use std::time::Duration;

use divvy_core::leader::{Action, Event, Member, Operation, Reply, Watched};
use divvy_core::store::{Change, StoreErrorKind};

use super::course::Course;
use super::process::{Host, Running};
use super::store::Store;
use super::{LeaderMode, World};
use crate::coverage::Mishap;
use crate::fact::Seen;
use crate::invariants::{Broken, Invariants};
use crate::profile::Profile;
use crate::world::{Coordination, Frame, Happening, Machine, Process, Request};

impl Machine for Member {
    type Event = Event;
    type Action = Action;
    type Operation = Operation;
    type Reply = Reply;

    fn is_write(operation: &Operation) -> bool {
        matches!(
            operation,
            Operation::CompareAndSet { .. } | Operation::Delete { .. }
        )
    }

    fn failed(kind: StoreErrorKind, _why: &str) -> Reply {
        Reply::Failed(kind)
    }
}

impl Coordination for LeaderMode {
    const WALL_ERROR_MAX_MS: i64 = 100;
    const NEWS_LOST: Mishap = Mishap::WatchLost;
    const NEWS_LATE: Mishap = Mishap::WatchLate;
    const NEWS_REPEATED: Mishap = Mishap::WatchRepeated;

    type Machine = Member;
    type Profile = Profile;
    type Invariants = Invariants;
    type Store = Store;
    type Host = Host;
    type Running = Running;
    type News = Arc<Change>;
    type Course = Course;

    fn frame(profile: &Profile) -> Frame {
        let settings = &profile.settings;
        Frame {
            members: profile.members,
            booted_within: match profile.faults.is_empty() {
                true => Duration::from_millis(20),
                false => settings.heartbeat_ttl,
            },
            drifting: profile.drifting,
            room: profile.room,
            latency: profile.latency,
            lease: settings.heartbeat_ttl,
            beat: settings.heartbeat_interval,
        }
    }

    fn host(profile: &Profile, number: usize) -> Host {
        let mut host = Host::new(number);
        if profile.room.is_some() {
            host.description.zone = Some(super::hands::zone_of(number));
        }
        host
    }

    fn observe(invariants: &mut Invariants, seen: &Seen<'_>) -> Result<(), Broken> {
        invariants.observe(seen)
    }

    fn forget(process: &mut Process<Self>) {
        process.host.watched.clear();
        process.host.deadline = None;
    }

    fn listens(process: &Process<Self>, change: &Arc<Change>) -> bool {
        let mut watched = process.host.watched.iter();
        watched.any(|watched| match watched {
            Watched::Key(key) => key == change.key(),
            Watched::Below(prefix) => prefix.holds(change.key()),
        })
    }

    fn is_unfit(_world: &mut World, _request: &Request<Self>) -> bool {
        false
    }

    fn carry_out(world: &mut World, request: &Request<Self>) -> Result<(Reply, bool), Broken> {
        let reply = world.apply(request)?;
        Ok((reply, world.loses_reply(request)))
    }

    fn happen(world: &mut World, happening: Happening<Self>) -> Result<(), Broken> {
        match happening {
            Happening::Boot(member) => world.boot(member),
            Happening::Arrive(member, generation, arrival) => {
                if world.processes[member].generation != generation {
                    return Ok(());
                }
                world.arrive(member, arrival)
            }
            Happening::Request(request) => world.request_arrives(request),
            Happening::Resume(member) => world.resume(member),
            Happening::LateEffect(partition, token) => {
                world.late_effect(partition, token);
                Ok(())
            }
            Happening::Effects => world.effects(),
            Happening::Remember(fault) => {
                world.store.remember(fault);
                Ok(())
            }
            Happening::Strike(fault) => world.strike(fault),
            Happening::Relent(fault) => world.relent(fault),
            Happening::Roll(member) => {
                world.roll(member);
                Ok(())
            }
            Happening::Errand(run) => {
                run(world);
                Ok(())
            }
        }
    }
}
