//! Sessions and heartbeats of workers, and who is alive.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use ::redis::Value;
use divvy_core::store::{
    Beaten, Heartbeat, LeaseName, Member, Nonce, Quarantine, QuarantineId, QuarantineReport,
    SessionStart, StoreError, StoreErrorKind, Tenure, WorkerId,
};

use super::failure::Nature;
use super::leases::time_left;
use super::link::Link;
use super::script::{self, Inputs};
use super::{layout, reply, set};

/// Workers of one script call. What they say of themselves can be long.
const CALL_WORKERS: usize = 100;

/// The workers of one cluster.
pub(super) struct Membership<'a> {
    pub(super) link: &'a Link,
    pub(super) cluster: &'a LeaseName,
    /// The set of all workers was not readable when it was last read.
    pub(super) is_set_spoilt: &'a AtomicBool,
}

impl Membership<'_> {
    pub(super) async fn open_session(
        &self,
        id: &WorkerId,
        session: Nonce,
        ttl: Duration,
    ) -> Result<SessionStart, StoreError> {
        let inputs = Inputs::new()
            .key(layout::session(id))
            .argument(session.to_string())
            .argument(layout::milliseconds(ttl));
        let call = self.link.call(Nature::Write)?;
        match script::OPEN_SESSION.run(&call, inputs).await? {
            Value::Nil => Ok(SessionStart::Opened),
            Value::Int(left) => Ok(SessionStart::Taken(time_left(left))),
            _ => Err(reply::unexpected("a script")),
        }
    }

    pub(super) async fn beat(
        &self,
        id: &WorkerId,
        heartbeat: &Heartbeat,
        info: &str,
        report: Option<&QuarantineReport>,
    ) -> Result<Beaten, StoreError> {
        let (unit, time) = layout::expiry(heartbeat.heartbeat_ttl);
        let mut inputs = self
            .keys(id)
            .key(layout::QUARANTINE)
            .argument(heartbeat.session.to_string())
            .argument(layout::milliseconds(heartbeat.session_ttl))
            .argument(id.to_string())
            .argument(layout::node_value(id))
            .argument(unit)
            .argument(time)
            .argument(layout::milliseconds(heartbeat.heartbeat_ttl))
            .argument(info)
            .argument(self.channel());
        if let Some(report) = report {
            inputs = with_report(inputs, report);
        }
        let call = self.link.call(Nature::Write)?;
        let reply = reply::array(script::BEAT.run(&call, inputs).await?);
        let beaten = reply.and_then(|reply| beaten_of(&reply));
        beaten.ok_or_else(|| reply::unexpected("a script"))
    }

    pub(super) async fn leave(&self, id: &WorkerId, session: Nonce) -> Result<Tenure, StoreError> {
        let inputs = self
            .keys(id)
            .argument(session.to_string())
            .argument(id.to_string())
            .argument(self.channel());
        let call = self.link.call(Nature::Write)?;
        tenure(&script::LEAVE.run(&call, inputs).await?)
    }

    /// The live workers, in order of their names. An id whose rest is no name
    /// may be that of a cluster with a longer name, and is left alone.
    pub(super) async fn members(&self) -> Result<Vec<Member>, StoreError> {
        let call = self.link.call(Nature::Read)?;
        let beginning = format!("{}:", self.cluster);
        let listed = match set::members(&call, layout::NODES_ALL, &beginning).await {
            Err(error) if error.kind() == StoreErrorKind::Unfit => {
                let of_cluster = layout::nodes(self.cluster);
                if !self.is_set_spoilt.swap(true, Ordering::Relaxed) {
                    tracing::warn!(%error, "live workers are read from '{of_cluster}' instead");
                }
                set::members(&call, &of_cluster, &beginning).await?
            }
            listed => {
                self.is_set_spoilt.store(false, Ordering::Relaxed);
                listed?
            }
        };
        let name_of = |id: &str| {
            let name = LeaseName::new("worker", id.strip_prefix(&beginning)?).ok()?;
            Some(name.to_string())
        };
        let ids: Vec<&String> = listed.iter().filter(|id| name_of(id).is_some()).collect();
        let inputs: Vec<_> = ids
            .chunks(CALL_WORKERS)
            .map(|some| self.asked(some))
            .collect();
        let mut members = Vec::with_capacity(ids.len());
        let replies = script::MEMBERS.run_all(&call, &inputs).await?;
        for (reply, some) in replies.into_iter().zip(ids.chunks(CALL_WORKERS)) {
            let infos = reply::array(reply).ok_or_else(|| reply::unexpected("a script"))?;
            for (info, id) in infos.iter().zip(some) {
                let (Some(info), Some(name)) = (reply::text(info), name_of(id)) else {
                    continue;
                };
                let info = Some(info).filter(|info| !info.is_empty());
                members.push(Member { name, info });
            }
        }
        Ok(members)
    }

    fn asked(&self, ids: &[&String]) -> Inputs {
        let sets = Inputs::new()
            .key(layout::NODES_ALL)
            .key(layout::nodes(self.cluster));
        ids.iter().fold(sets, |inputs, id| {
            let inputs = inputs.key(layout::node(id)).key(layout::info(id));
            inputs.argument(id.as_str())
        })
    }

    fn keys(&self, id: &WorkerId) -> Inputs {
        Inputs::new()
            .key(layout::session(id))
            .key(layout::node(&id.to_string()))
            .key(layout::info(&id.to_string()))
            .key(layout::NODES_ALL)
            .key(layout::nodes(self.cluster))
    }

    fn channel(&self) -> String {
        layout::member_channel(self.link.endpoint().database(), self.cluster)
    }
}

/// Adds what a member reports of the quarantine, and a nonce for the next one.
fn with_report(inputs: Inputs, report: &QuarantineReport) -> Inputs {
    let (waited_in, waited) = match &report.waited {
        // Whole milliseconds that have passed: never more than were waited.
        Some((id, time)) => (id.as_str(), time.as_millis()),
        None => ("", 0),
    };
    inputs
        .argument(layout::milliseconds(report.longest_lease))
        .argument(waited_in)
        .argument(u64::try_from(waited).unwrap_or(u64::MAX))
        .argument(format!("{:032x}", fastrand::u128(..)))
}

/// What the script of heartbeats returned. No quarantine is one that is over.
fn beaten_of(reply: &[Value]) -> Option<Beaten> {
    let tenure = tenure(reply.first()?).ok()?;
    let quarantine = match reply {
        [_] => Quarantine::default(),
        [_, id, longest, is_over] => Quarantine {
            id: QuarantineId::new(reply::text(id)?),
            longest_lease: Duration::from_millis(reply::integer(longest)?.try_into().ok()?),
            is_over: reply::integer(is_over)? == 1,
        },
        _ => return None,
    };
    Some(Beaten { tenure, quarantine })
}

fn tenure(reply: &Value) -> Result<Tenure, StoreError> {
    match reply {
        Value::Int(1) => Ok(Tenure::Current),
        Value::Int(0) => Ok(Tenure::Over),
        _ => Err(reply::unexpected("a script")),
    }
}
