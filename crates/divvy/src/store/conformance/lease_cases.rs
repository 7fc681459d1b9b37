//! What every lease store must do, each a function of its own.

pub mod batches;
pub mod cancellations;
pub mod cooldowns;
pub mod expiry;
pub mod groups;
pub mod interruptions;
pub mod limits;
pub mod members;
pub mod names;
pub mod notes;
pub mod notices;
pub mod quarantine;
pub mod races;
pub mod random;
pub mod sessions;
pub mod tenures;
pub mod tokens;

use divvy_core::store::{Claim, LeaseKey, LeaseName, Nonce};
use fastrand::Rng;

use super::key_value_cases::cases;
use super::options::Options;
use super::report::{CaseRun, Failure, Report};
use super::run::Run;
use super::subject::LeaseSubject;

/// Judges a lease store by every case. The first that it does not pass is the
/// failure.
pub async fn leases(subject: &dyn LeaseSubject, options: &Options) -> Result<Report, Failure> {
    let run = Run::new("leases", options);
    let opening = subject.open("conformance");
    let store = run.done("first", "open".to_owned(), opening).await?;
    let mut report = Report::new(store.describe(), options.seed);
    drop(store);
    cases!(report, subject, options:
        tenures::{
            a_lease_has_one_holder,
            a_renewal_needs_the_nonce,
            a_release_needs_the_nonce,
            a_holder_is_shown_as_it_is,
        }
        tokens::{tokens_of_a_lease_increase, tokens_have_a_floor_in_time}
        expiry::{
            a_lease_expires_in_time,
            a_renewed_lease_lives_on,
            a_renewal_counts_from_when_it_came,
            an_expired_tenure_is_over,
        }
        sessions::{
            a_name_has_one_session,
            a_session_expires_in_time,
            a_heartbeat_keeps_a_session,
        }
        members::{
            members_are_those_of_the_cluster,
            what_a_worker_says_comes_back,
            a_silent_member_is_gone_in_time,
        }
        cooldowns::{marks_expire_in_time, marks_are_shared_by_clusters}
        groups::{groups_are_set_replaced_and_removed, group_documents_come_back_whole}
        notes::{
            wishes_are_written_over_what_was_read,
            wishes_are_told,
            the_last_moves_are_kept,
        }
        names::{distinct_leases_never_meet, a_store_describes_itself}
        notices::{
            changes_of_groups_are_told,
            changes_of_members_are_told,
            releases_are_told,
        }
        batches::{
            batches_are_answered_in_order,
            a_batch_is_done_one_after_the_other,
            a_batch_too_large_is_refused,
        }
        limits::{
            times_to_live_are_bounded,
            invalid_descriptions_are_refused,
        }
        random::{random_operations_are_as_in_the_model}
        races::{
            one_of_many_acquirers_wins,
            one_of_many_sessions_opens,
            one_of_many_releases_counts,
            contended_leases_have_one_holder_at_a_time,
        }
        cancellations::{a_cancelled_acquisition_happens_whole_or_never}
    );
    quarantined(&mut report, subject, options).await?;
    interrupted(&mut report, subject, options).await?;
    Ok(report)
}

/// The cases that make the store forget, where that is offered.
async fn quarantined(
    report: &mut Report,
    subject: &dyn LeaseSubject,
    options: &Options,
) -> Result<(), Failure> {
    if subject.forgetting().is_none() {
        report.not_offered.extend(quarantine::NAMES);
        return Ok(());
    }
    cases!(report, subject, options:
        quarantine::{
            a_quarantine_lasts_for_the_longest_lease,
            a_longer_lease_of_another_worker_is_waited_for,
            a_restart_begins_a_quarantine_that_keeps_leases,
            a_loss_of_all_data_begins_a_quarantine,
            a_granted_lease_counts_in_the_next_quarantine,
        }
    );
    Ok(())
}

/// The cases that interrupt the store, where that is offered.
async fn interrupted(
    report: &mut Report,
    subject: &dyn LeaseSubject,
    options: &Options,
) -> Result<(), Failure> {
    if subject.interruption().is_none() {
        report.not_offered.extend(interruptions::NAMES);
        return Ok(());
    }
    cases!(report, subject, options:
        interruptions::{
            operations_fail_in_time_and_work_again,
            notices_go_on_after_an_interruption,
            acknowledged_leases_survive_an_interruption,
        }
    );
    Ok(())
}

/// Lease `number` of a group that is this run's own.
fn lease(run: &Run, group: &str, number: u32) -> LeaseKey {
    LeaseKey {
        group: group_name(run, group),
        number,
    }
}

/// The name of a group that is this run's own.
fn group_name(run: &Run, group: &str) -> LeaseName {
    LeaseName::new("group", &run.name(group)).expect("the suite's own names are valid")
}

/// A wish for a lease, with a nonce that was never used.
fn claim(key: &LeaseKey, random: &mut Rng) -> Claim {
    Claim {
        key: key.clone(),
        nonce: nonce(random),
    }
}

fn nonce(random: &mut Rng) -> Nonce {
    Nonce::new(random.u128(..))
}
