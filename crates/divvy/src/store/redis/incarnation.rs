//! Which life of a server's data this is.

use ::redis::{Pipeline, Value};
use divvy_core::store::{Incarnation, StoreError};
use tokio::time::{Instant, timeout_at};

use super::failure::{self, Nature};
use super::layout::CREATED;
use super::link::Link;
use super::reply;
use super::script::{FORBIDDEN, Inputs};
use super::server::Server;

/// The history of the server's data, and a mark beside the data: the first sees
/// a restart or a promotion that may have lost the last writes, the second a
/// server that was emptied or replaced.
pub(super) async fn incarnation(link: &Link) -> Result<Incarnation, StoreError> {
    let call = link.call(Nature::Read)?;
    let get = || {
        let mut get = ::redis::cmd("GET");
        get.arg(CREATED);
        get
    };
    let mut created = call.ask(get()).await?;
    if reply::text(&created).is_none() {
        let id: u128 = fastrand::u128(..);
        let mut set = ::redis::cmd("SET");
        set.arg(CREATED).arg(format!("{id:032x}")).arg("NX");
        call.ask(set).await?;
        // Another client may have been first.
        created = call.ask(get()).await?;
    }
    let created = reply::text(&created).ok_or_else(|| reply::unexpected("GET"))?;
    let history = Server::ask_history(&call).await?;
    Ok(Incarnation::new(format!("{history}.{created}")))
}

/// What a user of the server must be allowed.
pub(super) struct Needs<'a> {
    pub(super) channel: &'a str,
    /// Commands that scripts run.
    pub(super) commands: &'a [&'a str],
    /// Keys to read and write that are known from the start.
    pub(super) keys: &'a [&'a str],
}

/// Finds out, until `deadline`, which life it is and whether this user may do
/// what it needs.
pub(super) async fn greet(
    link: &Link,
    needs: Needs<'_>,
    deadline: Instant,
) -> Result<(), StoreError> {
    let greeting = async {
        incarnation(link).await?;
        check_permissions(link, needs.channel, needs.commands).await?;
        for key in needs.keys {
            check_access(link, key).await?;
        }
        Ok(())
    };
    let greeted = timeout_at(deadline, greeting).await;
    greeted.unwrap_or_else(|_elapsed| {
        let endpoint = link.endpoint();
        Err(StoreError::unavailable(format_args!(
            "{endpoint}: the server is reached but does not answer"
        )))
    })
}

/// Whether access rules let this user run everything that scripts run. There
/// must have been an incarnation.
async fn check_permissions(
    link: &Link,
    channel: &str,
    commands: &[&str],
) -> Result<(), StoreError> {
    let absent = format!("{CREATED}:absent");
    let inputs = Inputs::new()
        .argument(CREATED)
        .argument(&absent)
        .argument(channel);
    let forbidden = FORBIDDEN
        .run_both_ways(&link.call(Nature::Read)?, inputs.argument(commands))
        .await?;
    let forbidden = reply::array(forbidden).ok_or_else(|| reply::unexpected("a script"))?;
    if forbidden.is_empty() {
        return Ok(());
    }
    let names: Vec<_> = forbidden.iter().filter_map(reply::text).collect();
    Err(StoreError::unfit(format_args!(
        "the server's access rules forbid {}, which this store needs (tried on keys {CREATED} and \
         {absent} and on channel {channel}), see the templates in docs/operating.md",
        names.join(", ")
    )))
}

/// Whether access rules let this user read and write a key, which is not
/// changed by it.
async fn check_access(link: &Link, key: &str) -> Result<(), StoreError> {
    let mut tries = Pipeline::with_capacity(2);
    tries.cmd("GETRANGE").arg(key).arg(0).arg(0);
    // Words that contradict each other: refused for its key, or for them.
    tries.cmd("SET").arg(key).arg("").arg("NX").arg("XX");
    let replies = link.call(Nature::Read)?.send(&tries).await?;
    let is_forbidden = |reply: &Value| matches!(reply, Value::ServerError(error) if failure::code(error) == "NOPERM");
    if !replies.iter().any(is_forbidden) {
        return Ok(());
    }
    Err(StoreError::unfit(format_args!(
        "user '{}' may not access key '{key}': add ~{key} to its ACL (docs/operating.md)",
        link.endpoint().user()
    )))
}
