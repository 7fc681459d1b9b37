//! What a manager logs says whose it is.

use std::fmt::Debug;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use divvy::Partition;
use divvy::manager::{Grant, HookError, Hooks, Manager, Settings, Shutdown, StaticSource};
use divvy::store::{Key, KeyValue as _, MemoryKeyValue};
use divvy_testbed::until;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Subscriber};
use tracing_subscriber::layer::{Context, Layer, SubscriberExt as _};
use tracing_subscriber::registry::LookupSpan;

#[derive(Default)]
struct Fields(String);

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.0 += &format!(" {}={value:?}", field.name());
    }
}

/// Notes every event, with the spans that it is in.
#[derive(Clone, Default)]
struct Notes(Arc<Mutex<Vec<String>>>);

impl<S: Subscriber + for<'a> LookupSpan<'a>> Layer<S> for Notes {
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        let span = context.span(id).expect("it was just made");
        let mut fields = Fields(span.name().to_owned());
        attributes.record(&mut fields);
        span.extensions_mut().insert(fields);
    }

    fn on_record(&self, id: &Id, values: &Record<'_>, context: Context<'_, S>) {
        let span = context.span(id).expect("it is there");
        if let Some(fields) = span.extensions_mut().get_mut::<Fields>() {
            values.record(fields);
        }
    }

    fn on_event(&self, event: &Event<'_>, context: Context<'_, S>) {
        let mut line = String::new();
        for span in context
            .event_scope(event)
            .into_iter()
            .flat_map(|scope| scope.from_root())
        {
            if let Some(fields) = span.extensions().get::<Fields>() {
                line += &format!("[{}]", fields.0);
            }
        }
        let mut fields = Fields::default();
        event.record(&mut fields);
        self.0.lock().unwrap().push(line + &fields.0);
    }
}

struct Talk;

#[async_trait]
impl Hooks for Talk {
    async fn assigned(&self, _partition: &Partition, _grant: Grant) -> Result<(), HookError> {
        tracing::info!("the application works");
        Ok(())
    }

    async fn revoked(&self, _partition: &Partition) -> Result<(), HookError> {
        tracing::info!("the application rests");
        Ok(())
    }
}

#[tokio::test]
async fn everything_is_logged_inside_of_the_manager_that_it_belongs_to() {
    let notes = Notes::default();
    let listening = tracing_subscriber::registry().with(notes.clone());
    let _guard = tracing::subscriber::set_default(listening);
    let source = StaticSource::shards(["p"], 1).unwrap();
    let mut settings = Settings::fast();
    settings.instance = Some("pod-1".to_owned());
    let builder = Manager::builder(MemoryKeyValue::new(), source);
    let manager = builder
        .settings(settings)
        .hooks(Talk)
        .start()
        .await
        .unwrap();
    let id = manager.worker_id().unwrap();
    let is_noted = |parts: &[&str]| {
        let notes = notes.0.lock().unwrap();
        notes
            .iter()
            .any(|line| parts.iter().all(|part| line.contains(part)))
    };
    let worker = format!("worker=\"{id}\"");
    until(Duration::from_secs(20), "all of it is logged", async || {
        is_noted(&[
            "[manager instance=\"pod-1\"",
            &worker,
            "committed",
            "version=",
        ]) && is_noted(&["[manager", &worker, "adopted", "version="])
            && is_noted(&[
                "[manager",
                &worker,
                "[hook",
                "partition=\"p:0\"",
                "the application",
            ])
    })
    .await;
    manager.stop(Shutdown::Leave).await.unwrap();
    let notes = notes.0.lock().unwrap();
    for done in ["the application works", "the application rests"] {
        let at = notes.iter().position(|line| line.contains(done)).unwrap();
        let mut before = notes[..at].iter().rev();
        let adopted = before.find(|line| line.contains("adopted an assignment"));
        let version = version_of(adopted.expect("that is why"));
        let told = version_of(notes[at].split("[hook").nth(1).unwrap());
        assert_eq!(told, version, "{done}");
    }
}

#[tokio::test]
async fn a_worker_that_claims_its_id_again_is_named_once_in_each_line() {
    let notes = Notes::default();
    let listening = tracing_subscriber::registry().with(notes.clone());
    let _guard = tracing::subscriber::set_default(listening);
    let (store, source) = (
        MemoryKeyValue::new(),
        StaticSource::shards(["p"], 1).unwrap(),
    );
    let builder = Manager::builder(store.clone(), source).settings(Settings::fast());
    let manager = builder.start().await.unwrap();
    let id = manager.worker_id().unwrap();
    let key = Key::new(["w", &id]).unwrap();
    let claims = || {
        let notes = notes.0.lock().unwrap();
        let claims = notes
            .iter()
            .filter(|line| line.contains("claimed a stable id"));
        claims.cloned().collect::<Vec<_>>()
    };
    until(Duration::from_secs(20), "the session is lost", async || {
        if let Some(record) = store.get(&key).await.unwrap() {
            let _outcome = store.delete(&key, record.revision).await.unwrap();
        }
        claims().len() > 1
    })
    .await;
    manager.stop(Shutdown::Leave).await.unwrap();
    for line in claims() {
        assert_eq!(line.matches("worker=").count(), 1, "{line}");
    }
}

#[tokio::test]
async fn a_start_logs_once_what_it_waits_for_and_how_long() {
    let notes = Notes::default();
    let listening = tracing_subscriber::registry().with(notes.clone());
    let _guard = tracing::subscriber::set_default(listening);
    let source = StaticSource::shards(["p"], 1).unwrap();
    let builder = Manager::builder(MemoryKeyValue::new(), source).settings(Settings::fast());
    let manager = builder.start().await.unwrap();
    assert_eq!(manager.waits_for(), None);
    manager.stop(Shutdown::Leave).await.unwrap();
    let notes = notes.0.lock().unwrap();
    let waits = notes
        .iter()
        .filter(|line| line.contains("cold_start_window"));
    let waits: Vec<&String> = waits.collect();
    assert_eq!(waits.len(), 1, "{notes:#?}");
    assert!(waits[0].contains("waits up to "), "{waits:?}");
}

#[tokio::test]
async fn an_option_that_is_corrected_is_told_once() {
    let notes = Notes::default();
    let listening = tracing_subscriber::registry().with(notes.clone());
    let _guard = tracing::subscriber::set_default(listening);
    let text = "preset: fast\nstrategy: {name: weighted-consistent-hash, virtual_nodes: 0}";
    let settings = Settings::from_yaml(text).unwrap();
    settings.check().unwrap();
    let source = StaticSource::shards(["p"], 1).unwrap();
    let builder = Manager::builder(MemoryKeyValue::new(), source).settings(settings);
    let manager = builder.start().await.unwrap();
    manager.stop(Shutdown::Leave).await.unwrap();
    let notes = notes.0.lock().unwrap();
    let told = notes.iter().filter(|line| line.contains("virtual nodes 0"));
    assert_eq!(told.count(), 1);
}

/// The value of the field `version`.
fn version_of(line: &str) -> &str {
    let (_, value) = line.split_once("version=").expect("it has one");
    let end = value.find([' ', ']']).unwrap_or(value.len());
    value[..end].trim_matches('"')
}
