//! `divvy worker` as processes, to which real things happen.

mod bed;
mod failures;
mod fleet;
mod ledger;
mod previous;
mod writes;

use crate::bed::{Store, on_stores};

/// Each test on every store, on all at once: they wait for leases most of the
/// time.
macro_rules! on_every {
    ($stores:expr; $of:ident; $($scenario:ident,)*) => {
        $(
            #[test]
            fn $scenario() {
                on_stores(&$stores, $of::$scenario);
            }
        )*
    };
}

on_every!([Store::File, Store::Redis, Store::Nats]; failures;
    a_killed_follower_is_replaced,
    a_killed_leader_is_replaced,
    a_paused_worker_finds_out_before_it_acts,
    a_paused_leader_finds_out_before_it_acts,
    commands_of_a_paused_worker_end_before_its_successors_start,
    crash_looping_commands_of_a_paused_worker_never_start_late,
    leftovers_of_a_worker_that_ends_end_before_its_partitions_move,
    a_second_process_of_an_instance_is_told,
    a_rolling_restart_by_signals_moves_nothing,
);
on_every!([Store::Redis, Store::Nats]; failures;
    a_paused_server_is_survived,
    a_restarted_server_is_survived,
    with_overlap_work_outlasts_the_server,
);
on_every!([Store::ForgetfulRedis]; failures;
    a_server_that_forgets_everything_is_survived,
);
on_every!([Store::File, Store::Redis, Store::Nats]; previous;
    a_map_of_owners_is_taken_over_without_a_move,
    a_table_of_owners_is_taken_over_without_a_move,
    what_cruster_placed_is_where_workers_begin,
);
