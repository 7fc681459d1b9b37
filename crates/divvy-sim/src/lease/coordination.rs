//! Lease mode, as a world drives it.

use std::sync::Arc;
use std::time::Duration;

use divvy_core::Moment;
use divvy_core::lease::{Action, Ending, Event, Member, MemberSetup, Reply};
use divvy_core::store::Token;

use super::process::{Host, Running};
use super::store::Store;
use super::{LeaseMode, LeaseProfile, LeaseWorld, operation};
use crate::coverage::Mishap;
use crate::fact::{Phase, Seen};
use crate::invariants::{Broken, LeaseInvariants};
use crate::mode::Mode;
use crate::time::TrueTime;
use crate::world::{Coordination, Course, Frame, Process, Request, Stage};

impl Coordination for LeaseMode {
    const MODE: Mode = Mode::Lease;
    const WALL_ERROR_MAX_MS: i64 = 0;
    const KNOWS_CONNECTIONS: bool = false;
    const NEWS_LOST: Mishap = Mishap::NoticeLost;
    const NEWS_LATE: Mishap = Mishap::NoticeLate;
    const NEWS_REPEATED: Mishap = Mishap::NoticeRepeated;

    type Machine = Member;
    type Profile = LeaseProfile;
    type Invariants = LeaseInvariants;
    type Store = Store;
    type Host = Host;
    type Running = Running;

    fn frame(profile: &LeaseProfile) -> Frame {
        let settings = &profile.settings;
        Frame {
            members: profile.members,
            booted_within: match profile.faults.is_empty() {
                true => Duration::from_millis(20),
                false => settings.heartbeat_ttl,
            },
            // Members of a sound world reach the store before they begin.
            connects_at_once: profile.faults.is_empty(),
            drifting: profile.drifting,
            room: profile.room,
            latency: profile.latency,
            hook: profile.hook,
            start_deadline: settings.start_deadline,
            stop_deadline: settings.stop_deadline,
            lease: settings.lease_ttl,
            beat: settings.heartbeat_interval,
            driver: profile.driver,
        }
    }

    fn host(profile: &LeaseProfile, number: usize) -> Host {
        let name = match profile.room {
            Some(_) => format!("host-{number}"),
            None => format!("w{number}"),
        };
        Host::new(&name, profile.plan_of(number))
    }

    fn observe(invariants: &mut LeaseInvariants, seen: &Seen<'_>) -> Result<(), Broken> {
        invariants.observe(seen)
    }

    fn machine(world: &mut LeaseWorld, member: usize) -> Member {
        let process = &mut world.processes[member];
        process.host.booted = world.now;
        process.host.limits_read = process.host.limits;
        let now = process.clock.at(world.now);
        let setup = MemberSetup {
            settings: world.profile.settings_of(member, process.host.limits),
            worker: process.host.worker.clone(),
            groups: world.own.groups.own(&world.profile.plan_of(member).serves),
            dynamic: world.profile.is_dynamic(),
            description: process.host.description,
            seed: world.dice.number(),
            batches: world.profile.batches,
            hooks_wait: world.profile.driver.hook_concurrency.is_some(),
        };
        let mut machine = match world.profile.defect {
            Some(defect) => Member::planted(setup, now, defect),
            None => Member::new(setup, now),
        };
        machine.share(Arc::clone(&world.own.hashes));
        machine
    }

    fn forget(world: &mut LeaseWorld, member: usize) {
        let process = &mut world.processes[member];
        process.stillness = None;
        process.host.lacks_scripts = false;
        process.host.tenures.clear();
    }

    fn grant_until(process: &Process<Self>, partition: usize) -> Option<Moment> {
        process.running.get(&partition)?.until
    }

    fn start_called(world: &mut LeaseWorld, member: usize, partition: usize) -> Result<(), Broken> {
        world.tell_deadline(member, partition)
    }

    fn stopped(process: &mut Process<Self>, partition: usize) {
        if let Some(running) = process.running.remove(&partition) {
            process.host.tenures.remove(&running.tenure);
        }
    }

    fn stepped(world: &LeaseWorld, machine: &Member) {
        world.explain_after_step(machine);
    }

    fn act(
        world: &mut LeaseWorld,
        member: usize,
        machine: &Member,
        action: Action,
    ) -> Result<(), Broken> {
        world.act(member, machine, action)
    }

    fn suspended(world: &mut LeaseWorld, member: usize) -> Result<(), Broken> {
        world.disconnect(member);
        let after = world.way();
        world.reconnect(member, after);
        Ok(())
    }

    fn ended(
        world: &mut LeaseWorld,
        member: usize,
        ending: &Ending,
        back: Option<Duration>,
    ) -> Result<(Option<Duration>, bool), Broken> {
        match ending {
            Ending::InOrder => Ok((back, true)),
            Ending::Late => {
                world.count(Mishap::EndedLate);
                Ok((back, false))
            }
            Ending::NameTaken => {
                world.name_taken(member)?;
                // What does not stop in time is not waited for. Whatever
                // started it tries again, and has to know nothing.
                let stopped = world.processes[member].running.is_empty();
                Ok((Some(world.profile.settings.lease_ttl / 2), stopped))
            }
            Ending::Unfit(why) => {
                unreachable!("this store is never unfit, and told so: {why}")
            }
        }
    }

    fn is_unfit(world: &mut LeaseWorld, request: &Request<Self>) -> bool {
        let host = &mut world.processes[request.member].host;
        let is_unfit = operation::needs_script(&request.operation) && host.lacks_scripts;
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
        let reply = world.apply(request, most)?;
        if !lost {
            world.note_longest_lease(request, &reply);
        }
        Ok((reply, lost))
    }

    fn remember(store: &mut Store, fault: usize) {
        store.remember(fault);
    }

    fn working(process: &Process<Self>, now: TrueTime) -> impl Iterator<Item = (usize, Token)> {
        process.working(now)
    }

    fn strike(world: &mut LeaseWorld, fault: usize) -> Result<(), Broken> {
        world.strike(fault)
    }

    fn settle_faults(world: &mut LeaseWorld) -> Result<(), Broken> {
        world.settle()
    }

    fn first_stage(world: &LeaseWorld) -> Course {
        let (stage, until) = match world.profile.faults.is_empty() {
            true => (Stage::Start, world.now + world.profile.started_within()),
            false => (Stage::Faults, world.profile.faults_until),
        };
        Course { stage, until }
    }

    fn next_stage(world: &mut LeaseWorld, ended: Stage) -> Result<Option<Course>, Broken> {
        let next = match ended {
            Stage::Start => {
                world.survey_start()?;
                Some((Stage::Faults, world.profile.faults_until.max(world.now)))
            }
            Stage::Faults => {
                world.heal()?;
                let latest = world.now + world.profile.healing();
                // Nothing from before can come any more then.
                let until = world.now + world.profile.aftermath();
                Some((Stage::Healing(latest), until))
            }
            Stage::Healing(latest) if world.now < latest && !world.is_settled() => {
                let next = world.now + world.profile.reconcile_at_most();
                Some((ended, next.min(latest)))
            }
            Stage::Healing(_) => {
                world.survey()?;
                world.enter(Phase::Quiet)?;
                Some((Stage::Quiet, world.now + world.profile.quiet()))
            }
            Stage::Quiet => {
                world.survey()?;
                world.begin_probe()?.map(|until| (Stage::Probe, until))
            }
            Stage::Probe => world.begin_repair()?.map(|until| (Stage::Limp, until)),
            Stage::Limp => None,
        };
        Ok(next.map(|(stage, until)| Course { stage, until }))
    }

    fn stop_to_return(_profile: &LeaseProfile) -> Event {
        Event::Stop
    }
}
