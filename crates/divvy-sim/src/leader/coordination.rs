//! Leader mode, as a world drives it.

use std::sync::Arc;
use std::time::Duration;

use divvy_core::Moment;
use divvy_core::leader::{Action, Event, Member, MemberSetup, Reply, Retries, Shutdown, Watched};
use divvy_core::store::{Change, Token};

use super::process::{Host, Running};
use super::store::Store;
use super::{LeaderMode, World};
use crate::coverage::Mishap;
use crate::fact::{Fact, Phase, Seen};
use crate::invariants::{Broken, Invariants};
use crate::mode::Mode;
use crate::profile::Profile;
use crate::time::TrueTime;
use crate::world::{Coordination, Course, Frame, Process, Request, Stage};

impl Coordination for LeaderMode {
    const MODE: Mode = Mode::Leader;
    const WALL_ERROR_MAX_MS: i64 = 100;
    const KNOWS_CONNECTIONS: bool = true;
    const NEWS_LOST: Mishap = Mishap::WatchLost;
    const NEWS_LATE: Mishap = Mishap::WatchLate;
    const NEWS_REPEATED: Mishap = Mishap::WatchRepeated;

    type Machine = Member;
    type Profile = Profile;
    type Invariants = Invariants;
    type Store = Store;
    type Host = Host;
    type Running = Running;

    fn frame(profile: &Profile) -> Frame {
        let settings = &profile.settings;
        Frame {
            members: profile.members,
            booted_within: match profile.faults.is_empty() {
                true => Duration::from_millis(20),
                false => settings.heartbeat_ttl,
            },
            connects_at_once: false,
            drifting: profile.drifting,
            room: profile.room,
            latency: profile.latency,
            hook: profile.hook,
            start_deadline: settings.start_deadline,
            stop_deadline: settings.stop_deadline,
            lease: settings.heartbeat_ttl,
            beat: settings.heartbeat_interval,
            driver: profile.driver,
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

    fn machine(world: &mut World, member: usize) -> Member {
        let process = &world.processes[member];
        let clock = process.clock.both_at(world.now);
        let setup = MemberSetup {
            settings: world.profile.settings_of(member),
            instance: process.host.instance.as_str().into(),
            strategy: Arc::clone(&world.own.strategy),
            previous: None,
            description: process.host.description.clone(),
            seed: world.dice.number(),
            external_election: world.own.agent.is_used(),
            hooks_wait: world.profile.driver.hook_concurrency.is_some(),
            retries: Retries::default(),
            value_bytes_max: world.profile.value_bytes_max,
            batches: world.profile.batches,
        };
        match world.profile.defect {
            Some(defect) => Member::planted(setup, clock, defect),
            None => Member::new(setup, clock),
        }
    }

    fn forget(world: &mut World, member: usize) {
        let host = &mut world.processes[member].host;
        host.watched.clear();
        host.deadline = None;
        host.alarm = 0;
        world.own.agent.forget(member);
    }

    fn grant_until(process: &Process<Self>, partition: usize) -> Option<Moment> {
        let running = process.running.get(&partition)?;
        process.host.deadline.filter(|_| !running.void)
    }

    fn stopped(process: &mut Process<Self>, partition: usize) {
        process.running.remove(&partition);
    }

    fn act(
        world: &mut World,
        member: usize,
        machine: &Member,
        action: Action,
    ) -> Result<(), Broken> {
        let epoch = machine.alarm();
        if std::mem::replace(&mut world.processes[member].host.alarm, epoch) != epoch {
            world.tell(&Fact::Alarmed { member, epoch })?;
        }
        world.act(member, machine, action)
    }

    fn suspended(world: &mut World, member: usize) -> Result<(), Broken> {
        world.hand(member, Event::Suspended)
    }

    fn lag(world: &World, member: usize) -> Duration {
        if member % 2 == 1 {
            world.own.lag
        } else {
            Duration::ZERO
        }
    }

    fn missed() -> Option<Event> {
        Some(Event::Missed)
    }

    fn listens(process: &Process<Self>, change: &Arc<Change>) -> bool {
        let mut watched = process.host.watched.iter();
        watched.any(|watched| match watched {
            Watched::Key(key) => key == change.key(),
            Watched::Below(prefix) => prefix.holds(change.key()),
        })
    }

    fn carry_out(world: &mut World, request: &Request<Self>) -> Result<(Reply, bool), Broken> {
        let reply = world.apply(request)?;
        Ok((reply, world.loses_reply(request)))
    }

    fn remember(store: &mut Store, fault: usize) {
        store.remember(fault);
    }

    fn working(process: &Process<Self>, now: TrueTime) -> impl Iterator<Item = (usize, Token)> {
        process.working(now)
    }

    fn strike(world: &mut World, fault: usize) -> Result<(), Broken> {
        world.strike(fault)
    }

    fn settle_faults(world: &mut World) -> Result<(), Broken> {
        world.settle()
    }

    fn first_stage(world: &World) -> Course {
        Course {
            stage: Stage::Faults,
            until: world.profile.faults_until,
        }
    }

    fn next_stage(world: &mut World, ended: Stage) -> Result<Option<Course>, Broken> {
        let next = match ended {
            Stage::Start | Stage::Faults => {
                world.heal()?;
                let until = world.now + world.profile.healing;
                Some((Stage::Healing(until), until))
            }
            Stage::Healing(_) => {
                world.survey()?;
                world.enter(Phase::Quiet)?;
                Some((Stage::Quiet, world.now + world.profile.quiet))
            }
            Stage::Quiet => {
                world.survey()?;
                world.begin_probe()?.map(|until| (Stage::Probe, until))
            }
            Stage::Probe => Some((Stage::Limp, world.begin_limp()?)),
            Stage::Limp => None,
        };
        Ok(next.map(|(stage, until)| Course { stage, until }))
    }

    /// An application asks who has a partition, what grants wait for, and how
    /// many nobody owns: after every step, for one partition. Asking draws no
    /// dice and changes nothing.
    fn stepped(world: &World, machine: &Member) {
        let partitions = world.profile.partitions_max().max(1);
        let one = (world.now.nanos() / 1000) as usize % partitions;
        let name = world.own.source.name_of(one);
        machine.holder_of(&name);
        machine.holds_authority(&name, Moment::default());
        machine.waits_for();
        machine.unowned();
        machine.unreadable_root();
    }

    fn stop_to_return(profile: &Profile) -> Event {
        let within = profile.keep_for();
        Event::Stop(Shutdown::Return { within })
    }
}
