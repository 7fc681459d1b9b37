//! A lease store with one defect at a time.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use async_trait::async_trait;
use divvy::store::conformance::{Forgetting, Interruption, LeaseSubject};
use divvy::store::{
    Acquired, BATCH_MAX, Beaten, Claim, Connection, ConnectionReport, GroupDocument, Heartbeat,
    Holder, Incarnation, LeaseKey, LeaseName, LeaseNotice, LeaseNotices, Leases, Member, Nonce,
    NoticeBoard, SessionStart, Store, StoreError, TTL_MAX, TTL_MIN, Tenure, Token, WorkerId,
    check_moves,
};
use divvy::{CONTROL_BYTES_MAX, Invalid, Moment};
use divvy_core::store::{LeaseTable, StoreTime};
use tokio::sync::watch;
use tokio::time::Instant;

use super::interruption::report;
use super::lease_defects::LeaseDefect as Defect;

pub(super) const FOREVER: Duration = Duration::from_hours(9);

pub(crate) struct CarelessLeases {
    pub(super) server: Arc<Server>,
}

#[derive(Debug)]
pub(super) struct Server {
    pub(super) defect: Defect,
    state: Mutex<State>,
    notices: Mutex<NoticeBoard>,
    away: watch::Sender<bool>,
    origin: Instant,
}

#[derive(Debug, Default)]
pub(super) struct State {
    pub(super) table: LeaseTable,
    pub(super) granted: Vec<(WorkerId, Claim)>,
    pub(super) tokens: BTreeMap<LeaseKey, Token>,
    infos: BTreeMap<WorkerId, String>,
    groups: BTreeMap<String, String>,
    ghosts: Vec<(String, Member)>,
    clients: u64,
    pub(super) quarantines: u64,
}

impl Client {
    /// Whose wishes and moves are meant.
    fn notes_of(&self) -> LeaseName {
        match self.server.defect {
            Defect::NotesAreOfAllClusters => {
                LeaseName::new("cluster", "all").expect("a short name is one")
            }
            _ => self.cluster.clone(),
        }
    }
}

impl CarelessLeases {
    pub(crate) fn new(defect: Defect) -> Self {
        let server = Server {
            defect,
            state: Mutex::default(),
            notices: Mutex::default(),
            away: watch::Sender::new(false),
            origin: Instant::now(),
        };
        Self {
            server: Arc::new(server),
        }
    }

    pub(super) fn client(&self, cluster: &str, aside: bool) -> Arc<Client> {
        let connection = ConnectionReport::connected();
        if !aside && self.server.defect != Defect::ReconnectIsNotTold {
            report(&self.server.away, &connection);
        }
        let mut state = self.server.state();
        state.clients += 1;
        Arc::new(Client {
            server: Arc::clone(&self.server),
            number: state.clients,
            cluster: LeaseName::new("cluster", cluster).unwrap(),
            aside,
            connection,
        })
    }
}

#[async_trait]
impl LeaseSubject for CarelessLeases {
    async fn open(&self, cluster: &str) -> Result<Arc<dyn Leases>, StoreError> {
        Ok(self.client(cluster, false))
    }

    fn interruption(&self) -> Option<&dyn Interruption> {
        Some(self)
    }

    fn forgetting(&self) -> Option<&dyn Forgetting> {
        Some(self)
    }

    async fn open_aside(&self, cluster: &str) -> Result<Option<Arc<dyn Leases>>, StoreError> {
        Ok(Some(self.client(cluster, true)))
    }
}

#[async_trait]
impl Interruption for CarelessLeases {
    async fn interrupt(&self) {
        self.server.away.send_replace(true);
    }

    async fn resume(&self) {
        match self.server.defect {
            Defect::InterruptionLosesLeases => {
                let mut state = self.server.state();
                let last: Vec<_> = state.granted.iter().rev().take(5).cloned().collect();
                for (id, claim) in last {
                    let _tenure = state.table.release(self.server.time(), &id, &claim);
                }
            }
            Defect::NoticesEndWithTheConnection => {
                *self.server.notices.lock().unwrap() = NoticeBoard::default();
            }
            _ => {}
        }
        self.server.away.send_replace(false);
    }
}

impl Server {
    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    pub(super) fn time(&self) -> StoreTime {
        let unix = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
        StoreTime {
            now: Moment::from_origin(self.origin.elapsed()),
            unix_ms: match self.defect {
                Defect::TokensBeginAtOne => 0,
                _ => unix.as_millis() as u64,
            },
        }
    }

    pub(super) fn tell(&self, notice: LeaseNotice) {
        self.notices.lock().unwrap().post(notice);
    }
}

#[derive(Debug)]
pub(super) struct Client {
    pub(super) server: Arc<Server>,
    number: u64,
    cluster: LeaseName,
    aside: bool,
    connection: ConnectionReport,
}

impl Client {
    /// Fails while the store is away; others come in between.
    pub(super) async fn reach(&self, writes: bool) -> Result<(), StoreError> {
        tokio::task::yield_now().await;
        if self.aside || !*self.server.away.borrow() {
            return Ok(());
        }
        match self.server.defect {
            Defect::HangsWithoutStore => std::future::pending().await,
            Defect::ReadWithoutStoreIsUnknown if !writes => Err(StoreError::unknown("away")),
            Defect::WriteWithoutStoreIsUnfit if writes => Err(StoreError::unfit("away")),
            _ => Err(StoreError::unavailable("away")),
        }
    }

    pub(super) fn id(&self, worker: &LeaseName) -> WorkerId {
        WorkerId {
            cluster: self.cluster.clone(),
            name: worker.clone(),
        }
    }

    pub(super) fn check_ttl(&self, ttl: Duration) -> Result<(), StoreError> {
        let bounded = (TTL_MIN..=TTL_MAX).contains(&ttl);
        match bounded || self.server.defect == Defect::TimesAreUnbounded {
            true => Ok(()),
            false => Err(Invalid::new("ttl", format!("{ttl:?}"), "is out of bounds").into()),
        }
    }

    pub(super) fn check_batch(&self, count: usize) -> Result<(), StoreError> {
        match count <= BATCH_MAX || self.server.defect == Defect::BatchIsUnbounded {
            true => Ok(()),
            false => Err(Invalid::new("batch", count, "is too large").into()),
        }
    }

    /// The key that the store takes this one for.
    pub(super) fn key(&self, key: &LeaseKey) -> LeaseKey {
        let group = key.group.as_str();
        match self.server.defect {
            Defect::NamesIgnoreCase => LeaseKey::new(&group.to_lowercase(), key.number).unwrap(),
            Defect::NumbersAreCut => LeaseKey::new(group, key.number % 10).unwrap(),
            _ => key.clone(),
        }
    }

    fn mark_key(&self, key: &LeaseKey) -> LeaseKey {
        match self.server.defect {
            Defect::MarkIsOfOneCluster => LeaseKey::new(self.cluster.as_str(), key.number).unwrap(),
            Defect::MarksCoverTheGroup => LeaseKey::new(key.group.as_str(), 0).unwrap(),
            _ => key.clone(),
        }
    }

    pub(super) fn answers<T>(&self, mut answers: Vec<T>) -> Vec<T> {
        match self.server.defect {
            Defect::BatchIsReversed => answers.reverse(),
            Defect::BatchIsCut => answers.truncate(1000),
            _ => {}
        }
        answers
    }
}

#[async_trait]
impl Store for Client {
    fn describe(&self) -> String {
        format!("careless: {:?}", self.server.defect)
    }

    async fn incarnation(&self) -> Result<Incarnation, StoreError> {
        Ok(match self.server.defect {
            Defect::IncarnationOfEachClient => Incarnation::new(self.number.to_string()),
            _ => Incarnation::new("one"),
        })
    }

    fn connection(&self) -> watch::Receiver<Connection> {
        self.connection.subscribe()
    }

    fn connects(&self) -> u64 {
        self.connection().borrow().connects
    }
}

#[async_trait]
impl Leases for Client {
    fn cluster(&self) -> &str {
        self.cluster.as_str()
    }

    async fn acquire(
        &self,
        worker: &LeaseName,
        claims: &[Claim],
        ttl: Duration,
    ) -> Result<Vec<Acquired>, StoreError> {
        self.take(worker, claims, ttl).await
    }

    async fn renew(
        &self,
        worker: &LeaseName,
        claims: &[Claim],
        ttl: Duration,
    ) -> Result<Vec<Tenure>, StoreError> {
        self.keep(worker, claims, ttl).await
    }

    async fn release(
        &self,
        worker: &LeaseName,
        claims: &[Claim],
    ) -> Result<Vec<Tenure>, StoreError> {
        self.give_back(worker, claims).await
    }

    async fn holders(&self, keys: &[LeaseKey]) -> Result<Vec<Option<Holder>>, StoreError> {
        self.look(keys).await
    }

    async fn open_session(
        &self,
        worker: &LeaseName,
        session: Nonce,
        ttl: Duration,
    ) -> Result<SessionStart, StoreError> {
        self.check_ttl(ttl)?;
        self.reach(true).await?;
        let (time, defect) = (self.server.time(), self.server.defect);
        let mut id = self.id(worker);
        if defect == Defect::SessionsAreOfAllClusters {
            id.cluster = LeaseName::new("cluster", "all").unwrap();
        }
        let mut free = false;
        if defect == Defect::SessionOpensTwiceAtOnce {
            let mut probe = self.server.state().table.clone();
            free = probe.open_session(time, &id, session, ttl) == SessionStart::Opened;
            tokio::task::yield_now().await;
        }
        let mut state = self.server.state();
        let ttl = match defect {
            Defect::SessionNeverExpires => FOREVER,
            Defect::SessionExpiresEarly => ttl.mul_f64(0.9),
            _ => ttl,
        };
        // To a store that cannot tell its own, every nonce is another one.
        let known = match defect {
            Defect::SessionIsForeignToItself => {
                state
                    .table
                    .clone()
                    .beat(time, &id, session, "{}", (ttl, ttl))
            }
            _ => Tenure::Over,
        };
        if known == Tenure::Current {
            return Ok(SessionStart::Taken(ttl));
        }
        let start = state.table.open_session(time, &id, session, ttl);
        let stolen = defect == Defect::SessionIsStolen
            || (defect == Defect::SessionOpensTwiceAtOnce && free);
        if defect == Defect::MembersWithoutHeartbeat && start == SessionStart::Opened {
            let _tenure = state.table.beat(time, &id, session, "{}", (ttl, ttl));
        }
        match stolen {
            true => Ok(SessionStart::Opened),
            false => Ok(start),
        }
    }

    async fn beat(&self, worker: &LeaseName, heartbeat: &Heartbeat) -> Result<Beaten, StoreError> {
        let (session, session_ttl) = (heartbeat.session, heartbeat.session_ttl);
        self.check_ttl(heartbeat.heartbeat_ttl)?;
        self.check_ttl(session_ttl)?;
        self.reach(true).await?;
        let (mut state, time) = (self.server.state(), self.server.time());
        let defect = self.server.defect;
        let mut info = heartbeat.info.clone();
        if defect == Defect::DescriptionLosesGroups {
            info.groups = None;
        }
        let mut json = match info.to_json() {
            Ok(json) => json,
            Err(_) if defect == Defect::DescriptionIsNotChecked => "{}".to_owned(),
            Err(error) => {
                return Err(Invalid::new("worker info", "", error.to_string()).into());
            }
        };
        let id = self.id(worker);
        if defect == Defect::FirstDescriptionStays {
            json = state.infos.entry(id.clone()).or_insert(json).clone();
        }
        let heartbeat_ttl = match defect {
            Defect::MemberNeverExpires => FOREVER,
            _ => heartbeat.heartbeat_ttl,
        };
        let before = state.table.members(time, &self.cluster);
        let mut tenure = match defect {
            Defect::BeatDoesNotKeepTheSession => {
                let mut probe = state.table.clone();
                probe.beat(time, &id, session, &json, (heartbeat_ttl, session_ttl))
            }
            _ => {
                let spans = (heartbeat_ttl, session_ttl);
                state.table.beat(time, &id, session, &json, spans)
            }
        };
        if defect == Defect::BeatIgnoresTheSession {
            tenure = Tenure::Current;
        }
        let after = state.table.members(time, &self.cluster);
        let joined = after.len() > before.len();
        let told = match defect {
            Defect::JoiningIsNotTold => !joined,
            Defect::NewDescriptionsAreNotTold => joined,
            _ => true,
        };
        if after != before && told {
            self.server.tell(LeaseNotice::Members);
        }
        drop(state);
        let quarantine = self.quarantine(&heartbeat.report);
        Ok(Beaten { tenure, quarantine })
    }

    async fn leave(&self, worker: &LeaseName, session: Nonce) -> Result<Tenure, StoreError> {
        self.reach(true).await?;
        let (mut state, time) = (self.server.state(), self.server.time());
        let (defect, id) = (self.server.defect, self.id(worker));
        let members = state.table.members(time, &self.cluster);
        let tenure = state.table.leave(time, &id, session);
        if defect == Defect::LeavingKeepsTheMember && tenure == Tenure::Current {
            let own = members
                .into_iter()
                .filter(|member| member.name == worker.as_str());
            let cluster = self.cluster.to_string();
            state
                .ghosts
                .extend(own.map(|member| (cluster.clone(), member)));
        }
        if tenure == Tenure::Current && defect != Defect::LeavingIsNotTold {
            self.server.tell(LeaseNotice::Members);
        }
        match defect {
            Defect::LeavingIgnoresTheSession => Ok(Tenure::Current),
            _ => Ok(tenure),
        }
    }

    async fn members(&self) -> Result<Vec<Member>, StoreError> {
        self.reach(false).await?;
        let (state, time) = (self.server.state(), self.server.time());
        let mut members = state.table.members(time, &self.cluster);
        let own = self.cluster.as_str();
        let near = match self.server.defect {
            Defect::MembersOfAllClusters => vec![own.trim_end_matches(['2', '*']).to_owned()],
            Defect::MembersByPrefixOfTheCluster => vec![format!("{own}2"), format!("{own}*")],
            _ => Vec::new(),
        };
        for cluster in near {
            let cluster = LeaseName::new("cluster", &cluster).unwrap();
            members.extend(state.table.members(time, &cluster));
        }
        let ghosts = state.ghosts.iter().filter(|(cluster, _)| cluster == own);
        members.extend(ghosts.map(|(_, ghost)| ghost.clone()));
        members.sort_by(|a, b| a.name.cmp(&b.name));
        members.dedup_by(|a, b| a.name == b.name);
        if self.server.defect == Defect::MembersAreUnsorted {
            members.reverse();
        }
        Ok(members)
    }

    async fn mark_moved(&self, keys: &[LeaseKey], cooldown: Duration) -> Result<(), StoreError> {
        self.check_batch(keys.len())?;
        self.check_ttl(cooldown)?;
        self.reach(true).await?;
        let (mut state, time) = (self.server.state(), self.server.time());
        for key in keys.iter().map(|key| self.mark_key(key)) {
            let is_marked = state.table.is_cooling(time, &key);
            match self.server.defect {
                Defect::MarkNeverExpires => state.table.mark_moved(time, &key, FOREVER),
                Defect::MarkOnlyLengthens if is_marked && cooldown < Duration::from_secs(1) => {}
                _ => state.table.mark_moved(time, &key, cooldown),
            }
        }
        Ok(())
    }

    async fn cooling(&self, keys: &[LeaseKey]) -> Result<Vec<bool>, StoreError> {
        self.check_batch(keys.len())?;
        self.reach(false).await?;
        let (state, time) = (self.server.state(), self.server.time());
        let cooling = |key: &LeaseKey| state.table.is_cooling(time, &self.mark_key(key));
        Ok(self.answers(keys.iter().map(cooling).collect()))
    }

    async fn groups(&self) -> Result<Vec<GroupDocument>, StoreError> {
        self.reach(false).await?;
        let state = self.server.state();
        let own = format!("{}/", self.cluster);
        let each = state.groups.iter().filter_map(|(name, json)| {
            let name = match self.server.defect {
                Defect::GroupsAreOfOneCluster => name.strip_prefix(&own)?,
                _ => name.as_str(),
            };
            Some(GroupDocument {
                name: name.to_owned(),
                json: Some(json.clone()),
            })
        });
        Ok(each.collect())
    }

    async fn set_group(&self, name: &LeaseName, json: &str) -> Result<(), StoreError> {
        let defect = self.server.defect;
        if json.len() > 64 * 1024 && defect != Defect::GroupDocumentIsUnbounded {
            return Err(Invalid::new("group document bytes", json.len(), "is too large").into());
        }
        self.reach(true).await?;
        let key = match defect {
            Defect::GroupsAreOfOneCluster => format!("{}/{name}", self.cluster),
            _ => name.to_string(),
        };
        let json = match defect {
            Defect::GroupDocumentIsTrimmed => json.trim(),
            _ => json,
        };
        let mut state = self.server.state();
        match defect {
            Defect::GroupIsNotReplaced if state.groups.contains_key(&key) => {}
            _ => drop(state.groups.insert(key, json.into())),
        }
        if defect != Defect::GroupsAreNotTold {
            self.server.tell(LeaseNotice::Group(name.to_string()));
        }
        Ok(())
    }

    async fn remove_group(&self, name: &LeaseName) -> Result<bool, StoreError> {
        self.reach(true).await?;
        let removed = self.server.state().groups.remove(name.as_str()).is_some();
        if self.server.defect != Defect::RemovedGroupsAreNotTold {
            self.server.tell(LeaseNotice::Group(name.to_string()));
        }
        Ok(removed || self.server.defect == Defect::GroupIsAlwaysRemoved)
    }

    async fn wishes(&self) -> Result<Option<String>, StoreError> {
        self.reach(false).await?;
        Ok(self.server.state().table.wishes(&self.notes_of()))
    }

    async fn set_wishes(&self, before: Option<&str>, wishes: &str) -> Result<bool, StoreError> {
        let defect = self.server.defect;
        let fits = (1..=CONTROL_BYTES_MAX).contains(&wishes.len());
        if !fits && defect != Defect::WishesAreUnbounded {
            return Err(Invalid::new("wishes bytes", wishes.len(), "is no size").into());
        }
        self.reach(true).await?;
        let table = &mut self.server.state().table;
        let cluster = self.notes_of();
        let found = table.wishes(&cluster);
        let before = match defect {
            Defect::WishesAreOverwritten => found.as_deref(),
            _ => before,
        };
        let is_written = table.set_wishes(&cluster, before, wishes);
        if is_written && defect != Defect::WishesAreNotTold {
            self.server.tell(LeaseNotice::Members);
        }
        Ok(is_written)
    }

    async fn log_moves(&self, moves: &[String]) -> Result<(), StoreError> {
        let defect = self.server.defect;
        if defect != Defect::MovesAreUnbounded {
            check_moves(moves)?;
        }
        self.reach(true).await?;
        let mut moves = moves.to_vec();
        if defect == Defect::MovesAreReversed {
            moves.reverse();
        }
        self.server
            .state()
            .table
            .log_moves(&self.notes_of(), &moves);
        Ok(())
    }

    async fn moves(&self) -> Result<Vec<String>, StoreError> {
        self.reach(false).await?;
        Ok(self.server.state().table.moves(&self.notes_of()))
    }

    async fn notices(&self) -> Result<LeaseNotices, StoreError> {
        self.reach(false).await?;
        Ok(self.server.notices.lock().unwrap().subscribe())
    }
}
