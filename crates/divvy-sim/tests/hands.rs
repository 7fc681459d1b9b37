//! What hands do to a world, it does; and it stays sound.

use std::time::Duration;

use divvy_core::{Control, Health};
use divvy_sim::{
    Deed, Hands, HookWeather, Isolation, LeasePreset, LeaseProfile, LeaseWorld, Mode, Newcomer,
    Preset, Profile, Room, StoreState, World,
};

const ROOM: Room = Room {
    members: 40,
    partitions: 400,
};
const PARTITIONS: usize = 48;

fn world(mode: Mode, seed: u64) -> Box<dyn Hands> {
    match mode {
        Mode::Leader => {
            let mut profile = Profile::sound(seed, Preset::Fast, 4, PARTITIONS);
            profile.room = Some(ROOM);
            Box::new(World::new(profile, true))
        }
        Mode::Lease => {
            let partitions = PARTITIONS as u32;
            let mut profile = LeaseProfile::sound(seed, LeasePreset::Fast, 4, partitions);
            profile.room = Some(ROOM);
            Box::new(LeaseWorld::new(profile, true))
        }
    }
}

fn pass(world: &mut dyn Hands, span: Duration) {
    let until = world.time() + span;
    world.go_on(until).expect("no invariant is broken");
}

/// Who works on what.
fn owners(world: &dyn Hands) -> Vec<Vec<usize>> {
    let mut owners = vec![Vec::new(); world.count_partitions()];
    world.each_working(&mut |place, partition, _| {
        if let Some(owners) = owners.get_mut(partition) {
            owners.push(place);
        }
    });
    owners
}

/// Lets time pass until it holds, a minute at most.
fn wait(world: &mut dyn Hands, what: &str, holds: impl Fn(&[Vec<usize>]) -> bool) {
    for _ in 0..600 {
        if holds(&owners(world)) {
            return;
        }
        pass(world, Duration::from_millis(100));
    }
    panic!("{} mode: not within a minute: {what}", world.mode());
}

fn all_owned(owners: &[Vec<usize>]) -> bool {
    owners.iter().all(|places| places.len() == 1)
}

const MODES: [Mode; 2] = [Mode::Leader, Mode::Lease];

#[test]
fn members_that_hands_add_kill_stop_and_start_have_their_share() {
    for mode in MODES {
        let world = &mut *world(mode, 5);
        wait(world, "all is owned", all_owned);
        let place = world.add(&Newcomer {
            name: Some("newcomer".into()),
            weight: Some(2.0),
            zone: None,
        });
        assert_eq!(world.place(place).name, "newcomer");
        wait(world, "the newcomer has some", |owners| {
            owners.iter().flatten().filter(|&&at| at == place).count() > 4
        });
        world.crash(place).expect("no invariant is broken");
        assert!(!world.place(place).is_alive());
        let gone = |owners: &[Vec<usize>]| all_owned(owners) && !owners.contains(&vec![place]);
        wait(world, "others have what it had", gone);
        world.boot_again(place).expect("no invariant is broken");
        let back = |owners: &[Vec<usize>]| all_owned(owners) && owners.contains(&vec![place]);
        wait(world, "it has some again", back);
        world.ask_to_stop(place, None);
        wait(world, "it has left", gone);
        assert!(!world.place(place).is_alive());
    }
}

#[test]
fn members_that_stand_still_or_are_cut_off_lose_what_they_have_and_get_it_back() {
    for mode in MODES {
        let world = &mut *world(mode, 6);
        wait(world, "all is owned", all_owned);
        let without = |owners: &[Vec<usize>]| all_owned(owners) && !owners.contains(&vec![1]);
        let with = |owners: &[Vec<usize>]| all_owned(owners) && owners.contains(&vec![1]);
        world.pause(1);
        assert!(world.place(1).is_paused);
        wait(world, "others have what stands still", without);
        world.go_on_at(1).expect("no invariant is broken");
        wait(world, "it has some again", with);
        let ways = [Isolation::Full, Isolation::Store, Isolation::Outward];
        for way in ways.into_iter().chain([Isolation::Inward]) {
            world.cut_off(1, Some(way));
            assert_eq!(world.place(1).isolation, Some(way));
            wait(world, "others have what is cut off", without);
            world.cut_off(1, None);
            wait(world, "it has some again", with);
        }
    }
}

#[test]
fn what_members_are_and_operators_wish_decides_who_has_what() {
    for mode in MODES {
        let world = &mut *world(mode, 7);
        wait(world, "all is owned", all_owned);
        let without = |owners: &[Vec<usize>]| all_owned(owners) && !owners.contains(&vec![2]);
        let with = |owners: &[Vec<usize>]| all_owned(owners) && owners.contains(&vec![2]);
        let described = world.set_description(2, Health::Unhealthy, 1.0, None);
        described.expect("no invariant is broken");
        wait(world, "the unhealthy has nothing", without);
        let described = world.set_description(2, Health::Healthy, 1.0, None);
        described.expect("no invariant is broken");
        wait(world, "it has some again", with);
        let mut control = Control::default();
        let id = world.place(2).id.expect("it has an id");
        control.drained.insert(id.clone());
        world.wish(&control);
        wait(world, "the drained has nothing", without);
        control.drained.clear();
        control.pinned.insert(world.name_of(3), id);
        world.wish(&control);
        wait(world, "the pinned is there", |owners| owners[3] == [2]);
    }
}

#[test]
fn partitions_come_and_go_and_stores_fail() {
    for mode in MODES {
        let world = &mut *world(mode, 8);
        wait(world, "all is owned", all_owned);
        world.set_partitions(96).expect("no invariant is broken");
        assert_eq!(world.count_partitions(), 96);
        wait(world, "all of 96 are owned", all_owned);
        world.set_partitions(10).expect("no invariant is broken");
        wait(world, "all of 10 are owned", all_owned);
        world.set_store(StoreState::Slow);
        assert_eq!(world.store().state, StoreState::Slow);
        pass(world, Duration::from_secs(10));
        assert!(all_owned(&owners(world)), "slow stores are borne");
        world.set_store(StoreState::Down);
        assert_eq!(world.store().state, StoreState::Down);
        wait(world, "nobody works without a store", |owners| {
            owners.iter().all(Vec::is_empty)
        });
        world.set_store(StoreState::Up);
        wait(world, "all is owned again", all_owned);
        for announced in [true, false] {
            let before = world.store().incarnation;
            world.forget_all(announced).expect("no invariant is broken");
            assert_eq!(world.store().incarnation != before, announced);
            pass(world, Duration::from_secs(1));
            wait(world, "all is owned after amnesia", all_owned);
        }
        world.refresh_all().expect("no invariant is broken");
    }
}

#[test]
fn hooks_of_one_member_are_slow_or_fail() {
    for mode in MODES {
        let world = &mut *world(mode, 9);
        wait(world, "all is owned", all_owned);
        let failing = HookWeather {
            failing: 1.0,
            ..HookWeather::default()
        };
        let place = world.add(&Newcomer::default());
        world.set_hooks(place, failing);
        pass(world, Duration::from_secs(20));
        let deeds = world.take_deeds();
        let failed = deeds
            .iter()
            .filter(|done| matches!(done.deed, Deed::StartFailed { place: at, .. } if at == place));
        assert!(failed.count() > 0);
        world.set_hooks(place, HookWeather::default());
        wait(world, "all is owned at last", all_owned);
    }
}

#[test]
fn the_same_hands_on_the_same_seed_do_the_same() {
    for mode in MODES {
        let played = |seed| {
            let world = &mut *world(mode, seed);
            pass(world, Duration::from_secs(5));
            world.crash(0).expect("no invariant is broken");
            world.add(&Newcomer::default());
            pass(world, Duration::from_secs(5));
            (world.take_deeds(), world.facts_told(), world.last_lines())
        };
        assert_eq!(played(11), played(11));
        assert_ne!(played(11).0, played(12).0);
    }
}
