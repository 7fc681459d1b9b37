//! An operator who gives NATS users credentials files.

use std::fs;
use std::path::PathBuf;
use std::time::SystemTime;

use nkeys::KeyPair;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::nkey::{Nkey, token};

/// The trust of a server in operator mode: one account with JetStream, and users whom it has signed.
///
/// Started with [`NatsOptions::operator`](crate::NatsOptions::operator), a server lets nobody else
/// in. The credentials files are removed with this value.
#[derive(Debug)]
pub struct NatsOperator {
    directory: TempDir,
    operator: KeyPair,
    account: KeyPair,
    /// The servers' own, which every operator has.
    system: KeyPair,
}

impl Default for NatsOperator {
    fn default() -> Self {
        Self::new()
    }
}

impl NatsOperator {
    /// Makes new keys of an operator and of an account.
    pub fn new() -> Self {
        let directory = tempfile::Builder::new()
            .prefix("divvy-testbed-")
            .tempdir()
            .expect("a temporary directory can be made");
        Self {
            directory,
            operator: KeyPair::new_operator(),
            account: KeyPair::new_account(),
            system: KeyPair::new_account(),
        }
    }

    /// The credentials file of a new user who may do everything in the account.
    pub fn user(&self, name: &str) -> PathBuf {
        self.user_with(name, &[">"], &[">"])
    }

    /// The credentials file of a new user who may publish and subscribe to these subjects only.
    pub fn user_with(&self, name: &str, publish: &[&str], subscribe: &[&str]) -> PathBuf {
        let user = Nkey::new();
        let said = json!({
            "pub": { "allow": publish },
            "sub": { "allow": subscribe },
            "subs": -1, "data": -1, "payload": -1,
            "type": "user", "version": 2,
        });
        let token = say(&self.account, &user.public(), name, &said);
        let text = format!(
            "-----BEGIN NATS USER JWT-----\n{token}\n------END NATS USER JWT------\n\n\
             -----BEGIN USER NKEY SEED-----\n{}\n------END USER NKEY SEED------\n",
            user.seed()
        );
        let path = self.directory.path().join(format!("{name}.creds"));
        fs::write(&path, text).expect("a file can be written to our own directory");
        path
    }

    /// The lines of a server's configuration.
    pub(crate) fn configuration(&self) -> String {
        let (account, system) = (self.account.public_key(), self.system.public_key());
        let itself = say(
            &self.operator,
            &self.operator.public_key(),
            "testbed",
            &json!({ "system_account": system, "type": "operator", "version": 2 }),
        );
        let with_storage = say(&self.operator, &account, "account", &limits(-1));
        let without = say(&self.operator, &system, "SYS", &limits(0));
        format!(
            "operator: {itself}\nsystem_account: {system}\nresolver: MEMORY\n\
             resolver_preload {{\n{account}: {with_storage}\n{system}: {without}\n}}"
        )
    }
}

/// What the operator says of an account: -1 is without limit.
fn limits(storage: i64) -> Value {
    json!({
        "limits": {
            "subs": -1, "data": -1, "payload": -1, "imports": -1, "exports": -1,
            "wildcards": true, "conn": -1, "leaf": -1,
            "mem_storage": storage, "disk_storage": storage,
            "streams": storage, "consumer": storage,
        },
        "default_permissions": { "pub": {}, "sub": {} },
        "type": "account", "version": 2,
    })
}

/// What `issuer` says of the key `subject`.
fn say(issuer: &KeyPair, subject: &str, name: &str, said: &Value) -> String {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    let claims = json!({
        "jti": format!("testbed-{name}"),
        "iat": now.expect("the clock is right").as_secs(),
        "iss": issuer.public_key(),
        "name": name,
        "sub": subject,
        "nats": said,
    });
    token(issuer, &claims)
}
