//! Managers on every store, by the same functions.

mod bed;
// Its name has it run early, beside others: it waits for long leases.
mod calm;
mod chronicle;
mod examples;
mod fence;
mod fleet;
mod hooks;
mod life;
mod lives;
mod membership;
mod outage;
mod overwritten;
mod programs;
mod recorder;
mod scale;
mod slow;
mod sources;
mod starts;
mod turns;
mod views;

/// The same tests on every store, on all of them at once: they wait for leases
/// most of the time.
macro_rules! tests {
    ($places:ident: $($module:ident::$scenario:ident,)*) => {
        $(
            #[test]
            fn $scenario() {
                bed::$places(crate::$module::$scenario);
            }
        )*
    };
}

tests! { on_every_store:
    membership::cold_start_of_many_fails_nobody_and_grants_once,
    membership::one_alone_owns_everything,
    membership::joining_and_leaving_move_only_what_they_must,
    membership::a_rolling_restart_moves_nothing,
    membership::an_unhealthy_worker_is_drained,
    membership::a_leaving_leader_takes_nothing_with_it,
    membership::several_joins_make_one_rebalance,
    hooks::calls_come_in_order_and_bounded,
    hooks::failing_and_panicking_hooks_are_survived,
    hooks::a_stop_that_never_ends_holds_back_only_its_own,
    hooks::grants_are_current_until_they_are_given_back,
    hooks::a_manager_without_hooks_only_shows,
    hooks::hooks_that_only_tell_hold_up_nothing,
    hooks::hooks_that_wait_for_their_turn_are_reported_and_not_ended,
    starts::what_does_not_start_is_handed_on,
    life::no_task_outlives_a_stopped_manager,
    life::a_dropped_manager_leaves,
    life::a_cancelled_start_leaves_nothing,
    life::a_start_without_a_free_id_says_so,
    life::partitions_change_by_a_refresh,
    membership::shares_follow_the_weights_of_workers,
    life::loads_follow_the_weights_of_partitions,
    life::an_election_agent_decides_who_leads,
    outage::who_is_cut_off_is_replaced_and_comes_back,
    outage::a_leader_that_is_cut_off_is_replaced,
}

tests! { on_every_server:
    outage::a_server_that_hangs_is_outlasted,
    outage::operations_on_a_server_that_hangs_end_in_time,
    outage::a_start_on_a_server_that_hangs_ends_in_time,
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sixty_four_start_at_once_in_memory() {
    scale::sixty_four_start_at_once(bed::Bed::memory()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sixty_four_start_at_once_on_a_file() {
    scale::sixty_four_start_at_once(bed::Bed::file()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sixty_four_start_at_once_on_redis() {
    scale::sixty_four_start_at_once(bed::Bed::redis().await).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sixty_four_start_at_once_on_nats() {
    scale::sixty_four_start_at_once(bed::Bed::nats().await).await;
}

#[test]
fn a_blocked_runtime_does_not_stop_heartbeats() {
    hooks::a_blocked_runtime_does_not_stop_heartbeats(async || bed::Bed::nats().await);
}

#[test]
fn a_runtime_that_ends_gives_nothing_back() {
    hooks::a_runtime_that_ends_gives_nothing_back(async || bed::Bed::memory());
}
