//! Opening, and what it says when it cannot be done.

use std::time::{Duration, Instant};

use divvy::observer::Observer;
use divvy::store::redis::RedisLeases;
use divvy::store::{
    Credentials, Leases, Secret, SecretSource, Store, StoreErrorKind, StoreSettings,
};
use divvy_testbed::{
    NatsOptions, NatsServer, NatsVersion, RedisFlavour, RedisOptions, RedisServer,
};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use crate::bed::{
    assert_refused, impatient, leases, plain, redis, refusal, settings, try_leases, with_login,
};
use crate::raw::Raw;

#[tokio::test]
async fn store_describes_its_server() {
    for (flavour, title) in [
        (RedisFlavour::Redis7, "redis 7.0.15"),
        (RedisFlavour::Valkey9, "valkey 9.1"),
    ] {
        let server = RedisServer::start(flavour, RedisOptions::new()).await;
        let described = leases(&server.url()).await.describe();
        assert!(described.starts_with(title), "{described}");
        assert!(described.contains(&server.url()), "{described}");
    }
}

#[tokio::test]
async fn socket_and_database_are_taken_from_the_address() {
    let server = plain().await;
    let socket = server.socket().display();
    let store = leases(&format!("redis+unix://{socket}?db=3")).await;
    store
        .set_group(&crate::bed::name("orders"), "{}")
        .await
        .unwrap();
    let other = leases(&format!("redis://127.0.0.1:{}/3", server.port())).await;
    assert_eq!(other.groups().await.unwrap().len(), 1);
    let zero = leases(&format!("redis+unix://{socket}")).await;
    assert_eq!(zero.groups().await.unwrap().len(), 0);
}

#[tokio::test]
async fn bad_database_is_refused() {
    let server = plain().await;
    for (ending, kind) in [
        ("/x", StoreErrorKind::Invalid),
        ("/-1", StoreErrorKind::Invalid),
        ("/1/2", StoreErrorKind::Invalid),
        ("/99999999", StoreErrorKind::Invalid),
        ("/1000", StoreErrorKind::Unfit),
    ] {
        let error = refusal(&format!("{}{ending}", server.url()), &settings()).await;
        assert_refused(&error, kind, &["database"]);
    }
}

#[tokio::test]
async fn wrong_login_is_refused_at_once() {
    let server = redis(RedisOptions::new().user("default on >right ~* &* +@all")).await;
    let started = Instant::now();
    let error = refusal(&server.url(), &settings()).await;
    assert_refused(&error, StoreErrorKind::Unfit, &["asks for a login"]);
    for (user, password) in [("default", "wrong"), ("nobody", "right")] {
        let error = refusal(&server.url(), &with_login(user, password)).await;
        assert_refused(&error, StoreErrorKind::Unfit, &["refused the login"]);
    }
    let in_address = format!("redis://:wrong@{}", server.address());
    let error = refusal(&in_address, &settings()).await;
    assert_refused(&error, StoreErrorKind::Unfit, &["refused the login"]);
    assert!(
        started.elapsed() < settings().connect_timeout,
        "it was retried"
    );
    let in_address = format!("redis://:right@{}", server.address());
    leases(&in_address).await;
    leases(&format!("redis://default:right@{}", server.address())).await;
}

#[tokio::test]
async fn password_comes_from_a_file_or_the_settings_and_may_be_missing() {
    let options = RedisOptions::new()
        .user("file on >from-file ~* &* +@all")
        .user("open on nopass ~* &* +@all");
    let server = redis(options).await;
    let path = server.directory().join("password");
    std::fs::write(&path, "from-file\n").unwrap();
    let from_file = StoreSettings {
        credentials: Credentials {
            user: Some("file".to_owned()),
            password: Some(SecretSource::File(path)),
            ..Credentials::default()
        },
        ..settings()
    };
    try_leases(&server.url(), &from_file).await.unwrap();
    // The settings come before the address.
    let both = format!("redis://file:wrong@{}", server.address());
    try_leases(&both, &from_file).await.unwrap();
    let open = StoreSettings {
        credentials: Credentials {
            user: Some("open".to_owned()),
            ..Credentials::default()
        },
        ..settings()
    };
    try_leases(&server.url(), &open).await.unwrap();
    let foreign = StoreSettings {
        credentials: Credentials {
            token: Some(SecretSource::Given(Secret::new("t"))),
            ..Credentials::default()
        },
        ..settings()
    };
    let error = refusal(&server.url(), &foreign).await;
    assert_refused(
        &error,
        StoreErrorKind::Invalid,
        &["credentials.token", "NATS"],
    );
}

#[tokio::test]
async fn server_that_is_not_there_is_unavailable_within_the_bound() {
    let mut server = plain().await;
    server.kill();
    let started = Instant::now();
    let error = refusal(&server.url(), &impatient()).await;
    assert_refused(&error, StoreErrorKind::Unavailable, &["refused", "2s"]);
    // Both stores have used their time: it might have come until then.
    assert!(started.elapsed() >= impatient().connect_timeout * 2 - Duration::from_millis(200));
    let error = refusal("redis+unix:///nonexistent/redis.sock", &impatient()).await;
    assert_refused(&error, StoreErrorKind::Unavailable, &["redis.sock"]);
}

#[tokio::test]
async fn server_that_comes_while_opening_is_found() {
    let mut server = plain().await;
    server.kill();
    let url = server.url();
    let opening = tokio::spawn(async move { leases(&url).await });
    server.start_again().await;
    opening.await.unwrap();
}

#[tokio::test]
async fn server_of_another_protocol_is_refused() {
    let server = NatsServer::start(NatsVersion::Newest, NatsOptions::new()).await;
    let url = format!("redis://{}", server.address());
    let error = refusal(&url, &settings()).await;
    assert_refused(
        &error,
        StoreErrorKind::Unfit,
        &["Redis protocol", "right port"],
    );

    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("redis://{}", listener.local_addr().unwrap());
    let web = tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut asked = [0; 64];
            let _ = stream.read(&mut asked).await;
            let _ = stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").await;
        }
    });
    let error = refusal(&url, &settings()).await;
    assert_refused(
        &error,
        StoreErrorKind::Unfit,
        &["Redis protocol", "right port"],
    );
    web.abort();
}

#[tokio::test]
async fn server_that_says_nothing_is_unavailable_within_the_bound() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("redis://{}", listener.local_addr().unwrap());
    let silent = tokio::spawn(async move {
        let mut kept = Vec::new();
        while let Ok((stream, _)) = listener.accept().await {
            kept.push(stream);
        }
    });
    let error = refusal(&url, &impatient()).await;
    assert_refused(&error, StoreErrorKind::Unavailable, &["no answer"]);
    silent.abort();
}

#[tokio::test]
async fn read_only_replica_is_refused() {
    let primary = plain().await;
    let replica = redis(RedisOptions::new().replica_of(primary.address())).await;
    let error = refusal(&replica.url(), &settings()).await;
    assert_refused(&error, StoreErrorKind::Unfit, &["read-only replica"]);
}

#[tokio::test]
async fn redis_cluster_is_refused() {
    for flavour in RedisFlavour::ALL {
        let options = RedisOptions::new().extra("cluster-enabled yes");
        let server = RedisServer::start(flavour, options).await;
        let error = refusal(&server.url(), &settings()).await;
        assert_refused(&error, StoreErrorKind::Unfit, &["Redis Cluster"]);
    }
}

#[tokio::test]
async fn full_house_is_unavailable_until_somebody_leaves() {
    let server = redis(RedisOptions::new().extra("maxclients 1")).await;
    let first = leases(&server.url()).await;
    let error = refusal(&server.url(), &impatient()).await;
    assert_refused(&error, StoreErrorKind::Unavailable, &["no room"]);
    drop(first);
    let patient = StoreSettings {
        connect_timeout: Duration::from_secs(10),
        ..settings()
    };
    RedisLeases::open(&server.url().parse().unwrap(), &patient)
        .await
        .unwrap();
}

#[tokio::test]
async fn opening_ends_in_time_also_on_a_server_that_holds_back_writes() {
    let server = plain().await;
    Raw::of(&server).say(&["CLIENT", "PAUSE", "60000", "WRITE"]);
    let settings = StoreSettings {
        connect_timeout: Duration::from_millis(500),
        operation_timeout: Duration::from_secs(20),
        ..settings()
    };
    let error = refusal(&server.url(), &settings).await;
    assert_refused(&error, StoreErrorKind::Unavailable, &["does not answer"]);
}

#[tokio::test]
async fn mode_of_a_cluster_is_asked_for_no_longer_than_a_connection_may_take() {
    // It listens, and never answers.
    let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("redis://{}", silent.local_addr().unwrap());
    let settings = StoreSettings {
        connect_timeout: Duration::from_secs(3),
        ..settings()
    };
    let begun = Instant::now();
    let opened = Observer::open(&url.parse().unwrap(), &settings, None).await;
    let (error, took) = (opened.map(|_| ()).unwrap_err(), begun.elapsed());
    assert!(error.to_string().contains("(tried for 3s)"), "{error}");
    assert!(took < Duration::from_millis(5_500), "{took:?}");
}
