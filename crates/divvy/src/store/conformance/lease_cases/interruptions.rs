//! A store that is away for a while.

use divvy_core::store::{
    Acquired, Claim, Heartbeat, StoreError, StoreErrorKind, Tenure, WorkerInfo,
};

use super::super::super::LeaseNotice;
use super::super::lease_client::{LONG, LeaseClient};
use super::super::options::Options;
use super::super::report::Failure;
use super::super::run::Run;
use super::super::subject::LeaseSubject;
use super::{claim, group_name, lease, nonce};

/// The cases that need a subject with an interruption.
pub(super) const NAMES: [&str; 3] = [
    "operations_fail_in_time_and_work_again",
    "notices_go_on_after_an_interruption",
    "acknowledged_leases_survive_an_interruption",
];

/// While the store is away, reads are `Unavailable` and writes that or
/// `Unknown`, all of them in time; afterwards the same client works, and says
/// that it was connected anew.
pub async fn operations_fail_in_time_and_work_again(
    subject: &dyn LeaseSubject,
    options: &Options,
) -> Result<(), Failure> {
    let run = Run::new("operations_fail_in_time_and_work_again", options);
    let Some(interruption) = subject.interruption() else {
        return Ok(());
    };
    let mut random = run.random();
    let one = LeaseClient::open(&run, subject, "c", "one").await?;
    let wish = [claim(&lease(&run, "g", 0), &mut random)];
    let keys = [wish[0].key.clone()];
    let (session, info) = (nonce(&mut random), WorkerInfo::default());
    one.open_session(session, LONG).await.map(drop)?;
    let connects = one.store.connection().borrow().connects;
    let (store, worker, group) = (&one.store, &one.worker, group_name(&run, "g"));

    interruption.interrupt().await;
    let attempt = |what: &'static str| Attempt { run: &run, what };
    let heartbeat = Heartbeat::new(session, info, LONG, LONG);
    let beating = store.beat(worker, &heartbeat);
    let writes = [
        attempt("acquire")
            .of(store.acquire(worker, &wish, LONG))
            .await?,
        attempt("renew")
            .of(store.renew(worker, &wish, LONG))
            .await?,
        attempt("release").of(store.release(worker, &wish)).await?,
        attempt("beat").of(beating).await?,
        attempt("mark").of(store.mark_moved(&keys, LONG)).await?,
        attempt("set group")
            .of(store.set_group(&group, "{}"))
            .await?,
    ];
    let reads = [
        attempt("holders").of(store.holders(&keys)).await?,
        attempt("cooling").of(store.cooling(&keys)).await?,
        attempt("members").of(store.members()).await?,
        attempt("groups").of(store.groups()).await?,
    ];
    interruption.resume().await;

    let unavailable = Some(StoreErrorKind::Unavailable);
    let unknown = Some(StoreErrorKind::Unknown);
    let right = writes
        .iter()
        .all(|kind| *kind == unavailable || *kind == unknown);
    run.check(right, || {
        format!("writes without a store became {writes:?}")
    })?;
    let right = reads.iter().all(|kind| *kind == unavailable);
    run.check(right, || format!("reads without a store became {reads:?}"))?;
    let wait = run.wait("the client works again");
    while run
        .attempt("one", "holders", store.holders(&keys))
        .await?
        .is_err()
    {
        wait.again().await?;
    }
    let wait = run.wait("the client says that it was connected anew");
    loop {
        let connection = store.connection().borrow().clone();
        if connection.up && connection.connects > connects {
            return Ok(());
        }
        wait.again_because(&format!("{connection:?}")).await?;
    }
}

/// Something that is tried while the store is away.
struct Attempt<'a> {
    run: &'a Run,
    what: &'static str,
}

impl Attempt<'_> {
    /// What it fails with, if it does.
    async fn of<T: std::fmt::Debug>(
        &self,
        operation: impl Future<Output = Result<T, StoreError>>,
    ) -> Result<Option<StoreErrorKind>, Failure> {
        Ok(kind(self.run.attempt("one", self.what, operation).await?))
    }
}

/// Who listened before an interruption is told afterwards of what happens
/// then, without listening anew.
pub async fn notices_go_on_after_an_interruption(
    subject: &dyn LeaseSubject,
    options: &Options,
) -> Result<(), Failure> {
    let run = Run::new("notices_go_on_after_an_interruption", options);
    let Some(interruption) = subject.interruption() else {
        return Ok(());
    };
    let one = LeaseClient::open(&run, subject, "c", "one").await?;
    let two = LeaseClient::open(&run, subject, "c", "two").await?;
    let group = group_name(&run, "g");
    let mut notices = two.notices().await?;
    one.set_group(&group, "{}").await?;
    notices
        .tells(&LeaseNotice::Group(group.to_string()))
        .await?;
    interruption.interrupt().await;
    let wait = run.wait("the store is away");
    while run
        .attempt("two", "groups", two.store.groups())
        .await?
        .is_ok()
    {
        wait.again().await?;
    }
    let cluster = run.name("c");
    let opening = subject.open_aside(&cluster);
    if let Some(aside) = run.done("aside", "open".to_owned(), opening).await? {
        let setting = aside.set_group(&group, "{\"units\": 2}");
        run.done("aside", "set group".to_owned(), setting).await?;
    }
    interruption.resume().await;
    let wait = run.wait("both clients are connected again");
    while !(one.store.connection().borrow().up && two.store.connection().borrow().up) {
        wait.again().await?;
    }
    let after = group_name(&run, "after");
    let wait = run.wait("a change after an interruption is told");
    loop {
        let setting = one.store.set_group(&after, "{}");
        run.attempt("one", "set group", setting).await.map(drop)?;
        if notices
            .has_told(&LeaseNotice::Group(after.to_string()))
            .await
        {
            return Ok(());
        }
        wait.again().await?;
    }
}

/// Leases that were acknowledged before an interruption are held afterwards;
/// those of unknown fate are held by their nonce, or free.
pub async fn acknowledged_leases_survive_an_interruption(
    subject: &dyn LeaseSubject,
    options: &Options,
) -> Result<(), Failure> {
    let run = Run::new("acknowledged_leases_survive_an_interruption", options);
    let Some(interruption) = subject.interruption() else {
        return Ok(());
    };
    let mut random = run.random();
    let one = LeaseClient::open(&run, subject, "c", "one").await?;
    let mut before = Vec::new();
    for number in 0..20 {
        let wish = claim(&lease(&run, "before", number), &mut random);
        let token = one.take(&wish, LONG).await?;
        before.push((wish, token));
    }
    interruption.interrupt().await;
    let during: Vec<Claim> = (0..3)
        .map(|number| claim(&lease(&run, "during", number), &mut random))
        .collect();
    let mut unavailable = Vec::new();
    for wish in &during {
        let asking = one
            .store
            .acquire(&one.worker, std::slice::from_ref(wish), LONG);
        let answer = run.attempt("one", "acquire", asking).await?;
        unavailable.push(kind(answer) == Some(StoreErrorKind::Unavailable));
    }
    interruption.resume().await;
    let wait = run.wait("the client works again");
    let asking = || one.store.holders(&[]);
    while run.attempt("one", "holders", asking()).await?.is_err() {
        wait.again().await?;
    }
    for (wish, token) in &before {
        one.finds(wish, &one.id(), *token).await?;
        let tenure = one.renew_one(wish, LONG).await?;
        run.check(tenure == Tenure::Current, || {
            format!("{} was over after an interruption", wish.key)
        })?;
    }
    for (wish, unavailable) in during.iter().zip(unavailable) {
        let released = one.release_one(wish).await?;
        run.check(!(unavailable && released == Tenure::Current), || {
            "an acquisition that was Unavailable happened".to_owned()
        })?;
        let next = claim(&wish.key, &mut random);
        let answer = one.acquire(std::slice::from_ref(&next), LONG).await?;
        if answer[0] == Acquired::Held {
            one.release_one(wish).await.map(drop)?;
            one.take(&claim(&wish.key, &mut random), LONG).await?;
        }
    }
    Ok(())
}

fn kind<T>(result: Result<T, StoreError>) -> Option<StoreErrorKind> {
    result.err().map(|error| error.kind())
}
