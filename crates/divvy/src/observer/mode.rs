//! Which mode a cluster is in.

use std::fmt;
use std::str::FromStr;

use divvy_core::Invalid;
use divvy_core::leader::Keys;
use divvy_core::store::{StoreError, StoreErrorKind};
use serde::Serialize;

use super::Observer;
use crate::store::clusters::cluster_names;
use crate::store::{
    KeyValue, Leases, StoreKind, StoreSettings, StoreUrl, open_key_value, open_leases,
};

/// Clusters that a message names.
const NAMES_MAX: usize = 10;

/// How members of a cluster coordinate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// One of them leads.
    Leader,
    /// By one lease for each partition.
    Lease,
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Leader => "leader",
            Self::Lease => "lease",
        })
    }
}

impl FromStr for Mode {
    type Err = Invalid;

    fn from_str(text: &str) -> Result<Self, Invalid> {
        match text {
            "leader" => Ok(Self::Leader),
            "lease" => Ok(Self::Lease),
            _ => Err(Invalid::new("mode", text, "must be leader or lease")),
        }
    }
}

pub(super) async fn open(
    url: &StoreUrl,
    settings: &StoreSettings,
    mode: Option<Mode>,
) -> Result<Observer, StoreError> {
    let settings = StoreSettings {
        create: false,
        ..settings.clone()
    };
    if url.kind() == StoreKind::Memory {
        let rule = "lives and ends with one process: from outside there is nothing to see";
        return Err(Invalid::new("store", url, rule).into());
    }
    match mode {
        Some(Mode::Leader) => Ok(Observer::of_leader(open_key_value(url, &settings).await?)),
        Some(Mode::Lease) => Ok(Observer::of_leases(open_leases(url, &settings).await?)),
        None => find(url, &settings).await,
    }
}

/// The cluster in the mode that it is found in.
async fn find(url: &StoreUrl, settings: &StoreSettings) -> Result<Observer, StoreError> {
    // A user may have the rights of one mode only, and some stores have no other.
    let records = open_key_value(url, settings).await;
    if let Err(error) = &records
        && error.kind() == StoreErrorKind::Unavailable
    {
        // It is the same server, which was waited for long enough.
        return Err(error.clone());
    }
    let leases = match url.kind() {
        StoreKind::Nats => Err(StoreError::unfit("it has no leases")),
        _ => open_leases(url, settings).await,
    };
    let is_led = match &records {
        Ok(records) => is_led(&**records).await?,
        Err(_) => false,
    };
    let is_leased = match &leases {
        Ok(leases) => is_leased(&**leases).await?,
        Err(_) => false,
    };
    let cluster = &settings.cluster;
    match (records, leases) {
        (Ok(_), Ok(_)) if is_led && is_leased => {
            let rule = "names two clusters here, one in leader mode and one in lease mode: \
                        say which is meant (--mode leader or lease)";
            Err(Invalid::new("cluster", cluster, rule).into())
        }
        (Ok(records), _) if is_led => Ok(Observer::of_leader(records)),
        (_, Ok(leases)) if is_leased => Ok(Observer::of_leases(leases)),
        (Err(error), Err(_)) => Err(error),
        (records, leases) => {
            let records = records.map(|store| store.describe());
            let place = records.or_else(|_error| leases.map(|store| store.describe()))?;
            let others = others(url, settings).await;
            Err(StoreError::unfit(format_args!(
                "there is no cluster '{cluster}' in {place}: no worker is there, and \
                 if one was, the store has lost its data since{others}"
            )))
        }
    }
}

/// Which clusters there are instead, as the end of a sentence.
async fn others(url: &StoreUrl, settings: &StoreSettings) -> String {
    let names: Vec<String> = cluster_names(url, settings).await.into_iter().collect();
    match names.len() {
        0 => String::new(),
        1 => format!("; there is '{}' (--cluster)", names[0]),
        2..=NAMES_MAX => format!("; there are '{}' (--cluster)", names.join("', '")),
        count => {
            let some = names[..NAMES_MAX].join("', '");
            format!("; there are {count}, such as '{some}' (--cluster)")
        }
    }
}

async fn is_led(records: &dyn KeyValue) -> Result<bool, StoreError> {
    let keys = Keys::default();
    let has_root = records.get(&keys.root).await?.is_some();
    Ok(has_root || !records.list(&keys.workers).await?.is_empty())
}

async fn is_leased(leases: &dyn Leases) -> Result<bool, StoreError> {
    let has_wishes = leases.wishes().await?.is_some();
    let has_moves = match leases.moves().await {
        // Somebody else has written over what a cluster had there.
        Err(error) if error.kind() == StoreErrorKind::Unfit => true,
        moves => !moves?.is_empty(),
    };
    Ok(has_wishes || has_moves || !leases.members().await?.is_empty())
}
