//! What cannot be a store, and how that is said.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

use divvy::store::{KeyValue, StoreError, StoreErrorKind};

use crate::part::Part;
use crate::scratch::{Scratch, create, key, open, settings, url};

async fn refusal(path: &Path) -> StoreError {
    let refused = open(path, &settings()).await;
    refused.expect_err("it cannot be a store")
}

/// The error is of this kind, names the path, and says this.
#[track_caller]
fn says(error: &StoreError, kind: StoreErrorKind, path: &Path, words: &str) {
    let text = error.to_string();
    assert_eq!(error.kind(), kind, "{text}");
    assert!(text.contains(path.to_str().unwrap()), "{text}");
    assert!(text.contains(words), "{text}");
}

#[tokio::test]
async fn what_is_no_file_is_refused() {
    let scratch = Scratch::new();
    let directory = scratch.directory();
    let invalid = StoreErrorKind::Invalid;
    let error = refusal(directory).await;
    says(
        &error,
        invalid,
        directory,
        "is a directory; name a file in it",
    );

    let path = directory.join("missing/divvy.db");
    let error = refusal(&path).await;
    says(&error, invalid, &path, "there is no directory");

    let path = directory.join("pipe");
    let made = std::process::Command::new("mkfifo").arg(&path).status();
    assert!(made.unwrap().success());
    let error = refusal(&path).await;
    says(&error, invalid, &path, "is not a regular file");

    let path = directory.join("link");
    symlink(directory.join("nowhere"), &path).unwrap();
    let error = refusal(&path).await;
    says(&error, invalid, &path, "is a link to nothing");

    let path = directory.join("file/divvy.db");
    fs::write(directory.join("file"), "").unwrap();
    let error = refusal(&path).await;
    assert_eq!(error.kind(), StoreErrorKind::Unfit, "{error}");
    assert!(error.to_string().contains("file/divvy.db"), "{error}");
}

#[tokio::test]
async fn a_file_that_is_no_database_is_refused_and_not_touched() {
    let scratch = Scratch::new();
    let text = "dear diary, today I was nearly overwritten\n".repeat(100);
    fs::write(scratch.database(), &text).unwrap();
    let error = refusal(&scratch.database()).await;
    let path = scratch.database();
    says(
        &error,
        StoreErrorKind::Unfit,
        &path,
        "is not a database; name another file",
    );
    assert_eq!(fs::read_to_string(&path).unwrap(), text);
}

#[tokio::test]
async fn another_programs_database_is_refused_and_not_touched() {
    let scratch = Scratch::new();
    let path = scratch.database();
    let foreign = rusqlite::Connection::open(&path).unwrap();
    foreign
        .execute_batch("CREATE TABLE diary (day TEXT)")
        .unwrap();
    drop(foreign);
    let before = fs::read(&path).unwrap();
    let error = refusal(&path).await;
    says(
        &error,
        StoreErrorKind::Unfit,
        &path,
        "is another program's database",
    );
    assert_eq!(fs::read(&path).unwrap(), before);
}

#[tokio::test]
async fn a_newer_layout_is_refused() {
    let scratch = Scratch::new();
    let path = scratch.database();
    drop(scratch.open().await);
    let direct = rusqlite::Connection::open(&path).unwrap();
    direct.pragma_update(None, "user_version", 4).unwrap();
    let error = refusal(&path).await;
    says(
        &error,
        StoreErrorKind::Unfit,
        &path,
        "has layout 4, and this program knows layouts up to 3",
    );
}

#[tokio::test]
async fn a_damaged_database_is_refused() {
    let scratch = Scratch::new();
    let path = scratch.database();
    let store = scratch.open().await;
    create(&store, "k", &[1; 100_000]).await;
    drop(store);
    let direct = rusqlite::Connection::open(&path).unwrap();
    direct
        .query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))
        .unwrap();
    drop(direct);
    let mut bytes = fs::read(&path).unwrap();
    bytes[100..4096].fill(0xee);
    for ending in ["-wal", "-shm"] {
        let _was_removed = fs::remove_file(scratch.beside(ending));
    }
    fs::write(&path, bytes).unwrap();
    let error = refusal(&path).await;
    says(
        &error,
        StoreErrorKind::Unfit,
        &path,
        "is damaged; stop every process",
    );
}

#[tokio::test]
async fn a_place_without_permission_is_refused() {
    // Not even the superuser may make a file here.
    let path = Path::new("/sys/divvy.db");
    let error = refusal(path).await;
    says(
        &error,
        StoreErrorKind::Unfit,
        path,
        "let this user read and write it",
    );
}

/// Verifies the same for a file that others may only read, as a user who is
/// not the superuser.
#[tokio::test]
async fn a_file_that_may_only_be_read_is_refused() {
    let scratch = Scratch::new();
    drop(scratch.open().await);
    let superuser = rustix::process::geteuid().is_root();
    let mode = if superuser { 0o644 } else { 0o444 };
    fs::set_permissions(scratch.directory(), fs::Permissions::from_mode(0o755)).unwrap();
    for ending in ["", "-wal", "-shm", "-next", "-turn"] {
        let permissions = fs::Permissions::from_mode(mode);
        fs::set_permissions(scratch.beside(ending), permissions).unwrap();
    }
    let said = if superuser {
        let nobody = ["--reuid=65534", "--clear-groups", "--"];
        Part::start_under("setpriv", &nobody, "open", &scratch.database()).says()
    } else {
        Part::start("open", &scratch.database()).says()
    };
    assert!(said.starts_with("Unfit"), "{said}");
    assert!(said.contains("divvy.db"), "{said}");
    assert!(said.contains("let this user read and write it"), "{said}");
}

#[tokio::test]
async fn an_address_of_another_kind_is_refused() {
    let memory = "memory".parse().unwrap();
    let refused = divvy::store::file::FileStore::open(&memory, &settings()).await;
    let error = refused.unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Invalid);
    assert!(error.to_string().contains("must be file:PATH"), "{error}");
}

#[tokio::test]
async fn links_lead_to_the_same_store() {
    let scratch = Scratch::new();
    let store = scratch.open().await;
    let link = scratch.directory().join("link.db");
    symlink(scratch.database(), &link).unwrap();
    let linked = open(&link, &settings()).await.unwrap();
    create(&store, "k", b"1").await;
    assert!(linked.get(&key("k")).await.unwrap().is_some());
    assert!(!scratch.directory().join("link.db-turn").exists());
    assert_eq!(url(&link).to_string(), format!("file:{}", link.display()));
}
