//! Random operations, compared with the reference.

use std::collections::BTreeMap;

use divvy_core::Moment;
use divvy_core::store::{
    Acquired, Claim, GroupDocument, Holder, LeaseKey, LeaseName, LeaseTable, Nonce, SessionStart,
    StoreTime, Token, WorkerId, WorkerInfo,
};
use fastrand::Rng;

use super::super::lease_client::{LONG, LeaseClient};
use super::super::options::Options;
use super::super::report::Failure;
use super::super::run::Run;
use super::super::subject::LeaseSubject;
use super::{claim, group_name, lease, nonce};

/// Whatever workers of two clusters do one after the other, as long as nothing
/// expires, comes out as in the reference.
pub async fn random_operations_are_as_in_the_model(
    subject: &dyn LeaseSubject,
    options: &Options,
) -> Result<(), Failure> {
    let run = Run::new("random_operations_are_as_in_the_model", options);
    let mut random = run.random();
    let mut clients = Vec::new();
    for (cluster, worker) in [("c", "one"), ("c", "two"), ("far", "one"), ("c", "one")] {
        clients.push(LeaseClient::open(&run, subject, cluster, worker).await?);
    }
    let mut model = Model::new(run.clone());
    for _ in 0..options.operations {
        let client = &clients[random.usize(..clients.len())];
        match random.u8(..16) {
            0..3 => model.acquire(client, &mut random).await?,
            3..5 => model.renew(client, &mut random).await?,
            5..8 => model.release(client, &mut random).await?,
            8..9 => model.look(client).await?,
            9..10 => model.open_session(client, &mut random).await?,
            10..12 => model.beat(client, &mut random).await?,
            12..13 => model.leave(client, &mut random).await?,
            13..14 => model.mark(client, &mut random).await?,
            14..15 => model.change_group(client, &mut random).await?,
            _ => model.list(client).await?,
        }
    }
    for client in &clients {
        model.look(client).await?;
        model.list(client).await?;
    }
    Ok(())
}

/// At one moment for ever: nothing expires.
const NOW: StoreTime = StoreTime {
    now: Moment::from_origin(std::time::Duration::ZERO),
    unix_ms: 0,
};

/// The reference, and which tokens the store under test granted.
struct Model {
    run: Run,
    table: LeaseTable,
    keys: Vec<LeaseKey>,
    groups: Vec<LeaseName>,
    tokens: BTreeMap<LeaseKey, Token>,
    /// The last claims of each lease, granted or not.
    claims: BTreeMap<LeaseKey, Vec<Claim>>,
    sessions: Vec<Nonce>,
}

impl Model {
    fn new(run: Run) -> Self {
        let places = [("g", 0), ("g", 1), ("g", 11), ("g1", 1), ("h é", 0)];
        let keys = places.map(|(group, number)| lease(&run, group, number));
        let groups = ["a", "b*", "é"].map(|group| group_name(&run, group));
        Self {
            run,
            table: LeaseTable::default(),
            keys: keys.to_vec(),
            groups: groups.to_vec(),
            tokens: BTreeMap::new(),
            claims: BTreeMap::new(),
            sessions: Vec::new(),
        }
    }

    fn key(&self, random: &mut Rng) -> LeaseKey {
        self.keys[random.usize(..self.keys.len())].clone()
    }

    /// A claim that was made before, mostly the last.
    fn past_claim(&self, random: &mut Rng) -> Claim {
        let key = self.key(random);
        let Some(claims) = self.claims.get(&key) else {
            return claim(&key, random);
        };
        let back = random.usize(..claims.len().min(3)) * usize::from(random.bool());
        claims[claims.len() - 1 - back].clone()
    }

    fn past_session(&self, random: &mut Rng) -> Nonce {
        let newest = self.sessions.iter().rev().take(5).copied();
        let newest: Vec<Nonce> = newest.collect();
        match newest.is_empty() {
            true => nonce(random),
            false => newest[random.usize(..newest.len())],
        }
    }

    fn same<T: PartialEq + std::fmt::Debug>(
        &self,
        what: &str,
        found: &T,
        right: &T,
    ) -> Result<(), Failure> {
        self.run.check(found == right, || {
            format!("{what} gave {found:?}, must be {right:?}")
        })
    }

    async fn acquire(&mut self, client: &LeaseClient, random: &mut Rng) -> Result<(), Failure> {
        let wishes: Vec<Claim> = (0..random.usize(1..4))
            .map(|_| claim(&self.key(random), random))
            .collect();
        let answers = client.acquire(&wishes, LONG).await?;
        for (wish, answer) in wishes.into_iter().zip(answers) {
            let right = self.table.acquire(NOW, &id_of(client), &wish, LONG);
            let granted = |answer: &Acquired| matches!(answer, Acquired::Granted(_));
            self.same("an acquisition", &granted(&answer), &granted(&right))?;
            if let Acquired::Granted(token) = answer {
                let last = self.tokens.insert(wish.key.clone(), token);
                self.run.check(last.is_none_or(|last| token > last), || {
                    format!("token {token} was granted after {last:?}")
                })?;
                // Those that were refused only matter as wrong nonces.
                self.claims.entry(wish.key.clone()).or_default().push(wish);
            } else {
                self.claims
                    .entry(wish.key.clone())
                    .or_default()
                    .insert(0, wish);
            }
        }
        Ok(())
    }

    async fn renew(&mut self, client: &LeaseClient, random: &mut Rng) -> Result<(), Failure> {
        let claim = self.past_claim(random);
        let found = client.renew_one(&claim, LONG).await?;
        let right = self.table.renew(NOW, &id_of(client), &claim, LONG);
        self.same("a renewal", &found, &right)
    }

    async fn release(&mut self, client: &LeaseClient, random: &mut Rng) -> Result<(), Failure> {
        let claim = self.past_claim(random);
        let found = client.release_one(&claim).await?;
        let right = self.table.release(NOW, &id_of(client), &claim);
        self.same("a release", &found, &right)
    }

    /// Everybody's leases and marks, until they are read as they are.
    async fn look(&self, client: &LeaseClient) -> Result<(), Failure> {
        let right: Vec<Option<Holder>> = self.keys.iter().map(|key| self.holder(key)).collect();
        let wait = self.run.wait(format!("the holders are {right:?}"));
        loop {
            let mut found = client.holders(&self.keys).await?;
            for holder in found.iter_mut().flatten() {
                let in_time = holder.left <= LONG && !holder.left.is_zero();
                self.run
                    .check(in_time, || format!("a lease for {LONG:?} is {holder:?}"))?;
                holder.left = LONG;
            }
            if found == right {
                break;
            }
            wait.again_because(&format!("{found:?}")).await?;
        }
        let each = self.keys.iter();
        let right: Vec<bool> = each.map(|key| self.table.is_cooling(NOW, key)).collect();
        let wait = self.run.wait(format!("the marks are {right:?}"));
        while client.cooling(&self.keys).await? != right {
            wait.again().await?;
        }
        Ok(())
    }

    /// The holder, with the token that the store under test has granted.
    fn holder(&self, key: &LeaseKey) -> Option<Holder> {
        let holder = self.table.holder(NOW, key)?;
        let nonce = holder.fence.map(|(_, nonce)| nonce);
        Some(Holder {
            fence: self.tokens.get(key).copied().zip(nonce),
            ..holder
        })
    }

    async fn open_session(
        &mut self,
        client: &LeaseClient,
        random: &mut Rng,
    ) -> Result<(), Failure> {
        let session = match random.bool() {
            true => nonce(random),
            false => self.past_session(random),
        };
        let found = client.open_session(session, LONG).await?;
        let right = self.table.open_session(NOW, &id_of(client), session, LONG);
        let opened = |start: &SessionStart| *start == SessionStart::Opened;
        self.sessions.push(session);
        self.same("a session's start", &opened(&found), &opened(&right))
    }

    async fn beat(&mut self, client: &LeaseClient, random: &mut Rng) -> Result<(), Failure> {
        let session = self.past_session(random);
        let info = WorkerInfo {
            weight: f64::from(random.u8(1..5)),
            healthy: random.bool(),
            groups: random.bool().then(|| vec!["é \"".to_owned()]),
            ..WorkerInfo::default()
        };
        let found = client.beat(session, &info, LONG, LONG).await?;
        let json = info.to_json();
        let json = json.map_err(|error| self.run.fail(error.to_string()))?;
        let id = id_of(client);
        let right = self.table.beat(NOW, &id, session, &json, (LONG, LONG));
        self.same("a heartbeat", &found, &right)
    }

    async fn leave(&mut self, client: &LeaseClient, random: &mut Rng) -> Result<(), Failure> {
        let session = self.past_session(random);
        let found = client.leave(session).await?;
        let right = self.table.leave(NOW, &id_of(client), session);
        self.same("leaving", &found, &right)
    }

    async fn mark(&mut self, client: &LeaseClient, random: &mut Rng) -> Result<(), Failure> {
        let key = self.key(random);
        client.mark_moved(std::slice::from_ref(&key), LONG).await?;
        self.table.mark_moved(NOW, &key, LONG);
        Ok(())
    }

    async fn change_group(
        &mut self,
        client: &LeaseClient,
        random: &mut Rng,
    ) -> Result<(), Failure> {
        let name = self.groups[random.usize(..self.groups.len())].clone();
        if random.bool() {
            let json = format!("{{\"units\": {}}}", random.u8(..));
            self.table.set_group(&name, &json);
            return client.set_group(&name, &json).await;
        }
        let found = client.remove_group(&name).await?;
        let right = self.table.remove_group(&name);
        self.same("removing a group", &found, &right)
    }

    /// The groups and the cluster's members, until they are read as they are.
    async fn list(&self, client: &LeaseClient) -> Result<(), Failure> {
        let right: Vec<GroupDocument> = self.table.groups();
        let wait = self.run.wait(format!("the groups are {right:?}"));
        while client.groups().await? != right {
            wait.again().await?;
        }
        let cluster = id_of(client).cluster;
        let described = |members: Vec<divvy_core::store::Member>| -> Vec<_> {
            let each = members.into_iter();
            each.map(|member| (super::members::said(&member), member.name))
                .collect()
        };
        let right = described(self.table.members(NOW, &cluster));
        let wait = self.run.wait(format!("the members are {right:?}"));
        while described(client.members().await?) != right {
            wait.again().await?;
        }
        Ok(())
    }
}

fn id_of(client: &LeaseClient) -> WorkerId {
    WorkerId {
        cluster: LeaseName::new("cluster", &client.cluster).expect("the client was opened with it"),
        name: client.worker.clone(),
    }
}
