//! Groups of partitions in lease mode: a name, a number of partitions, and how
//! many of them one worker may own.

use serde::{Deserialize, Serialize};

use crate::error::{Error, Invalid};
use crate::name;
use crate::partition::SEGMENT_BYTES_MAX;
use crate::store::LeaseName;

/// Most partitions of all groups together.
pub const PARTITIONS_MAX: u32 = 1_000_000;
/// Longest document of a group, in bytes.
pub const GROUP_BYTES_MAX: usize = 64 * 1024;
/// Most groups.
pub const GROUPS_MAX: usize = 10_000;

/// A group: the partitions 0 to `partitions` of it.
///
/// Its document in a store is JSON with the words of the layout that it is
/// shared in:
///
/// ```
/// use divvy_core::lease::Group;
///
/// let json = r#"{"name": "orders", "units": 64, "maxConsumersPerNode": 8}"#;
/// let orders = Group::from_json("orders", json)?;
/// assert_eq!((orders.partitions(), orders.max_per_worker()), (64, Some(8)));
/// assert_eq!(orders.to_json(), r#"{"name":"orders","units":64,"maxConsumersPerNode":8}"#);
/// # Ok::<(), divvy_core::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Group {
    name: LeaseName,
    partitions: u32,
    max_per_worker: Option<u32>,
}

/// The document of a group. Whoever writes it in Go without tags spells the
/// fields as Go does.
#[derive(Serialize, Deserialize)]
struct Document {
    #[serde(alias = "Name")]
    name: Option<String>,
    #[serde(alias = "Units")]
    units: i64,
    #[serde(
        default,
        rename = "maxConsumersPerNode",
        alias = "MaxConsumersPerNode",
        skip_serializing_if = "Option::is_none"
    )]
    max_per_worker: Option<i64>,
}

impl Group {
    /// The group `name` of 1..=[`PARTITIONS_MAX`] partitions.
    pub fn new(name: &str, partitions: u32) -> Result<Self, Invalid> {
        if !(1..=PARTITIONS_MAX).contains(&partitions) {
            let rule = format!("must be in 1..={PARTITIONS_MAX}");
            return Err(Invalid::new("partitions of a group", partitions, rule));
        }
        // It is the first segment of its partitions' names.
        name::check("group", name, SEGMENT_BYTES_MAX)?;
        Ok(Self {
            name: LeaseName::new("group", name)?,
            partitions,
            max_per_worker: None,
        })
    }

    /// The same, of which one worker owns at most so many; 0 is no limit.
    pub fn with_max_per_worker(self, most: u32) -> Self {
        Self {
            max_per_worker: (most > 0).then_some(most),
            ..self
        }
    }

    /// Its name.
    pub const fn name(&self) -> &LeaseName {
        &self.name
    }

    /// How many partitions it has: 0 where its document stops it.
    pub const fn partitions(&self) -> u32 {
        self.partitions
    }

    /// How many of them one worker may own, if that is limited.
    pub const fn max_per_worker(&self) -> Option<u32> {
        self.max_per_worker
    }

    /// Reads the document that a store has under `name`, which need not repeat
    /// that name. One of 0 units stops the group. Unknown fields are ignored:
    /// others may share the store.
    pub fn from_json(name: &str, json: &str) -> Result<Self, Error> {
        if json.len() > GROUP_BYTES_MAX {
            let rule = format!("must have at most {GROUP_BYTES_MAX} bytes");
            return Err(Invalid::new("group", json, rule).into());
        }
        // A list would be taken for the fields in their order.
        if json.trim_start().starts_with('[') {
            let rule = "must be a JSON object, such as {\"name\": \"orders\", \"units\": 64}";
            return Err(Invalid::new("group", json, rule).into());
        }
        let document: Document =
            serde_json::from_str(json).map_err(|error| Error::document("group", error))?;
        // Go writes an empty name where none was set.
        if let Some(other) = document
            .name
            .filter(|other| !["", name].contains(&&**other))
        {
            let rule = format!("must be \"{name}\", under which it is stored");
            return Err(Invalid::new("name", other, rule).into());
        }
        let units = u32::try_from(document.units).ok();
        let Some(units) = units.filter(|units| *units <= PARTITIONS_MAX) else {
            let rule = format!("must be in 0..={PARTITIONS_MAX}");
            return Err(Invalid::new("units", document.units, rule).into());
        };
        let most = document.max_per_worker.unwrap_or(0);
        let Ok(most) = u32::try_from(most) else {
            let rule = format!("must be in 0..={}", u32::MAX);
            return Err(Invalid::new("maxConsumersPerNode", most, rule).into());
        };
        let group = Self::new(name, units.max(1))?.with_max_per_worker(most);
        Ok(Self {
            partitions: units,
            ..group
        })
    }

    /// Its document.
    pub fn to_json(&self) -> String {
        let document = Document {
            name: Some(self.name.to_string()),
            units: self.partitions.into(),
            max_per_worker: self.max_per_worker.map(i64::from),
        };
        serde_json::to_string(&document).expect("strings and numbers have a JSON form")
    }

    /// Whether groups can be used together: names differ, and there are not
    /// too many partitions.
    pub fn check_all(groups: &[Self]) -> Result<(), Invalid> {
        if groups.len() > GROUPS_MAX {
            let rule = format!("must be at most {GROUPS_MAX}");
            return Err(Invalid::new("groups", groups.len(), rule));
        }
        let mut names: Vec<&LeaseName> = groups.iter().map(Self::name).collect();
        names.sort_unstable();
        if let Some(twice) = names.windows(2).find(|pair| pair[0] == pair[1]) {
            return Err(Invalid::new("group", twice[0], "must be named once"));
        }
        let total: u64 = groups.iter().map(|group| u64::from(group.partitions)).sum();
        match total > u64::from(PARTITIONS_MAX) {
            false => Ok(()),
            true => {
                let rule = format!("must be at most {PARTITIONS_MAX}");
                Err(Invalid::new("partitions of all groups", total, rule))
            }
        }
    }
}
