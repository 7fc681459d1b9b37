//! Lease mode, as a world drives it.

use std::time::Duration;

use divvy_core::lease::{Action, Event, Member, Operation, Reply};
use divvy_core::store::{LeaseNotice, StoreErrorKind};

use super::course::Course;
use super::process::{Host, Running};
use super::store::Store;
use super::{LeaseMode, LeaseProfile, LeaseWorld, network};
use crate::coverage::Mishap;
use crate::fact::Seen;
use crate::invariants::{Broken, LeaseInvariants};
use crate::world::{Coordination, Frame, Happening, Machine, Process, Request};

impl Machine for Member {
    type Event = Event;
    type Action = Action;
    type Operation = Operation;
    type Reply = Reply;

    fn is_write(operation: &Operation) -> bool {
        network::is_write(operation)
    }

    fn failed(kind: StoreErrorKind, why: &str) -> Reply {
        Reply::Failed(kind, why.into())
    }
}

impl Coordination for LeaseMode {
    const WALL_ERROR_MAX_MS: i64 = 0;
    const NEWS_LOST: Mishap = Mishap::NoticeLost;
    const NEWS_LATE: Mishap = Mishap::NoticeLate;
    const NEWS_REPEATED: Mishap = Mishap::NoticeRepeated;

    type Machine = Member;
    type Profile = LeaseProfile;
    type Invariants = LeaseInvariants;
    type Store = Store;
    type Host = Host;
    type Running = Running;
    type News = LeaseNotice;
    type Course = Course;

    fn frame(profile: &LeaseProfile) -> Frame {
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
            lease: settings.lease_ttl,
            beat: settings.heartbeat_interval,
        }
    }

    fn host(profile: &LeaseProfile, number: usize) -> Host {
        let name = match profile.room {
            Some(_) => format!("host-{number}"),
            None => format!("w{number}"),
        };
        Host::new(&name, profile.plan_of(number).weight)
    }

    fn observe(invariants: &mut LeaseInvariants, seen: &Seen<'_>) -> Result<(), Broken> {
        invariants.observe(seen)
    }

    fn forget(process: &mut Process<Self>) {
        process.stillness = None;
        process.host.lacks_scripts = false;
        process.host.tenures.clear();
    }

    fn listens(_process: &Process<Self>, _notice: &LeaseNotice) -> bool {
        true
    }

    fn is_unfit(world: &mut LeaseWorld, request: &Request<Self>) -> bool {
        let host = &mut world.processes[request.member].host;
        let is_unfit = network::needs_script(&request.operation) && host.lacks_scripts;
        host.lacks_scripts &= !is_unfit;
        is_unfit
    }

    fn carry_out(world: &mut LeaseWorld, request: &Request<Self>) -> Result<(Reply, bool), Broken> {
        let lost = world.loses_reply(request);
        // The connection may break in the midst of it.
        let most = match lost && world.dice.chance(0.3) {
            true => world.dice.below(4),
            false => usize::MAX,
        };
        Ok((world.apply(request, most)?, lost))
    }

    fn happen(world: &mut LeaseWorld, happening: Happening<Self>) -> Result<(), Broken> {
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
