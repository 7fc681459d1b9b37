//! Revisions, made of the sequences of a stream.
//!
//! A deletion is a message too, with a sequence of its own. A write that
//! expected it would be accepted by the server, although the key has no value
//! then. So a value's revision is twice its sequence and a deletion's one more:
//! the order stays, and what no write may expect can be told apart.

use divvy_core::store::Revision;

/// The revision of a value.
pub(super) fn value_revision(sequence: u64) -> Option<Revision> {
    Revision::new(sequence.checked_mul(2)?)
}

/// The revision of a deletion.
pub(super) fn deletion_revision(sequence: u64) -> Option<Revision> {
    Revision::new(sequence.checked_mul(2)?.checked_add(1)?)
}

/// The sequence that a write must expect to find the value of `revision`;
/// nothing if there never was a value of that revision.
pub(super) fn expected_sequence(revision: Revision) -> Option<u64> {
    let number = revision.get();
    number.is_multiple_of(2).then_some(number / 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn revisions_keep_the_order_of_sequences_and_no_write_can_expect_a_deletion() {
        let revisions: Vec<_> = (1..5)
            .flat_map(|sequence| [value_revision(sequence), deletion_revision(sequence)])
            .map(Option::unwrap)
            .collect();
        assert!(revisions.is_sorted());
        let expected: Vec<_> = revisions.into_iter().map(expected_sequence).collect();
        let values = [1, 2, 3, 4].map(Some);
        assert_eq!(
            expected.iter().step_by(2).copied().collect::<Vec<_>>(),
            values
        );
        assert!(expected.iter().skip(1).step_by(2).all(Option::is_none));
        assert_eq!(value_revision(u64::MAX), None);
        assert_eq!(deletion_revision(0), Revision::new(1));
    }
}
