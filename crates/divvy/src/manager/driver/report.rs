//! What the driver shows of what the machine says.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use divvy_core::Moment;
use divvy_core::leader::{Report, State, Version, Wait};

use super::Driver;
use crate::manager::error::ManagerError;
use crate::manager::event::EventKind;
use crate::manager::settings::span::Span;
use crate::manager::status::{AssignedPartition, CurrentAssignment};
use crate::store::clock::boottime;

impl Driver {
    pub(super) fn report(&mut self, report: Report) {
        let metrics = &self.parts.status.metrics;
        match report {
            Report::State { from, to } => {
                let now = boottime();
                let after = now.since(std::mem::replace(&mut self.state_since, now));
                metrics.state_changed(from, to, after);
                self.parts.status.state.set(to);
                self.parts
                    .events
                    .tell(|| EventKind::StateChanged { from, to });
                self.parts.calls.state_changed(from, to);
            }
            Report::Claimed(worker) => self.claimed(worker),
            Report::SessionEnded(why) => {
                let text = format!("the session is over: {why}");
                self.parts.events.tell(|| EventKind::SessionEnded { why });
                self.parts.calls.error(ManagerError::Problem(text.into()));
            }
            Report::Leading(epoch) => {
                tracing::info!(epoch, "leads");
                self.lead(true);
            }
            Report::LeadingEnded(why) => {
                tracing::info!(%why, "leads no more");
                self.lead(false);
            }
            Report::Adopted { version, lifecycle } => {
                tracing::debug!(%version, ?lifecycle, "adopted an assignment");
                self.parts.calls.adopted(version);
                let session = self.parts.member.session();
                self.parts.events.tell(|| EventKind::Adopted {
                    session,
                    version,
                    lifecycle,
                });
            }
            Report::Committed {
                version,
                granted,
                revoked,
                causes,
                handovers,
            } => {
                for (why, took, count) in handovers {
                    metrics.handed_over(why, took, count);
                }
                for (cause, count) in causes {
                    metrics.moved(&cause, count);
                }
                self.committed(version, granted, revoked);
            }
            Report::LeaseRunsOut(silent) => {
                self.is_lease_running_out = true;
                self.problem(ManagerError::LeaseRunsOut { silent });
            }
            Report::LeaseRegained(after) => self.lease_regained(after),
            Report::Problem(text) => {
                self.last_problem = Some(text.clone());
                self.problem(ManagerError::Problem(text));
            }
            other => tracing::info!("{other:?}"),
        }
    }

    fn claimed(&mut self, worker: Box<str>) {
        self.is_lease_running_out = false;
        // A field that is recorded again would be shown twice.
        let parent = &self.manager_span;
        self.session_span = tracing::info_span!(parent: parent, "session", worker = &*worker);
        let _session = self.session_span.enter();
        tracing::info!("claimed a stable id");
        // Hooks may be called before the next time that all is shown.
        let status = &self.parts.status;
        status.worker_id.set(Some(Arc::from(&*worker)));
        self.parts.events.tell(|| EventKind::Claimed { worker });
    }

    fn lease_regained(&mut self, after: Duration) {
        self.is_lease_running_out = false;
        tracing::warn!("the lease is renewed again, after {}", Span(after));
        self.parts
            .events
            .tell(|| EventKind::LeaseRegained { after });
    }

    /// Logs what the first grants wait for, when that has changed.
    pub(super) fn log_wait(&mut self) {
        let wait = self.parts.member.waits_for();
        let kind = wait.map(|(kind, _)| kind);
        if kind == self.waits_for {
            return;
        }
        self.waits_for = kind;
        let why = wait.map(|(kind, until)| {
            let up_to = Span::rounded_up(until.since(boottime()));
            match kind {
                Wait::Quarantine => format!(
                    "the store is new, has restarted or lost its data: nothing is granted for up \
                     to {up_to}, in case a lease that it forgot is still in use"
                ),
                Wait::Workers => format!(
                    "waits up to {up_to} for more workers before partitions are placed \
                     (cold_start_window)"
                ),
            }
        });
        if let Some(why) = &why {
            tracing::info!("{why}");
            let why = why.as_str().into();
            self.parts.events.tell(|| EventKind::Waiting { why });
        }
        self.parts.status.waits_for.set(why.map(Arc::from));
    }

    fn committed(&self, version: Version, granted: u32, revoked: u32) {
        tracing::info!(%version, granted, revoked, "committed an assignment");
        let committed = || EventKind::Committed {
            version,
            granted,
            revoked,
        };
        self.parts.events.tell(committed);
        let metrics = &self.parts.status.metrics;
        let (granted, revoked) = (u64::from(granted), u64::from(revoked));
        metrics.grants.fetch_add(granted, Ordering::Relaxed);
        metrics.revocations.fetch_add(revoked, Ordering::Relaxed);
    }

    fn lead(&self, is_leader: bool) {
        let status = &self.parts.status;
        let before = status.is_leader.swap(is_leader, Ordering::Relaxed);
        if before != is_leader {
            let changes = &status.metrics.leadership_changes;
            changes.fetch_add(1, Ordering::Relaxed);
            status
                .metrics
                .is_leader
                .store(u64::from(is_leader), Ordering::Relaxed);
            self.parts
                .events
                .tell(|| EventKind::LeadershipChanged { is_leader });
            self.parts.calls.leadership_changed(is_leader);
        }
    }

    /// Shows what the machine knows, where that has changed, and says how many
    /// partitions that are.
    pub(super) fn show(&self) -> usize {
        let (member, status) = (&self.parts.member, &self.parts.status);
        let id = member.worker_id();
        if status.worker_id.get().as_deref() != id {
            status.worker_id.set(id.map(Arc::from));
        }
        let trouble = self.lasting_trouble();
        if status.trouble.get() != trouble {
            status.trouble.set(trouble);
        }
        let adopted = member.adopted();
        let owned = member
            .started()
            .map(|(partition, token)| AssignedPartition {
                partition: partition.clone(),
                token,
            });
        let assignment = CurrentAssignment {
            version: adopted.map(|(version, _)| version),
            lifecycle: adopted.map(|(_, lifecycle)| lifecycle),
            partitions: owned.collect(),
        };
        let metrics = &status.metrics;
        let unowned = member.unowned().unwrap_or_default() as u64;
        metrics.unowned_partitions.store(unowned, Ordering::Relaxed);
        let owned = assignment.partitions.len();
        metrics
            .assigned_partitions
            .store(owned as u64, Ordering::Relaxed);
        if let Some(version) = assignment.version {
            let (epoch, number) = (version.epoch, u64::from(version.number));
            metrics.assignment_epoch.store(epoch, Ordering::Relaxed);
            metrics.assignment_version.store(number, Ordering::Relaxed);
        }
        if *status.assignment.get() != assignment {
            status.assignment.set(Arc::new(assignment));
        }
        if self.is_over {
            status.state.set(State::Shutdown);
        }
        owned
    }

    /// What keeps this worker from its work, and lasts.
    fn lasting_trouble(&self) -> Option<Arc<str>> {
        if self.is_lease_running_out {
            let text = "no renewal of its lease is acknowledged: work stops until one is";
            return Some(text.into());
        }
        let why = self.parts.member.unreadable_root()?;
        Some(format!("the root is not readable: {why}").into())
    }

    pub(super) fn problem(&self, error: ManagerError) {
        self.parts.events.tell(|| EventKind::Error(error.clone()));
        self.parts.calls.error(error);
    }

    pub(super) fn deadline(&self, until: Option<Moment>) {
        self.parts.authority.set(until);
        let member = &self.parts.member;
        self.parts.events.tell(|| EventKind::Deadline {
            identity: member
                .worker_id()
                .zip(member.session())
                .map(|(worker, session)| (worker.into(), session)),
            until,
        });
    }
}
