//! All orders of events, up to a depth.

use divvy_core::leader::Defect;
use divvy_sim::Search;

const SEARCH: Search = Search {
    depth: 4,
    losses: 1,
    crashes: 1,
    stalls: 1,
    states_max: 200_000,
    defect: None,
};

#[test]
fn no_order_of_events_gives_a_partition_two_owners() {
    let searched = SEARCH.run();
    println!("{} states, {} choices", searched.states, searched.choices);
    assert!(searched.broken.is_none(), "{:#?}", searched.broken);
    assert!(searched.complete, "{} states", searched.states);
    assert!(searched.states > 1_000, "{} states", searched.states);
    assert!(searched.grants > 0, "nothing was granted in any order");
}

#[test]
fn the_search_finds_a_grant_that_nobody_waited_for() {
    let defect = Some(Defect::GrantWithoutAck);
    let searched = Search { defect, ..SEARCH }.run();
    assert!(searched.broken.is_some(), "{} states", searched.states);
}
