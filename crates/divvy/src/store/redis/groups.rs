//! The configuration of groups.

use divvy_core::store::{GroupDocument, LeaseName, StoreError};

use super::link::Call;
use super::script::{self, Inputs};
use super::{layout, reply, set};
use crate::store::bounds::readable_group;

/// Documents of one script call, for they can be long.
const CALL_GROUPS: usize = 50;

/// All groups, in order of their names. What is too long to be ours comes cut,
/// one byte over the bound, and so is known for it.
pub(super) async fn read(call: &Call) -> Result<Vec<GroupDocument>, StoreError> {
    let names: Vec<_> = set::members(call, layout::GROUPS, "")
        .await?
        .into_iter()
        .collect();
    let with_key = |inputs: Inputs, name: &String| inputs.key(layout::group(name));
    let chunks = names.chunks(CALL_GROUPS);
    let inputs: Vec<_> = chunks
        .map(|some| some.iter().fold(Inputs::new(), with_key))
        .collect();
    let mut documents = Vec::with_capacity(names.len());
    for reply in script::GROUPS.run_all(call, &inputs).await? {
        documents.extend(reply::array(reply).ok_or_else(|| reply::unexpected("a script"))?);
    }
    if documents.len() != names.len() {
        return Err(reply::unexpected("a script"));
    }
    let found = names.into_iter().zip(documents);
    Ok(found
        .filter_map(|(name, document)| readable_group(name, reply::text(&document)))
        .collect())
}

pub(super) async fn set(call: &Call, name: &LeaseName, json: &str) -> Result<(), StoreError> {
    let inputs = of(name).argument(json).argument(layout::GROUP_CHANNEL);
    script::SET_GROUP.run(call, inputs).await?;
    Ok(())
}

pub(super) async fn remove(call: &Call, name: &LeaseName) -> Result<bool, StoreError> {
    let inputs = of(name).argument(layout::GROUP_CHANNEL);
    let removed = script::REMOVE_GROUP.run(call, inputs).await?;
    let removed = reply::integer(&removed).ok_or_else(|| reply::unexpected("a script"))?;
    Ok(removed > 0)
}

fn of(name: &LeaseName) -> Inputs {
    Inputs::new()
        .key(layout::group(name.as_str()))
        .key(layout::GROUPS)
        .argument(name.as_str())
}
