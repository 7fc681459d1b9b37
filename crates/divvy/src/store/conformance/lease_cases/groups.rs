//! Groups and their documents.

use std::collections::BTreeMap;

use divvy_core::store::{GroupDocument, LEASE_NAME_BYTES_MAX, LeaseName};

use super::super::lease_client::LeaseClient;
use super::super::options::Options;
use super::super::report::Failure;
use super::super::run::Run;
use super::super::subject::LeaseSubject;

/// Groups are set, replaced and removed for all clusters, and listed in order
/// of their names, however those look.
pub async fn groups_are_set_replaced_and_removed(
    subject: &dyn LeaseSubject,
    options: &Options,
) -> Result<(), Failure> {
    let run = Run::new("groups_are_set_replaced_and_removed", options);
    let one = LeaseClient::open(&run, subject, "c", "one").await?;
    let far = LeaseClient::open(&run, subject, "far", "far").await?;
    let mut names = [
        "zeta", "alpha", "*", "a b", "é", "e\u{301}", "Zeta", "a.b", "a=b", "'", "\\",
    ]
    .map(|name| run.name(name))
    .to_vec();
    let longest = LEASE_NAME_BYTES_MAX - run.name("").len();
    names.push(run.name(&"n".repeat(longest)));
    let mut expected = BTreeMap::new();
    for (number, name) in names.iter().enumerate() {
        let json = format!("{{\"units\": {number}}}");
        one.set_group(&group(&run, name)?, &json).await?;
        expected.insert(name.clone(), json);
    }
    lists(&one, &expected).await?;
    lists(&far, &expected).await?;
    let replaced = group(&run, &names[2])?;
    far.set_group(&replaced, "{\"units\": 99}").await?;
    expected.insert(names[2].clone(), "{\"units\": 99}".to_owned());
    lists(&one, &expected).await?;
    for name in &names[3..] {
        let name = group(&run, name)?;
        let removed = one.remove_group(&name).await?;
        let again = far.remove_group(&name).await?;
        run.check(removed && !again, || {
            format!("removing {name} twice gave {removed} and {again}")
        })?;
        expected.remove(name.as_str());
    }
    lists(&far, &expected).await?;
    let never = group(&run, &run.name("never"))?;
    let removed = one.remove_group(&never).await?;
    run.check(!removed, || {
        "a group that never was, was removed".to_owned()
    })
}

/// Documents come back as they were written, up to their bound; beyond it they
/// are refused, and the one before stays.
pub async fn group_documents_come_back_whole(
    subject: &dyn LeaseSubject,
    options: &Options,
) -> Result<(), Failure> {
    let run = Run::new("group_documents_come_back_whole", options);
    let one = LeaseClient::open(&run, subject, "c", "one").await?;
    let two = LeaseClient::open(&run, subject, "c", "two").await?;
    let name = run.name("g");
    let group = group(&run, &name)?;
    let largest = format!("\"{}\"", "x".repeat(64 * 1024 - 2));
    let documents = [
        "{}",
        "not JSON at all",
        "{\"units\": 5, \"name\": \"\u{1F980} é \\u0000\"}\n",
        "  [1, 2.50, null] ",
        "\"%d $1 * '; --\"",
        &largest,
    ];
    for json in documents {
        one.set_group(&group, json).await?;
        let expected = BTreeMap::from([(name.clone(), json.to_owned())]);
        lists(&two, &expected).await?;
    }
    let larger = format!("{largest} ");
    let setting = one.store.set_group(&group, &larger);
    run.refused("one", "set a document that is too large", setting)
        .await?;
    lists(&two, &BTreeMap::from([(name, largest)])).await
}

/// Reads the groups until they are exactly these; reads may be stale.
async fn lists(client: &LeaseClient, expected: &BTreeMap<String, String>) -> Result<(), Failure> {
    let wait = client.run.wait("the groups are listed as they were set");
    let document = |(name, json): (&String, &String)| GroupDocument {
        name: name.clone(),
        json: Some(json.clone()),
    };
    let expected: Vec<GroupDocument> = expected.iter().map(document).collect();
    loop {
        let found = client.groups().await?;
        if found == expected {
            return Ok(());
        }
        let wrong = found.iter().find(|group| !expected.contains(group));
        let found = super::super::history::brief(format_args!(
            "{} of {}, with {wrong:?}",
            found.len(),
            expected.len()
        ));
        wait.again_because(&found).await?;
    }
}

fn group(run: &Run, name: &str) -> Result<LeaseName, Failure> {
    LeaseName::new("group", name).map_err(|error| run.fail(error.to_string()))
}
