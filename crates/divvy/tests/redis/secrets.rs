//! Secrets that appear nowhere.

use std::panic::AssertUnwindSafe;
use std::time::Duration;

use divvy::store::redis::{RedisKeyValue, RedisLeases};
use divvy::store::{KeyValue, Leases, Prefix, Store, StoreError, StoreSettings, StoreUrl};
use divvy_testbed::{Proxy, RedisOptions, until};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use crate::bed::{SOON, redis, settings, with_login};
use crate::log::logging;

const CANARY: &str = "canary-5f1e";

#[track_caller]
fn assert_silent(text: &str) {
    assert!(!text.contains(CANARY), "{text}");
}

/// All ways to name the password.
fn ways(address: &str, user: &str) -> Vec<(StoreUrl, StoreSettings)> {
    let bare = format!("redis://{address}").parse().unwrap();
    let whole = format!("redis://{user}:{CANARY}@{address}")
        .parse()
        .unwrap();
    vec![(bare, with_login(user, CANARY)), (whole, settings())]
}

/// What a program says that ends with all that it has at hand.
fn panicked(url: &StoreUrl, settings: &StoreSettings, error: &StoreError) -> String {
    let last = || panic!("{url:?} {settings:?} {error:?}");
    let caught: Result<(), _> = std::panic::catch_unwind(AssertUnwindSafe(last));
    let message = caught.unwrap_err().downcast::<String>().unwrap();
    assert!(message.contains("StoreSettings"), "{message}");
    *message
}

#[tokio::test]
async fn no_secret_is_shown_while_stores_work_and_break() {
    let (log, _guard) = logging();
    let rule = format!("secretive on >{CANARY} ~* &* +@all");
    let server = redis(RedisOptions::new().user("default off").user(&rule)).await;
    let proxy = Proxy::start(server.address()).await;
    let mut shown = String::new();
    for (url, settings) in ways(&proxy.address().to_string(), "secretive") {
        let store = RedisLeases::open(&url, &settings).await.unwrap();
        let records = RedisKeyValue::open(&url, &settings).await.unwrap();
        let _notices = store.notices().await.unwrap();
        let _watch = records.watch(&Prefix::ALL).await.unwrap();
        let connection = store.connection();
        let connects = connection.borrow().connects;
        proxy.reset();
        until(SOON, "it is reached again", async || {
            connection.borrow().connects > connects
        })
        .await;
        shown += &format!(
            "{store:?} {records:?} {} {url:?} {url} {settings:?}",
            store.describe()
        );
        shown += &format!("{:?}", *connection.borrow());
    }
    assert_silent(&shown);
    let log = log.text();
    assert!(log.contains("store lost"), "{log}");
    assert_silent(&log);
}

#[tokio::test]
async fn no_secret_is_shown_by_errors() {
    let (log, _guard) = logging();
    let mut shown = String::new();
    let server = redis(RedisOptions::new().user("secretive on >other ~* &* +@all")).await;
    // Servers that are none, or too old, and echo what they are sent.
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let echo = listener.local_addr().unwrap().to_string();
    let echoing = tokio::spawn(async move {
        let mut endings = [
            "-ERR unknown command `HELLO`, with args beginning with: ",
            "-",
            "+",
            "",
        ]
        .iter()
        .cycle();
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut asked = vec![0; 1024];
            let count = stream.read(&mut asked).await.unwrap_or_default();
            let said = String::from_utf8_lossy(&asked[..count]).replace("\r\n", " ");
            let answer = format!("{}{said}\r\n", endings.next().unwrap());
            let _ = stream.write_all(answer.as_bytes()).await;
        }
    });
    let places = [
        server.address().to_string(),
        echo.clone(),
        echo,
        "127.0.0.1:1".to_owned(),
    ];
    for place in places {
        for (url, settings) in ways(&place, "secretive") {
            let settings = StoreSettings {
                connect_timeout: Duration::from_millis(300),
                ..settings
            };
            for error in [
                RedisLeases::open(&url, &settings).await.unwrap_err(),
                RedisKeyValue::open(&url, &settings).await.unwrap_err(),
            ] {
                let source = std::error::Error::source(&error);
                shown += &format!("{error} {error:?} {source:?}\n");
                shown += &panicked(&url, &settings, &error);
            }
        }
    }
    echoing.abort();
    assert_silent(&shown);
    for text in [
        format!("redis://u:{CANARY}@h:1:2"),
        format!("redis://u:{CANARY}@h/0?x=y"),
        format!("redis+unix:///s?db=1&pass={CANARY}"),
        format!("redis+unix:///s?pass={CANARY}"),
        format!("redis://h?password={CANARY}"),
    ] {
        match text.parse::<StoreUrl>() {
            Ok(url) => assert_silent(&format!("{url} {url:?}")),
            Err(error) => assert_silent(&format!("{error} {error:?}")),
        }
    }
    assert_silent(&log.text());
}
