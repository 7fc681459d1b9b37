//! What an operator does to a server by other means than the store.

use async_nats::Client;
use divvy_testbed::{Server, until};
use serde_json::{Value, json};

use crate::bed::SOON;

/// JetStream's code for a stream whose files could not be made.
const STORE_NOT_CREATED: u64 = 10049;

/// A client that may do everything.
pub(crate) struct Admin {
    client: Client,
}

impl Admin {
    pub(crate) async fn of(server: &Server) -> Self {
        let client = async_nats::connect(server.url()).await.unwrap();
        Self { client }
    }

    /// Asks JetStream, and fails if it says no.
    pub(crate) async fn ask(&self, subject: &str, body: Value) -> Value {
        let answer = self.answer(subject, &body).await;
        assert!(answer["error"].is_null(), "{answer}");
        answer
    }

    async fn answer(&self, subject: &str, body: &Value) -> Value {
        let subject = format!("$JS.API.{subject}");
        let answer = self.client.request(subject, body.to_string().into());
        serde_json::from_slice(&answer.await.unwrap().payload).unwrap()
    }

    /// Makes a stream that is a good bucket but for what `changed` says.
    pub(crate) async fn make_bucket(&self, bucket: &str, changed: Value) {
        let mut config = json!({
            "name": format!("KV_{bucket}"),
            "subjects": [format!("$KV.{bucket}.>")],
            "max_msgs_per_subject": 1,
            "discard": "new",
            "storage": "file",
            "num_replicas": 1,
            "allow_direct": false,
        });
        for (field, value) in changed.as_object().unwrap() {
            config[field] = value.clone();
        }
        let subject = format!("STREAM.CREATE.KV_{bucket}");
        // A server that is still removing the files of the last one says so.
        let made = async || {
            let answer = self.answer(&subject, &config).await;
            let is_early = answer["error"]["err_code"] == STORE_NOT_CREATED;
            assert!(is_early || answer["error"].is_null(), "{answer}");
            !is_early
        };
        until(SOON, "the files of the last bucket to be removed", made).await;
    }

    pub(crate) async fn delete_bucket(&self, bucket: &str) {
        self.ask(&format!("STREAM.DELETE.KV_{bucket}"), json!({}))
            .await;
    }

    pub(crate) async fn config(&self, bucket: &str) -> Value {
        self.info(bucket).await["config"].clone()
    }

    /// How many messages the bucket holds, markers included.
    pub(crate) async fn messages(&self, bucket: &str) -> u64 {
        self.info(bucket).await["state"]["messages"]
            .as_u64()
            .unwrap()
    }

    /// How many watches and listings the server keeps for the bucket.
    pub(crate) async fn consumers(&self, bucket: &str) -> u64 {
        self.info(bucket).await["state"]["consumer_count"]
            .as_u64()
            .unwrap()
    }

    pub(crate) async fn consumer_names(&self, bucket: &str) -> Vec<String> {
        let named = self
            .ask(&format!("CONSUMER.NAMES.KV_{bucket}"), json!({}))
            .await;
        serde_json::from_value(named["consumers"].clone()).unwrap()
    }

    async fn info(&self, bucket: &str) -> Value {
        self.ask(&format!("STREAM.INFO.KV_{bucket}"), json!({}))
            .await
    }
}
