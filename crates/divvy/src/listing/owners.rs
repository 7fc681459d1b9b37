//! Who owns what: the assignment in force, as another system tells it.

use divvy_core::{
    Assignment, AssignmentDocument, Error, PARTITIONS_MAX, Partition, Partitions, Worker, Workers,
};

use super::{Fault, Field, Form, Row, Shape, collected, excerpt, refuse_repeated, weighted};

/// A list of owned partitions: `key`, `worker` and, where it has one, `weight`.
const OWNERS: Shape = Shape {
    noun: "owners",
    count: "partition count",
    count_max: PARTITIONS_MAX,
    fields: &[
        Field::of_name("key").or(&["partition", "name"]),
        Field::of_name("worker").or(&["owner", "node"]),
        Field::of_value("weight"),
    ],
};

/// Reads who owns what: an entry for each partition with its `key` and its
/// `worker`; in JSON also `{worker: [partition, …]}`, or what
/// [`AssignmentDocument`] writes.
///
/// ```
/// use divvy::listing::{Form, owners};
///
/// let table = owners(Form::Csv, "key,worker\norders:0,a\norders:1,b\n")?;
/// let map = owners(Form::Json, r#"{"a": ["orders:0"], "b": ["orders:1"]}"#)?;
/// assert_eq!(table, map);
/// # Ok::<(), divvy::listing::Fault>(())
/// ```
pub fn owners(form: Form, text: &str) -> Result<Assignment, Fault> {
    owners_of(form, text, None)
}

/// The same where columns of a CSV file that are not known are left out, which
/// is told in `notes`.
pub fn owners_noting(form: Form, text: &str, notes: &mut Vec<String>) -> Result<Assignment, Fault> {
    owners_of(form, text, Some(notes))
}

fn owners_of(form: Form, text: &str, notes: Option<&mut Vec<String>>) -> Result<Assignment, Fault> {
    let whole = |error: Error| Fault {
        place: None,
        reason: error.to_string(),
    };
    if form == Form::Json && !text.trim_start().starts_with('[') {
        let document = AssignmentDocument::from_json(text).map_err(whole)?;
        return document.assignment().map_err(whole);
    }
    let owned = collected(form, text, &OWNERS, notes, owned_of_row)?;
    assembled(owned).map_err(|error| {
        let to = |row: &Row<'_>| format!(" to '{}'", excerpt(row.text(1).unwrap_or_default()));
        let repeated = refuse_repeated(form, text, &OWNERS, "partition", to);
        repeated.err().unwrap_or_else(|| whole(error))
    })
}

fn owned_of_row(row: &Row<'_>) -> Result<(Partition, Worker), String> {
    let partition = weighted(row, 2)?;
    let worker = Worker::new(row.required(1)?).map_err(|error| error.to_string())?;
    Ok((partition, worker))
}

fn assembled(mut owned: Vec<(Partition, Worker)>) -> Result<Assignment, Error> {
    let mut ids: Vec<&str> = owned.iter().map(|(_, worker)| worker.id()).collect();
    ids.sort_unstable();
    ids.dedup();
    let workers = Workers::of(ids)?;
    owned.sort_by(|(one, _), (other, _)| one.cmp(other));
    let place = |worker: &Worker| workers.index_of(worker.id()).expect("it is one of them");
    let owners = owned.iter().map(|(_, worker)| place(worker) as u32);
    let owners = owners.collect();
    let partitions = Partitions::new(owned.into_iter().map(|(partition, _)| partition))?;
    Assignment::new(&workers, &partitions, owners)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(form: Form, text: &str) -> String {
        owners(form, text).expect_err(text).to_string()
    }

    #[test]
    fn every_form_tells_the_same() {
        let map = owners(Form::Json, r#"{"b": ["t:1"], "a": ["t:2", "t:10"]}"#).unwrap();
        let csv = "Key;Worker\nt:10;a\n\nt:1;b\nt:2;a\n";
        assert_eq!(owners(Form::Csv, csv).unwrap(), map);
        let json = r#"[{"key": "t:1", "worker": "b"}, {"key": "t:2", "worker": "a"},
            {"key": "t:10", "worker": "a"}]"#;
        assert_eq!(owners(Form::Json, json).unwrap(), map);
        let yaml =
            "- {key: 't:1', worker: b}\n- {key: 't:2', worker: a}\n- {key: 't:10', worker: a}\n";
        assert_eq!(owners(Form::Yaml, yaml).unwrap(), map);
        assert_eq!(map.owner_of("t:10").unwrap().id(), "a");
    }

    #[test]
    fn weights_are_read_where_there_are_some() {
        let read = owners(Form::Csv, "key,weight,worker\nt:1,150,a\nt:2,,a\n").unwrap();
        assert_eq!(read.loads(), [151]);
    }

    #[test]
    fn what_is_wrong_is_told_with_its_place() {
        let missing = told(Form::Csv, "key,worker\nt:1,a\nt:2,\n");
        assert_eq!(missing, "line 3: worker '': must not be empty");
        let twice = told(Form::Csv, "key,worker\nt:1,a\nt:1,b\n");
        let expected = "is given twice, first in line 2 to 'a', here to 'b'";
        assert_eq!(twice, format!("line 3: partition 't:1': {expected}"));
        let weight = told(Form::Csv, "key,worker,weight\nt:1,a,heavy\n");
        assert!(weight.starts_with("line 2: weight 'heavy'"), "{weight}");
        let form = told(Form::Json, r#"{"assignments": {"a": ["t:1"]}}"#);
        assert!(form.contains("{worker: [partition, ...]}"), "{form}");
    }
}
