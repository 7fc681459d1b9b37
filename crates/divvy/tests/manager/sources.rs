//! Sources of partitions that do not do what they should.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use divvy::Partitions;
use divvy::manager::{
    HookError, Hooks, Manager, ManagerError, PartitionSource, Settings, Shutdown,
};
use divvy::store::MemoryKeyValue;
use divvy_testbed::until;

use crate::bed::SOON;

/// Says at once that it has changed, or panics.
struct Restless {
    panics: bool,
    asked: Arc<AtomicUsize>,
}

#[async_trait]
impl PartitionSource for Restless {
    async fn list_partitions(&self) -> Result<Partitions, HookError> {
        Ok(Partitions::shards([("p", 4)])?)
    }

    async fn changed(&self) {
        self.asked.fetch_add(1, Ordering::SeqCst);
        assert!(!self.panics, "it is broken");
    }
}

#[derive(Default)]
struct Errors(Mutex<Vec<String>>);

#[async_trait]
impl Hooks for Errors {
    async fn error(&self, error: &ManagerError) {
        self.0.lock().unwrap().push(error.to_string());
    }
}

/// What is told of such a source, and how often it was asked until then.
async fn told_of(panics: bool) -> (Vec<String>, usize) {
    let (asked, errors) = (Arc::default(), Arc::new(Errors::default()));
    let source = Restless {
        panics,
        asked: Arc::clone(&asked),
    };
    let builder = Manager::builder(MemoryKeyValue::new(), source);
    let builder = builder.settings(Settings::fast());
    let manager = builder.hooks(Arc::clone(&errors)).start().await.unwrap();
    until(SOON, "it is told", async || {
        !errors.0.lock().unwrap().is_empty()
    })
    .await;
    until(SOON, "all is owned nevertheless", async || {
        manager.current_assignment().partitions.len() == 4
    })
    .await;
    let asked = asked.load(Ordering::SeqCst);
    manager.stop(Shutdown::Leave).await.unwrap();
    let told = errors.0.lock().unwrap().clone();
    (told, asked)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_source_that_never_waits_for_changes_is_followed_at_a_pace_and_told_once() {
    let (told, asked) = told_of(false).await;
    let text = "the source of partitions does not wait for changes: once a second is enough for it";
    assert_eq!(told, [text]);
    assert!(asked < 20, "{asked}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_source_that_panics_while_it_waits_is_told_once_and_still_asked() {
    let (told, asked) = told_of(true).await;
    let text = "changes of partitions are not followed any more: panicked: it is broken";
    assert_eq!((told, asked), (vec![text.to_owned()], 1));
}
