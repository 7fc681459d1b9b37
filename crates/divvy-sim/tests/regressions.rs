//! Worlds that once broke an invariant, by their seed and the faults that do
//! not matter.

use divvy_sim::{Mode, Trial};

#[track_caller]
fn holds(seed: u64, without: &[usize]) {
    holds_in(Mode::Leader, seed, without);
}

#[track_caller]
fn holds_in(mode: Mode, seed: u64, without: &[usize]) {
    let trial = Trial {
        without: without.iter().copied().collect(),
        ..Trial::of_seed(mode, seed)
    };
    let broken = trial.run(false).broken;
    assert!(broken.is_none(), "{}: {}", trial.command(), broken.unwrap());
}

#[test]
fn a_stop_hook_of_an_ended_session_gets_no_authority_from_the_next() {
    holds(20, &[0, 1, 3, 4, 5, 6, 7, 8]);
    holds(21, &[0, 1, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12]);
}

#[test]
fn a_member_that_is_called_rarely_still_sees_leases_end() {
    holds(35, &[]);
    holds(58, &[0, 2, 3, 4]);
}

#[test]
fn two_leaders_do_not_take_each_other_for_a_store_that_forgot() {
    holds(2, &[]);
    holds(5, &[0, 1]);
}

#[test]
fn a_failed_start_that_may_not_be_tried_again_does_not_keep_a_member_awake() {
    holds(69, &[0, 4, 6, 7, 8]);
}

#[test]
fn what_was_known_of_a_store_that_forgot_in_silence_does_not_last() {
    holds(44, &[1, 2, 3, 4, 5]);
    holds(1049, &[0, 1, 2, 6, 7, 8]);
    holds(1278, &[0, 1, 2]);
}

#[test]
fn a_version_is_not_given_twice_by_a_leader_whose_store_went_back_in_silence() {
    holds(211, &[1, 3]);
}

#[test]
fn a_refresh_reaches_the_next_leader_too() {
    holds(359, &[1, 2, 3, 4, 5, 6, 7, 8]);
    holds(391, &[0, 1]);
}

#[test]
fn the_leader_that_an_agent_chose_renews_its_record() {
    holds(66, &[]);
}

#[test]
fn who_is_back_gets_a_share_although_another_leader_handed_on_what_it_had() {
    holds(8520, &[]);
}

#[test]
fn a_leader_that_was_not_heard_reads_the_root_again_before_it_writes() {
    holds(1380, &[2, 3, 5, 7, 17]);
}

#[test]
fn a_leader_whose_own_record_is_behind_grants_nothing() {
    holds(3989, &[]);
}

#[test]
fn a_lost_listing_does_not_hold_up_a_quarantine() {
    holds(9432, &[1, 6, 11]);
}

#[test]
fn an_alarm_is_told_before_the_next_id_is_claimed() {
    holds(2484, &[0, 1, 2, 6]);
}

#[test]
fn a_stop_hook_that_hangs_outlives_the_excuse_of_a_store_that_forgot() {
    holds(2083, &[2]);
}

#[test]
fn what_the_source_dropped_is_no_load_to_balance() {
    holds(2324, &[7, 8, 9, 11]);
}

#[test]
fn a_start_to_be_tried_again_that_waits_for_a_hook_does_not_keep_a_member_awake() {
    holds(16, &[]);
    holds(1072, &[]);
}

#[test]
fn nothing_is_written_to_another_life_before_it_is_known_as_one() {
    holds(1_000_002_080, &[0, 1, 2, 6, 8, 10, 13, 14]);
}

#[test]
fn a_claim_that_arrives_twice_may_follow_a_deleted_record() {
    holds(6710, &[10]);
}

#[test]
fn a_leader_that_raised_its_epoch_remembers_it_when_it_leads_again() {
    holds(835_897_352_252, &[0, 1, 2, 5, 6, 7, 8, 9, 11]);
}

#[test]
fn a_session_whose_record_was_created_again_may_be_given_more() {
    holds(835_897_347_005, &[1, 3, 5, 7, 8, 9, 10, 11, 12]);
}

#[test]
fn what_a_record_proved_before_it_was_deleted_stays_proved() {
    holds(7_000_000_835, &[1]);
    holds(7_000_028_180, &[15]);
}

#[test]
fn nobody_can_tell_what_a_store_lost_when_all_who_saw_it_are_gone() {
    holds(
        7_000_024_176,
        &[0, 2, 3, 4, 5, 6, 7, 9, 10, 11, 13, 14, 15, 16],
    );
}

#[test]
fn a_leader_that_has_not_found_out_may_go_on_from_the_lost_root_of_a_revision() {
    holds(5_002_166, &[1, 3]);
}

#[test]
fn a_lease_that_had_ended_is_taken_up_again_by_the_root_that_is_there() {
    holds(8_000_018_661, &[4, 12]);
    holds(8_000_031_188, &[1, 2, 3, 4, 5, 8, 9, 10, 11]);
}

#[test]
fn a_stale_listing_does_not_hide_whom_a_quarantine_waits_for() {
    holds(500_000_044_872, &[0, 2, 3, 4, 6, 7, 8, 9, 11]);
}

#[test]
fn the_id_of_a_lost_record_is_not_claimed_before_the_root_is_whole() {
    holds(600_000_008_834, &[3, 4, 9]);
}

#[test]
fn an_unreadable_record_is_waited_for_by_the_longest_lease_and_not_the_observers() {
    holds(20_613, &[]);
    holds(22_471, &[]);
    holds(76_517, &[0, 2]);
}

#[test]
fn versions_rise_although_a_store_went_back_in_silence() {
    holds(80_001, &[3]);
}

#[test]
fn a_leader_record_of_a_lost_past_is_no_sign_of_a_store_that_forgot() {
    holds(20_754, &[]);
}

#[test]
fn a_first_root_may_arrive_long_after_it_was_sent() {
    holds(8_000_031_544, &[0, 1, 4, 5, 6, 7, 8, 10, 11]);
}

#[test]
fn a_worker_does_not_take_its_own_session_for_anothers() {
    holds_in(Mode::Lease, 669_180_495_352, &[2, 5, 6, 13, 14]);
    holds_in(Mode::Lease, 131, &[]);
    holds_in(Mode::Lease, 290, &[]);
    holds_in(Mode::Lease, 2134, &[3, 4, 6]);
    holds_in(Mode::Lease, 4492, &[1, 3, 4]);
}

#[test]
fn a_lease_that_runs_out_unseen_is_taken_all_the_same() {
    holds_in(Mode::Lease, 904, &[]);
    holds_in(Mode::Lease, 6404, &[]);
    holds_in(Mode::Lease, 13764, &[]);
    holds_in(Mode::Lease, 5745, &[0]);
}

#[test]
fn nothing_is_given_up_in_vain_for_ever() {
    for seed in [17, 18, 92, 120, 153] {
        holds_in(Mode::Lease, seed, &[]);
    }
}

#[test]
fn wishes_in_doubt_do_not_go_beyond_a_limit() {
    for seed in [48, 108, 237, 293] {
        holds_in(Mode::Lease, seed, &[]);
    }
}

#[test]
fn a_lease_in_doubt_is_not_started_beyond_a_limit_when_its_group_comes_back() {
    holds_in(Mode::Lease, 102_900, &[]);
}

#[test]
fn a_heartbeat_of_an_earlier_session_does_not_keep_a_worker_from_its_name() {
    holds_in(Mode::Lease, 38863, &[0, 7, 8]);
}

#[test]
fn a_limit_that_was_raised_and_lowered_again_is_kept() {
    for seed in [3_000_432, 3_005_166, 3_005_635, 3_008_872] {
        holds_in(Mode::Lease, seed, &[]);
    }
}

#[test]
fn looks_at_short_leases_leave_time_for_those_at_long_ones() {
    holds_in(Mode::Lease, 31_951_730_514, &[0, 5, 6, 7, 8, 9]);
}

#[test]
fn worker_that_was_never_readable_is_not_waited_for() {
    holds_in(Mode::Lease, 8_005_328, &[0, 1, 2, 3]);
    holds_in(
        Mode::Lease,
        8_005_669,
        &[2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 15],
    );
    holds_in(Mode::Lease, 8_007_170, &[0, 2, 4, 5]);
}

#[test]
fn worker_whose_description_is_lost_keeps_its_last_limits() {
    holds_in(Mode::Lease, 8_005_327, &[0, 1, 2, 3, 7]);
    holds_in(Mode::Lease, 8_009_825, &[1, 2, 3, 4, 6, 7, 8, 9, 10]);
}

#[test]
fn nothing_is_given_up_before_a_minimum_runtime_that_was_raised_meanwhile() {
    holds_in(Mode::Lease, 9_500_730, &[]);
    holds_in(Mode::Lease, 9_501_082, &[]);
}
