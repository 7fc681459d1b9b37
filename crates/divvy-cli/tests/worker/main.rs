//! `divvy worker` as processes, to which real things happen.

mod bed;
mod failures;
mod fleet;

macro_rules! on_store {
    ($store:ident: $($scenario:ident,)*) => {
        mod $store {
            $(
                #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
                async fn $scenario() {
                    crate::failures::$scenario(crate::bed::Bed::$store().await).await;
                }
            )*
        }
    };
}

on_store!(file:
    a_killed_follower_is_replaced,
    a_killed_leader_is_replaced,
    a_paused_worker_finds_out_before_it_acts,
    a_rolling_restart_by_signals_moves_nothing,
);
on_store!(redis:
    a_killed_follower_is_replaced,
    a_killed_leader_is_replaced,
    a_paused_worker_finds_out_before_it_acts,
    a_rolling_restart_by_signals_moves_nothing,
    a_paused_server_is_survived,
    a_restarted_server_is_survived,
);
on_store!(nats:
    a_killed_follower_is_replaced,
    a_killed_leader_is_replaced,
    a_paused_worker_finds_out_before_it_acts,
    a_rolling_restart_by_signals_moves_nothing,
    a_paused_server_is_survived,
    a_restarted_server_is_survived,
);
