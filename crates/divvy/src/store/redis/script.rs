//! Lua scripts, run many at a time.
//!
//! A server knows a script by its hash until it is restarted or told to forget
//! all scripts, which can happen at any moment, also between two commands of
//! one pipeline. A call that the server did not know has done nothing, so it
//! is sent again, with its text.

use std::sync::LazyLock;

use ::redis::{Cmd, Pipeline, ToRedisArgs, Value};
use divvy_core::store::StoreError;

use super::failure::{self, Nature};
use super::link::Call;
use super::reply;

/// Calls of one pipeline at most, so that no reply waits behind all others.
const CALLS_MAX: usize = 64;

/// A script with its hash.
pub(super) struct Script {
    text: &'static str,
    hash: LazyLock<String>,
}

macro_rules! script {
    ($($file:literal),+) => {{
        const TEXT: &str = concat!($(include_str!($file)),+);
        Script {
            text: TEXT,
            hash: LazyLock::new(|| ::redis::Script::new(TEXT).get_hash().to_owned()),
        }
    }};
}
pub(super) static ACQUIRE: Script = script!("history.lua", "acquire.lua");
pub(super) static RENEW: Script = script!("renew.lua");
pub(super) static RELEASE: Script = script!("release.lua");
pub(super) static HOLDERS: Script = script!("holders.lua");
pub(super) static OPEN_SESSION: Script = script!("open_session.lua");
pub(super) static BEAT: Script = script!("history.lua", "beat.lua");
pub(super) static LEAVE: Script = script!("leave.lua");
pub(super) static MEMBERS: Script = script!("members.lua");
pub(super) static MARK_MOVED: Script = script!("mark_moved.lua");
pub(super) static COOLING: Script = script!("cooling.lua");
pub(super) static GROUPS: Script = script!("groups.lua");
pub(super) static SET_GROUP: Script = script!("set_group.lua");
pub(super) static REMOVE_GROUP: Script = script!("remove_group.lua");
pub(super) static SET_WISHES: Script = script!("set_wishes.lua");
pub(super) static LOG_MOVES: Script = script!("log_moves.lua");
pub(super) static MOVES: Script = script!("moves.lua");
pub(super) static COMPARE_AND_SET: Script = script!("compare_and_set.lua");
pub(super) static DELETE: Script = script!("delete.lua");
pub(super) static ADOPT: Script = script!("adopt.lua");
pub(super) static LIST: Script = script!("list.lua");
pub(super) static FORBIDDEN: Script = script!("forbidden.lua");

/// The keys and arguments of one call.
#[derive(Default)]
pub(super) struct Inputs {
    keys: Vec<String>,
    arguments: Vec<Vec<u8>>,
}

impl Inputs {
    pub(super) fn new() -> Self {
        Self::default()
    }

    #[must_use]
    pub(super) fn key(mut self, key: impl Into<String>) -> Self {
        self.keys.push(key.into());
        self
    }

    #[must_use]
    pub(super) fn argument(mut self, argument: impl ToRedisArgs) -> Self {
        self.arguments.extend(argument.to_redis_args());
        self
    }
}

impl Script {
    /// Runs it once.
    pub(super) async fn run(&self, call: &Call, inputs: Inputs) -> Result<Value, StoreError> {
        let mut values = self.run_all(call, &[inputs]).await?;
        values.pop().ok_or_else(|| reply::unexpected("a script"))
    }

    /// Runs it once by its text and once by its hash, for which different
    /// rights are needed, and gives what the latter returned.
    pub(super) async fn run_both_ways(
        &self,
        call: &Call,
        inputs: Inputs,
    ) -> Result<Value, StoreError> {
        call.ask(self.command("EVAL", self.text, &inputs)).await?;
        self.run(call, inputs).await
    }

    /// Runs it once per inputs, and gives what each returned. If only some
    /// could be run, a write's fate is unknown.
    pub(super) async fn run_all(
        &self,
        call: &Call,
        all: &[Inputs],
    ) -> Result<Vec<Value>, StoreError> {
        let mut values = Vec::with_capacity(all.len());
        for some in all.chunks(CALLS_MAX) {
            let mut done = !values.is_empty();
            let replies = self.run_some(call, some).await;
            let replies = replies.map_err(|error| within(call, done, error))?;
            done |= replies.iter().any(|reply| !is_refusal(reply));
            for (reply, inputs) in replies.into_iter().zip(some) {
                match reply {
                    Value::ServerError(error) => {
                        let refusal = failure::refused_on(&error, &inputs.keys);
                        return Err(within(call, done, refusal));
                    }
                    value => values.push(value),
                }
            }
        }
        Ok(values)
    }

    async fn run_some(&self, call: &Call, some: &[Inputs]) -> Result<Vec<Value>, StoreError> {
        let mut pipeline = Pipeline::with_capacity(some.len());
        for inputs in some {
            pipeline.add_command(self.command("EVALSHA", &self.hash, inputs));
        }
        let mut replies = call.send(&pipeline).await?;
        if replies.len() != some.len() {
            return Err(call.nature().unanswered("the server left out a reply"));
        }
        let unknown = |reply: &Value| matches!(reply, Value::ServerError(error) if error.code() == "NOSCRIPT");
        let again: Vec<usize> = (0..some.len())
            .filter(|at| unknown(&replies[*at]))
            .collect();
        if again.is_empty() {
            return Ok(replies);
        }
        let mut pipeline = Pipeline::with_capacity(again.len());
        for at in &again {
            pipeline.add_command(self.command("EVAL", self.text, &some[*at]));
        }
        let done = again.len() < some.len();
        let resent = call.send(&pipeline).await;
        for (at, reply) in again
            .iter()
            .zip(resent.map_err(|error| within(call, done, error))?)
        {
            replies[*at] = reply;
        }
        Ok(replies)
    }

    fn command(&self, name: &str, script: &str, inputs: &Inputs) -> Cmd {
        let mut command = ::redis::cmd(name);
        command.arg(script).arg(inputs.keys.len());
        for key in &inputs.keys {
            command.arg(key);
        }
        for argument in &inputs.arguments {
            command.arg(argument);
        }
        command
    }
}

fn is_refusal(reply: &Value) -> bool {
    matches!(reply, Value::ServerError(_))
}

/// The error of a batch, of which a part may have been done before.
fn within(call: &Call, done: bool, error: StoreError) -> StoreError {
    match call.nature() {
        Nature::Write if done => failure::partly_done(&error),
        _ => error,
    }
}
