//! The log of moves: what it costs to keep it, and what somebody else may have
//! made of it.

use divvy::store::{Leases, StoreErrorKind};
use divvy_core::store::{MOVE_LINES_MAX, MOVES_PER_CALL_MAX};
use divvy_core::{MOVE_BYTES_MAX, MOVES_BYTES_MAX};
use divvy_testbed::{RedisFlavour, RedisOptions, RedisServer};

use crate::bed::{assert_refused, leases, plain};
use crate::raw::{Raw, Reply};

const LOG: &str = "divvy:moves:tests";

/// How large the append-only file is.
fn written(raw: &mut Raw) -> usize {
    let text = raw.say(&["INFO", "persistence"]).text();
    let size = text
        .lines()
        .find_map(|line| line.strip_prefix("aof_current_size:"));
    size.expect("a size").trim().parse().unwrap()
}

#[tokio::test]
async fn logged_move_writes_its_own_size_however_full_the_log_is() {
    for flavour in RedisFlavour::ALL {
        let server = RedisServer::start(flavour, RedisOptions::new().append_only()).await;
        let store = leases(&server.url()).await;
        let line = |number: usize| format!("{number:0>300}");
        let many: Vec<String> = (0..MOVES_PER_CALL_MAX).map(line).collect();
        store.log_moves(&many).await.unwrap();
        let mut raw = Raw::of(&server);
        let before = written(&mut raw);
        for number in 0..20 {
            store.log_moves(&[line(number)]).await.unwrap();
        }
        let each = (written(&mut raw) - before) / 20;
        assert!((300..1_000).contains(&each), "{each} bytes for each move");
        let kept = store.moves().await.unwrap();
        assert_eq!(kept.len(), MOVES_BYTES_MAX / 301);
        assert_eq!(kept.last(), Some(&line(19)));
    }
}

#[tokio::test]
async fn key_of_another_type_in_place_of_the_log_is_named_and_left_alone() {
    let server = plain().await;
    let store = leases(&server.url()).await;
    let mut raw = Raw::of(&server);
    raw.set(LOG, "no list");
    let words = [LOG, "no list of moves", "remove it"];
    let error = store.log_moves(&["line".to_owned()]).await.unwrap_err();
    assert_refused(&error, StoreErrorKind::Unfit, &words);
    let error = store.moves().await.unwrap_err();
    assert_refused(&error, StoreErrorKind::Unfit, &words);
    assert_eq!(raw.get(LOG).unwrap(), "no list");
}

#[tokio::test]
async fn log_that_somebody_else_made_too_long_is_read_and_cut_to_its_bounds() {
    let server = plain().await;
    let store = leases(&server.url()).await;
    let mut raw = Raw::of(&server);
    for _ in 0..MOVE_LINES_MAX + 10 {
        raw.say(&["RPUSH", LOG, "x"]);
    }
    assert_eq!(store.moves().await.unwrap().len(), MOVE_LINES_MAX);
    store.log_moves(&["line".to_owned()]).await.unwrap();
    let kept = Reply::Integer(MOVE_LINES_MAX as i64);
    assert_eq!(raw.say(&["LLEN", LOG]), kept);
    raw.say(&["RPUSH", LOG, &"x".repeat(MOVES_BYTES_MAX)]);
    raw.say(&["RPUSH", LOG, "after"]);
    assert_eq!(store.moves().await.unwrap(), ["after"]);
    let longest = "m".repeat(MOVE_BYTES_MAX);
    let logged = std::slice::from_ref(&longest);
    store.log_moves(logged).await.unwrap();
    assert_eq!(store.moves().await.unwrap(), ["after".to_owned(), longest]);
    assert_eq!(raw.say(&["LLEN", LOG]), Reply::Integer(2));
}
