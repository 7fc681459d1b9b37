//! A cluster in lease mode as somebody sees it who takes no part.

use super::placement::{self, Standing};
use super::roster::Roster;
use super::units::Units;
use super::wishes::{News, Wishes};
use crate::control::Control;
use crate::lease::group::Group;
use crate::lease::hashes::Hashes;
use crate::moves::Considered;
use crate::store::{self, LeaseKey, LeaseName};

/// Who should have what, by what live workers say of themselves and operators
/// wish: what every one of them comes to.
///
/// ```
/// use divvy_core::lease::{Group, Outlook};
/// use divvy_core::store::{LeaseKey, LeaseName, Member};
///
/// let members = ["a", "b"].map(|name| Member { name: name.into(), info: None });
/// let cluster = LeaseName::new("cluster", "default")?;
/// let groups = vec![Group::new("demo", 8)?];
/// let outlook = Outlook::new(&cluster, &members, None, 1.0, groups);
///
/// let key = LeaseKey::new("demo", 3)?;
/// let ranking = outlook.ranking(&key, None);
/// assert_eq!(outlook.desired(&key), Some(ranking[0].worker.as_str()));
/// # Ok::<(), divvy_core::Invalid>(())
/// ```
#[derive(Debug, Clone)]
pub struct Outlook {
    roster: Roster,
    wishes: Wishes,
    groups: Vec<Group>,
    units: Units,
    problems: Vec<String>,
}

impl Outlook {
    /// The cluster of these workers, which serve these groups. Workers that
    /// say nothing of themselves have the default weight.
    pub fn new(
        cluster: &LeaseName,
        members: &[store::Member],
        wishes: Option<&str>,
        default_weight: f64,
        groups: Vec<Group>,
    ) -> Self {
        let hashes = Hashes::default();
        Self::shared(cluster, members, wishes, default_weight, groups, &hashes)
    }

    /// The same, with hashes that need not be calculated any more.
    pub fn shared(
        cluster: &LeaseName,
        members: &[store::Member],
        wishes: Option<&str>,
        default_weight: f64,
        groups: Vec<Group>,
        hashes: &Hashes,
    ) -> Self {
        let mut read = Wishes::default();
        let news = read.read(wishes);
        let mut roster = Roster::default();
        let mut problems = roster.look(cluster, default_weight, members, &read);
        if let News::Unreadable(why) = news {
            problems.push(format!(
                "what operators wish, divvy:wishes:{cluster} in Redis, is not readable: {why}"
            ));
        }
        let mut units = Units::default();
        units.serve(&groups);
        placement::place_all(&mut units, &groups, &roster, (&read, hashes), (true, true));
        Self {
            roster,
            wishes: read,
            groups,
            units,
            problems,
        }
    }

    /// The worker that should have a partition.
    pub fn desired(&self, key: &LeaseKey) -> Option<&str> {
        let unit = self.units.get(self.units.find(key)?);
        let desired = unit.place.desired?;
        Some(&self.roster.peers()[desired as usize].name)
    }

    /// Whether nobody should have a partition because everyone who may has as
    /// many as it may.
    pub fn is_capped(&self, key: &LeaseKey) -> bool {
        let unit = self.units.find(key).map(|number| self.units.get(number));
        unit.is_some_and(|unit| unit.place.is_capped)
    }

    /// How all live workers rank for a partition, the best first, and why those
    /// that come before `owner` do not have it.
    pub fn ranking(&self, key: &LeaseKey, owner: Option<&str>) -> Vec<Considered> {
        let group = self.groups.iter().find(|group| *group.name() == key.group);
        group.map_or_else(Vec::new, |group| {
            let unit = self.units.find(key).map(|number| self.units.get(number));
            let mut place = unit.map(|unit| unit.place).unwrap_or_default();
            place.is_capped &= owner.is_none();
            let standing = Standing {
                taker: owner,
                place,
                ..Standing::default()
            };
            let seen = (&self.roster, &self.wishes);
            placement::explain(group, key.number, seen, &standing)
        })
    }

    /// What operators wish.
    pub const fn control(&self) -> &Control {
        self.wishes.control()
    }

    /// What could not be read.
    pub fn problems(&self) -> &[String] {
        &self.problems
    }
}
