//! What a client needs to be allowed.

use divvy::store::{Credentials, KeyValue, Notice, Prefix, Secret, SecretSource};
use divvy::store::{StoreErrorKind, StoreSettings};
use divvy_testbed::{NatsOptions, NatsServer, NatsVersion};

use crate::bed::{assert_refused, create, done, key, refusal, settings, try_open, value};

/// A user who may use one bucket, and write one cluster's keys there. BUCKET,
/// CLUSTER and PASSWORD are to be replaced.
const LEAST_PRIVILEGE: &str = r#"
authorization {
  users: [
    {
      user: "divvy"
      password: "PASSWORD"
      permissions: {
        publish: {
          allow: [
            # The keys of the cluster.
            "$KV.BUCKET.CLUSTER.>"
            # The bucket: to make it if it is missing, to check it, to read keys.
            "$JS.API.STREAM.CREATE.KV_BUCKET"
            "$JS.API.STREAM.INFO.KV_BUCKET"
            "$JS.API.STREAM.MSG.GET.KV_BUCKET"
            # Listings and watches of the cluster's keys.
            "$JS.API.CONSUMER.CREATE.KV_BUCKET.*.$KV.BUCKET.CLUSTER.>"
            "$JS.API.CONSUMER.MSG.NEXT.KV_BUCKET.*"
            "$JS.API.CONSUMER.DELETE.KV_BUCKET.*"
            # The markers of deleted keys, to remove them after a while.
            "$JS.API.STREAM.PURGE.KV_BUCKET"
          ]
        }
        subscribe: {
          allow: [ "_INBOX.BUCKET.CLUSTER.>" ]
        }
      }
    }
  ]
}
"#;

pub(crate) fn least_privilege(bucket: &str, cluster: &str, password: &str) -> String {
    LEAST_PRIVILEGE
        .replace("BUCKET", bucket)
        .replace("CLUSTER", cluster)
        .replace("PASSWORD", password)
}

fn as_divvy(cluster: &str) -> StoreSettings {
    StoreSettings {
        cluster: cluster.to_owned(),
        credentials: Credentials {
            user: Some("divvy".to_owned()),
            password: Some(SecretSource::Given(Secret::new("pw"))),
            ..Credentials::default()
        },
        ..settings()
    }
}

async fn start(configuration: &str) -> NatsServer {
    let options = NatsOptions::new().extra(configuration);
    NatsServer::start(NatsVersion::Newest, options).await
}

#[tokio::test]
async fn least_privilege_is_enough_for_one_cluster_and_for_no_other() {
    let server = start(&least_privilege("divvy", "blue", "pw")).await;
    let blue = try_open(&server.url(), &as_divvy("blue")).await.unwrap();
    let revision = create(&blue, "a", b"1").await;
    assert_eq!(value(&blue, "a").await.unwrap(), b"1");
    assert_eq!(blue.list(&Prefix::ALL).await.unwrap().len(), 1);
    let mut watch = blue.watch(&Prefix::ALL).await.unwrap();
    assert!(matches!(watch.next().await.unwrap(), Notice::Changed(_)));
    done(blue.delete(&key("a"), revision).await);
    let log = server.log();
    assert!(!log.contains("Violation"), "{log}");

    let error = refusal(&server.url(), &as_divvy("green")).await;
    assert_refused(
        &error,
        StoreErrorKind::Unfit,
        &["forbids", "Permissions Violation"],
    );
}

#[tokio::test]
async fn every_permission_that_is_missing_is_named_at_once() {
    let whole = least_privilege("divvy", "blue", "pw");
    for (line, words) in [
        ("\"$KV.divvy.blue.>\"\n", "$KV.divvy.blue.=probe"),
        (
            "\"$JS.API.STREAM.CREATE.KV_divvy\"",
            "STREAM.CREATE.KV_divvy",
        ),
        ("\"$JS.API.STREAM.INFO.KV_divvy\"", "STREAM.INFO.KV_divvy"),
        ("\"_INBOX.divvy.blue.>\"", "_INBOX.divvy.blue."),
    ] {
        let less = whole.replace(line, "\"other\"\n");
        assert_ne!(less, whole);
        let server = start(&less).await;
        let error = refusal(&server.url(), &as_divvy("blue")).await;
        assert_refused(
            &error,
            StoreErrorKind::Unfit,
            &["Permissions Violation", words],
        );
    }
}

#[tokio::test]
async fn an_operation_that_is_forbidden_fails_as_unfit_and_the_others_go_on() {
    let whole = least_privilege("divvy", "blue", "pw");
    let less = whole
        .replace("STREAM.MSG.GET", "OTHER")
        .replace("CONSUMER.CREATE", "OTHER");
    let server = start(&less).await;
    let store = try_open(&server.url(), &as_divvy("blue")).await.unwrap();
    let error = store.get(&key("a")).await.unwrap_err();
    assert_refused(
        &error,
        StoreErrorKind::Unfit,
        &["get 'a'", "STREAM.MSG.GET"],
    );
    let error = store.list(&Prefix::ALL).await.unwrap_err();
    assert_refused(&error, StoreErrorKind::Unfit, &["list", "CONSUMER.CREATE"]);
    let error = store.watch(&Prefix::ALL).await.unwrap_err();
    assert_refused(&error, StoreErrorKind::Unfit, &["watch", "CONSUMER.CREATE"]);
    create(&store, "b", b"1").await;
}

#[tokio::test]
async fn a_listing_that_may_not_pull_is_unfit() {
    let whole = least_privilege("divvy", "blue", "pw");
    let server = start(&whole.replace("CONSUMER.MSG.NEXT", "OTHER")).await;
    let store = try_open(&server.url(), &as_divvy("blue")).await.unwrap();
    assert!(store.list(&Prefix::ALL).await.unwrap().is_empty());
    create(&store, "a", b"1").await;
    let error = store.list(&Prefix::ALL).await.unwrap_err();
    assert_refused(
        &error,
        StoreErrorKind::Unfit,
        &["list", "CONSUMER.MSG.NEXT"],
    );
}

#[tokio::test]
async fn an_account_without_jetstream_is_refused() {
    let account = "accounts { A { users: [ { user: divvy, password: pw } ] } }";
    let server = start(account).await;
    let error = refusal(&server.url(), &as_divvy("blue")).await;
    assert_refused(&error, StoreErrorKind::Unfit, &["not enabled"]);
}

#[test]
fn the_guide_has_the_template_that_is_tested() {
    let guide = include_str!("../../../../docs/operating.md");
    assert!(guide.contains(LEAST_PRIVILEGE.trim()));
}
