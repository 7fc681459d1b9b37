//! What workers print, put together.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use divvy::Moment;
use divvy::manager::{SessionId, Version};
use divvy::store::Token;
use divvy_sim::{Happened, History};
use serde_json::Value;

/// What is known of one process.
#[derive(Debug, Default)]
pub(super) struct Member {
    /// What it has started and not stopped, and since when.
    pub(super) owned: BTreeMap<String, Moment>,
    pub(super) leads: bool,
    pub(super) is_ready: bool,
    /// Its process runs.
    pub(super) is_there: bool,
    began: Option<Moment>,
    claimed: Option<Moment>,
}

/// Everything that was said.
#[derive(Debug, Default)]
pub(super) struct Board {
    pub(super) history: History,
    pub(super) members: Vec<Member>,
    /// From looking for an id to having it, and on to knowing who leads.
    pub(super) claims: Vec<Duration>,
    pub(super) elections: Vec<Duration>,
    /// When the wait ended that the first placement waited for: a window, or
    /// the quarantine of a new store.
    window_closed: Option<Moment>,
    is_placed: bool,
}

impl Board {
    /// A process says a line.
    pub(super) fn hear(&mut self, number: usize, line: &Value) {
        let Some(at) = moment(&line["at_us"]) else {
            return;
        };
        if let Some(happened) = happened(line) {
            self.history.add(number, at, happened);
        }
        if line["event"] == "state_changed" && line["from"] == "scaling" && !self.is_placed {
            self.window_closed = Some(at);
        }
        let member = &mut self.members[number];
        let partition = || line["partition"].as_str().unwrap_or_default().to_owned();
        match line["event"].as_str().unwrap_or_default() {
            "started" if line["failed"] == false => {
                member.owned.insert(partition(), at);
            }
            "stopped" => {
                member.owned.remove(&partition());
            }
            "leadership_changed" => member.leads = line["is_leader"] == true,
            "adopted" => member.is_ready |= line["lifecycle"] != "cold_start",
            "committed" => {
                self.is_placed |= line["granted"].as_u64() > Some(0);
                if !self.is_placed {
                    self.window_closed = Some(at);
                }
            }
            "claimed" => {
                self.claims
                    .extend(member.began.take().map(|began| at.since(began)));
                member.claimed = Some(at);
            }
            "state_changed" if line["to"] == "claiming_id" => member.began = Some(at),
            "state_changed" if line["to"] != "election" => {
                let claimed = member.claimed.take();
                self.elections
                    .extend(claimed.map(|claimed| at.since(claimed)));
            }
            _ => {}
        }
    }

    /// A process was started, with the next number.
    pub(super) fn joined(&mut self) {
        self.members.push(Member {
            is_there: true,
            ..Member::default()
        });
    }

    /// A process is gone.
    pub(super) fn gone(&mut self, number: usize, at: Moment, in_order: bool) {
        self.history.add(number, at, Happened::Gone(in_order));
        self.members[number] = Member::default();
    }

    /// When the last of these was started by somebody after `since`; nothing
    /// while one is not.
    pub(super) fn all_started(&self, wanted: &BTreeSet<String>, since: Moment) -> Option<Moment> {
        let mut last = since;
        for name in wanted {
            let starts = self
                .members
                .iter()
                .filter_map(|member| member.owned.get(name));
            last = last.max(starts.copied().filter(|at| *at > since).min()?);
        }
        Some(last)
    }

    /// From the end of the window that the first placement waited for to the
    /// last start hook; nothing if there was no window.
    pub(super) fn first_placement(&self) -> Option<Duration> {
        let started = self.members.iter().flat_map(|member| member.owned.values());
        Some(started.max()?.since(self.window_closed?))
    }

    /// Whether so many partitions have exactly one owner each, and no other has
    /// any.
    pub(super) fn is_owned(&self, count: usize) -> bool {
        // It is looked at often, and this is cheap.
        let owned = self.members.iter().map(|member| member.owned.len());
        owned.sum::<usize>() == count && self.owned() == count
    }

    /// How many partitions have exactly one owner.
    fn owned(&self) -> usize {
        let mut owners: BTreeMap<&str, u32> = BTreeMap::new();
        for name in self.members.iter().flat_map(|member| member.owned.keys()) {
            *owners.entry(name).or_default() += 1;
        }
        owners.values().filter(|count| **count == 1).count()
    }
}

pub(super) fn moment(micros: &Value) -> Option<Moment> {
    let micros = micros.as_u64()?;
    Some(Moment::from_origin(Duration::from_micros(micros)))
}

fn happened(line: &Value) -> Option<Happened> {
    let partition = || line["partition"].as_str().map(str::to_owned);
    let session = || {
        let text = line["session"].as_str()?;
        u128::from_str_radix(text, 16).ok().map(SessionId)
    };
    Some(match line["event"].as_str()? {
        "assigned" => {
            let token = line["token"].as_str()?.parse().ok()?;
            Happened::StartCalled(partition()?, Token::new(token)?)
        }
        "started" => Happened::StartEnded(partition()?, line["failed"] == true),
        "revoked" => Happened::StopCalled(partition()?),
        "stopped" => Happened::StopEnded(partition()?),
        "deadline" => {
            let worker = line["worker"].as_str().map(str::to_owned);
            Happened::Deadline(worker.zip(session()), moment(&line["until_us"]))
        }
        "adopted" => {
            let version = Version {
                epoch: line["epoch"].as_u64()?,
                number: u32::try_from(line["version"].as_u64()?).ok()?,
            };
            Happened::Adopted(session(), version)
        }
        _ => return None,
    })
}
