//! A resource that partitions work on, and that checks tokens.

use divvy_core::store::Token;

/// What became of an effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// It happened.
    Done,
    /// It came with an older token than this one, which had been seen.
    Refused(Token),
}

/// Remembers the highest token of each partition and refuses lower ones: what
/// makes a late effect harmless.
#[derive(Debug, Clone)]
pub struct Resource {
    highest: Vec<Option<Token>>,
    /// Effects that happened.
    pub effects: u64,
}

impl Resource {
    /// A resource for so many partitions that has seen nothing.
    pub fn new(partitions: usize) -> Self {
        Self {
            highest: vec![None; partitions],
            effects: 0,
        }
    }

    /// An effect of a partition.
    pub fn effect(&mut self, partition: usize, token: Token) -> Verdict {
        match self.highest[partition] {
            Some(highest) if token < highest => Verdict::Refused(highest),
            _ => {
                self.highest[partition] = Some(token);
                self.effects += 1;
                Verdict::Done
            }
        }
    }
}
