//! TLS, with and without certificates of clients.

use std::path::Path;

use divvy::store::{StoreErrorKind, StoreSettings, Tls};
use divvy_testbed::{Certificates, Identity, RedisOptions};

use crate::bed::{assert_refused, leases, plain, redis, refusal, settings, try_leases};

fn trusting(authority: &Path, client: Option<&Identity>) -> StoreSettings {
    StoreSettings {
        tls: Tls {
            required: true,
            ca_file: Some(authority.to_owned()),
            cert_file: client.map(|client| client.certificate.clone()),
            key_file: client.map(|client| client.key.clone()),
        },
        ..settings()
    }
}

#[tokio::test]
async fn server_is_believed_if_a_trusted_authority_vouches_for_it() {
    let certificates = Certificates::new();
    let server = redis(RedisOptions::new().tls(certificates.server())).await;
    let good = trusting(certificates.authority(), None);
    try_leases(&server.url(), &good).await.unwrap();
    let by_name = format!("rediss://localhost:{}", server.port());
    try_leases(&by_name, &good).await.unwrap();

    let other = trusting(certificates.other_authority(), None);
    let error = refusal(&server.url(), &other).await;
    assert_refused(
        &error,
        StoreErrorKind::Unfit,
        &["certificate is not accepted"],
    );
    // The system's authorities did not sign it, either.
    let error = refusal(&server.url(), &settings()).await;
    assert_refused(&error, StoreErrorKind::Unfit, &["certificate"]);
}

#[tokio::test]
async fn expired_certificate_is_refused() {
    let certificates = Certificates::new();
    let server = redis(RedisOptions::new().tls(certificates.expired_server())).await;
    let error = refusal(&server.url(), &trusting(certificates.authority(), None)).await;
    assert_refused(&error, StoreErrorKind::Unfit, &["certificate", "expired"]);
}

#[tokio::test]
async fn client_shows_its_certificate_where_it_is_asked_for() {
    let certificates = Certificates::new();
    let options = RedisOptions::new()
        .tls(certificates.server())
        .client_authority(certificates.authority());
    let server = redis(options).await;
    let with = trusting(certificates.authority(), Some(certificates.client()));
    try_leases(&server.url(), &with).await.unwrap();
    let error = refusal(&server.url(), &trusting(certificates.authority(), None)).await;
    assert_refused(
        &error,
        StoreErrorKind::Unfit,
        &["refused the TLS connection"],
    );
}

#[tokio::test]
async fn nothing_is_sent_in_the_clear_where_encryption_is_wanted() {
    let certificates = Certificates::new();
    let server = plain().await;
    let required = StoreSettings {
        tls: Tls {
            required: true,
            ..Tls::default()
        },
        ..settings()
    };
    let half = trusting(certificates.authority(), None);
    for settings in [required, half] {
        let error = refusal(&server.url(), &settings).await;
        assert_refused(
            &error,
            StoreErrorKind::Invalid,
            &["not encrypted", "rediss://"],
        );
    }
    leases(&server.url()).await;
}

#[tokio::test]
async fn server_without_encryption_is_refused_where_it_is_wanted() {
    let certificates = Certificates::new();
    let server = plain().await;
    let url = format!("rediss://{}", server.address());
    let settings = StoreSettings {
        connect_timeout: std::time::Duration::from_secs(1),
        ..trusting(certificates.authority(), None)
    };
    let error = refusal(&url, &settings).await;
    assert!(
        error.to_string().contains("tls") || error.to_string().contains("TLS"),
        "{error}"
    );
}

#[tokio::test]
async fn bad_certificate_files_are_refused_by_name_without_their_content() {
    let certificates = Certificates::new();
    let server = redis(RedisOptions::new().tls(certificates.server())).await;
    let (client, ca) = (certificates.client(), certificates.authority());
    let key = std::fs::read_to_string(&client.key).unwrap();
    let broken = server.directory().join("broken.pem");
    let lines: Vec<&str> = key.lines().collect();
    std::fs::write(
        &broken,
        format!("{}\n!{}\n", lines[0], lines[1..].join("\n")),
    )
    .unwrap();
    let tls = |ca: &Path, cert: &Path, key: &Path| StoreSettings {
        tls: Tls {
            required: true,
            ca_file: Some(ca.to_owned()),
            cert_file: Some(cert.to_owned()),
            key_file: Some(key.to_owned()),
        },
        ..settings()
    };
    let missing = Path::new("/nonexistent.pem");
    let cases = [
        (
            tls(missing, &client.certificate, &client.key),
            "tls.ca_file",
        ),
        (
            tls(&client.key, &client.certificate, &client.key),
            "tls.ca_file",
        ),
        (tls(ca, &client.key, &client.key), "tls.cert_file"),
        (
            tls(ca, &client.certificate, &client.certificate),
            "tls.key_file",
        ),
        (tls(ca, &client.certificate, &broken), "tls.key_file"),
        (
            tls(ca, &client.certificate, &certificates.server().key),
            "tls.key_file",
        ),
    ];
    for (settings, field) in cases {
        let error = refusal(&server.url(), &settings).await;
        assert_refused(&error, StoreErrorKind::Invalid, &[field]);
        let said = format!("{error} {error:?}");
        assert!(lines[1..].iter().all(|line| !said.contains(line)), "{said}");
    }
}
