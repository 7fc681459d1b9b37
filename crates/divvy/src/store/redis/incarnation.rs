//! Which life of a server's data this is.

use divvy_core::store::{Incarnation, StoreError};
use tokio::time::{Instant, timeout_at};

use super::failure::Nature;
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

/// Finds out, until `deadline`, which life it is and whether this user may run
/// what scripts run.
pub(super) async fn greet(
    link: &Link,
    channel: &str,
    commands: &[&str],
    deadline: Instant,
) -> Result<(), StoreError> {
    let greeting = async {
        incarnation(link).await?;
        check_permissions(link, channel, commands).await
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
