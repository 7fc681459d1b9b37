//! Partitions: units of work with a hierarchical key and a weight.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use crate::error::{Error, Invalid};
use crate::name;

/// Most segments of a partition's key.
pub const SEGMENTS_MAX: usize = 16;
/// Longest segment of a partition's key, in bytes.
pub const SEGMENT_BYTES_MAX: usize = 128;
/// Most partitions of one set.
pub const PARTITIONS_MAX: usize = 1 << 24;
/// Longest texts of one set, all together, in bytes.
pub const PARTITIONS_BYTES_MAX: usize = 1 << 29;
/// What a partition of weight 0 counts for unless its set says otherwise.
pub const PARTITION_WEIGHT_DEFAULT: u64 = 1;

/// Joins the segments of a partition's text form.
pub(crate) const SEPARATOR: char = ':';

/// A unit of work: key segments, outermost first, and a weight.
///
/// The text form joins the segments by `:` and is what strategies hash.
///
/// ```
/// use divvy_core::Partition;
///
/// let partition = Partition::new(["tool001", "chamber1"])?.with_weight(150)?;
/// assert_eq!(partition.to_string(), "tool001:chamber1");
/// assert_eq!(partition.group(), "tool001");
/// assert_eq!(partition.subject("work")?, "work.tool001.chamber1.completed");
/// assert_eq!("tool001:chamber1".parse::<Partition>()?.weight(), 0);
/// # Ok::<(), divvy_core::Error>(())
/// ```
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Partition {
    /// The segments joined by `:`. No segment holds one, so this is injective.
    /// Shared: sets, grants and what is shown of them are copied all the time.
    text: Arc<str>,
    weight: i64,
}

impl Partition {
    /// A partition with the given key segments and weight 0, which means the
    /// default weight of the set that it is in.
    ///
    /// At most [`SEGMENTS_MAX`] segments of 1..=[`SEGMENT_BYTES_MAX`] bytes,
    /// without `:` and control characters.
    pub fn new<S: AsRef<str>>(segments: impl IntoIterator<Item = S>) -> Result<Self, Error> {
        let mut text = String::new();
        let mut count = 0;
        for segment in segments {
            let segment = segment.as_ref();
            count += 1;
            if count > SEGMENTS_MAX {
                let rule = format!("has more than {SEGMENTS_MAX} segments");
                return Err(Invalid::new("partition key", text, rule).into());
            }
            name::check("partition segment", segment, SEGMENT_BYTES_MAX)?;
            if segment.contains(SEPARATOR) {
                let rule = "must not contain ':', which joins segments";
                return Err(Invalid::new("partition segment", segment, rule).into());
            }
            if count > 1 {
                text.push(SEPARATOR);
            }
            text.push_str(segment);
        }
        if count == 0 {
            return Err(Invalid::new("partition key", "", "needs at least 1 segment").into());
        }
        Ok(Self {
            text: text.into(),
            weight: 0,
        })
    }

    /// The shard with this number in a group: `group:number`.
    pub fn shard(group: &str, number: u32) -> Result<Self, Error> {
        Self::new([group, &number.to_string()])
    }

    /// The same partition with another weight. 0 means the default weight;
    /// a negative one is an error.
    pub fn with_weight(self, weight: i64) -> Result<Self, Error> {
        if weight < 0 {
            let rule = format!("must be in 0..={}", i64::MAX);
            return Err(Invalid::new("partition weight", weight, rule).into());
        }
        Ok(Self { weight, ..self })
    }

    /// The text form: segments joined by `:`.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The text form, for whoever keeps it.
    pub(crate) fn shared_text(&self) -> Arc<str> {
        Arc::clone(&self.text)
    }

    /// The key segments, outermost first.
    pub fn segments(&self) -> impl Iterator<Item = &str> {
        self.text.split(SEPARATOR)
    }

    /// The first segment: the group that the partition belongs to.
    pub fn group(&self) -> &str {
        self.segments().next().unwrap_or_default()
    }

    /// The weight as it was given; 0 means the default.
    pub fn weight(&self) -> i64 {
        self.weight
    }

    /// The NATS subject `prefix.<segments>.completed`.
    pub fn subject(&self, prefix: &str) -> Result<String, Error> {
        self.subject_from("{prefix}.{keys}.completed", prefix)
    }

    /// The NATS subject that `template` gives: `{prefix}` is replaced by
    /// `prefix`, `{keys}` by the segments joined by `.`.
    ///
    /// A segment with `.`, `*`, `>` or white space has no subject: it would
    /// name another partition's messages or everybody's.
    ///
    /// ```
    /// let partition = divvy_core::Partition::new(["a", "b"])?;
    /// assert_eq!(partition.subject_from("{prefix}.{keys}", "jobs")?, "jobs.a.b");
    /// assert!(divvy_core::Partition::new(["*"])?.subject("jobs").is_err());
    /// # Ok::<(), divvy_core::Error>(())
    /// ```
    pub fn subject_from(&self, template: &str, prefix: &str) -> Result<String, Error> {
        for segment in self.segments() {
            if segment.contains(is_special_in_subjects) {
                let rule = "has no subject: '.', '*', '>' and white space are special there";
                return Err(Invalid::new("partition segment", segment, rule).into());
            }
        }
        if !template.contains("{keys}") {
            return Err(Invalid::new("subject template", template, "must hold {keys}").into());
        }
        // In one pass: neither a prefix nor a key is itself a template.
        let keys = self.text.replace(SEPARATOR, ".");
        let pieces = template.split("{prefix}");
        let pieces: Vec<String> = pieces.map(|piece| piece.replace("{keys}", &keys)).collect();
        let subject = pieces.join(prefix);
        let is_token = |token: &str| {
            !token.is_empty()
                && !token.contains(|c: char| is_special_in_subjects(c) || c.is_control())
        };
        if !subject.split('.').all(is_token) {
            let rule = "must be words joined by '.', without '*', '>' and white space";
            return Err(Invalid::new("subject", subject, rule).into());
        }
        Ok(subject)
    }
}

fn is_special_in_subjects(c: char) -> bool {
    c == '.' || c == '*' || c == '>' || c.is_whitespace()
}

impl fmt::Display for Partition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.text)
    }
}

impl fmt::Debug for Partition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}*{}", self.text, self.weight)
    }
}

impl FromStr for Partition {
    type Err = Error;

    /// Reads the text form; the weight is 0.
    fn from_str(text: &str) -> Result<Self, Error> {
        Self::new(text.split(SEPARATOR))
    }
}

/// A set of partitions: no two with the same key, in the order of their text.
///
/// Cloning is cheap, and whatever order the partitions came in, the set is the
/// same: that is why no strategy can depend on it.
#[derive(Clone, PartialEq, Eq)]
pub struct Partitions {
    sorted: Arc<[Partition]>,
    default_weight: u64,
    weights: Weights,
}

/// What is known of all weights together, so that nobody has to look again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Weights {
    /// How many have none of their own.
    without: usize,
    /// The sum of the others'.
    sum: u128,
    /// Whether all are the same.
    same: bool,
}

impl Weights {
    fn of(partitions: &[Partition]) -> Self {
        let weight = |partition: &Partition| u128::from(partition.weight.unsigned_abs());
        Self {
            without: partitions.iter().filter(|p| p.weight == 0).count(),
            sum: partitions.iter().map(weight).sum(),
            same: partitions
                .windows(2)
                .all(|pair| pair[0].weight == pair[1].weight),
        }
    }
}

/// Whether a set may have texts of so many bytes.
pub(crate) fn check_bytes(bytes: usize) -> Result<(), Invalid> {
    if bytes <= PARTITIONS_BYTES_MAX {
        return Ok(());
    }
    let rule = format!("at most {PARTITIONS_BYTES_MAX} are allowed");
    Err(Invalid::new("bytes of partition texts", bytes, rule))
}

impl Partitions {
    /// A set of the given partitions, at most [`PARTITIONS_MAX`] with texts of
    /// at most [`PARTITIONS_BYTES_MAX`].
    ///
    /// Two partitions of one key are an error, and so are weights that add up
    /// to more than `i64::MAX`.
    pub fn new(partitions: impl IntoIterator<Item = Partition>) -> Result<Self, Error> {
        let mut sorted: Vec<Partition> = partitions.into_iter().take(PARTITIONS_MAX + 1).collect();
        if sorted.len() > PARTITIONS_MAX {
            let rule = format!("at most {PARTITIONS_MAX} are allowed");
            return Err(Invalid::new("partition count", sorted.len(), rule).into());
        }
        let bytes = sorted.iter().map(|partition| partition.text.len()).sum();
        check_bytes(bytes)?;
        sorted.sort_unstable();
        if let Some(pair) = sorted.windows(2).find(|pair| pair[0].text == pair[1].text) {
            return Err(Invalid::new("partition", &pair[0], "is given twice").into());
        }
        let set = Self {
            weights: Weights::of(&sorted),
            sorted: sorted.into(),
            default_weight: PARTITION_WEIGHT_DEFAULT,
        };
        set.checked()
    }

    /// The same set with another weight for the partitions that have none of
    /// their own, at least 1.
    pub fn with_default_weight(&self, weight: u64) -> Result<Self, Error> {
        if weight == 0 {
            return Err(Invalid::new("default weight", weight, "must be at least 1").into());
        }
        let set = Self {
            default_weight: weight,
            ..self.clone()
        };
        set.checked()
    }

    /// Every sum of loads fits, or there is no set.
    fn checked(self) -> Result<Self, Error> {
        let Weights { without, sum, .. } = self.weights;
        let total = sum + without as u128 * u128::from(self.default_weight);
        if i64::try_from(total).is_err() {
            let rule = format!("all together must not exceed {}", i64::MAX);
            return Err(Invalid::new("sum of partition weights", total, rule).into());
        }
        Ok(self)
    }

    /// The shards `group:0` to `group:<count - 1>` of each group.
    ///
    /// ```
    /// let partitions = divvy_core::Partitions::shards([("orders", 2), ("users", 1)])?;
    /// let names: Vec<_> = partitions.iter().map(|p| p.as_str()).collect();
    /// assert_eq!(names, ["orders:0", "orders:1", "users:0"]);
    /// # Ok::<(), divvy_core::Error>(())
    /// ```
    pub fn shards<'a>(groups: impl IntoIterator<Item = (&'a str, u32)>) -> Result<Self, Error> {
        let mut partitions = Vec::new();
        for (group, count) in groups {
            // Also where there is none to be made.
            Partition::shard(group, 0)?;
            let total = partitions.len() + count as usize;
            if total > PARTITIONS_MAX {
                let rule = format!("at most {PARTITIONS_MAX} are allowed");
                return Err(Invalid::new("partition count", total, rule).into());
            }
            for number in 0..count {
                partitions.push(Partition::shard(group, number)?);
            }
        }
        Self::new(partitions)
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.sorted.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.sorted.is_empty()
    }

    /// The partitions in the order of their text.
    pub fn iter(&self) -> std::slice::Iter<'_, Partition> {
        self.sorted.iter()
    }

    /// The partitions in the order of their text, by index.
    pub fn as_slice(&self) -> &[Partition] {
        &self.sorted
    }

    /// The index of the partition with this text form.
    pub fn index_of(&self, text: &str) -> Option<usize> {
        self.sorted
            .binary_search_by(|partition| partition.as_str().cmp(text))
            .ok()
    }

    /// For each partition its index in `other`, matched by name.
    pub(crate) fn places_in<'a>(
        &'a self,
        other: &'a Self,
    ) -> impl Iterator<Item = Option<usize>> + 'a {
        let theirs = other.as_slice();
        // Sets that were handed on are most often the same in memory.
        let same = Arc::ptr_eq(&self.sorted, &other.sorted);
        let mut next = 0;
        self.sorted
            .iter()
            .enumerate()
            .map(move |(index, partition)| {
                if same {
                    return Some(index);
                }
                while next < theirs.len() && theirs[next].text < partition.text {
                    next += 1;
                }
                let found = theirs.get(next)?;
                (found.text == partition.text).then_some(next)
            })
    }

    /// What a partition of weight 0 counts for.
    pub fn default_weight(&self) -> u64 {
        self.default_weight
    }

    /// Whether all partitions count for the same.
    pub(crate) fn is_even(&self) -> bool {
        let mut loads = self.loads();
        let first = loads.next();
        self.weights.same || loads.all(|load| Some(load) == first)
    }

    /// What each partition counts for, by index: its weight, or the default
    /// where that is 0. All together they are at most `i64::MAX`.
    ///
    /// ```
    /// use divvy_core::Partitions;
    ///
    /// let light = "a".parse::<divvy_core::Partition>()?;
    /// let heavy = "b".parse::<divvy_core::Partition>()?.with_weight(7)?;
    /// let partitions = Partitions::new([light, heavy])?;
    /// assert!(partitions.loads().eq([1, 7]));
    /// assert!(partitions.with_default_weight(3)?.loads().eq([3, 7]));
    /// # Ok::<(), divvy_core::Error>(())
    /// ```
    pub fn loads(&self) -> impl ExactSizeIterator<Item = u64> {
        self.sorted.iter().map(|partition| match partition.weight {
            0 => self.default_weight,
            weight => weight.unsigned_abs(),
        })
    }
}

impl<'a> IntoIterator for &'a Partitions {
    type Item = &'a Partition;
    type IntoIter = std::slice::Iter<'a, Partition>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl fmt::Debug for Partitions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.iter()).finish()
    }
}
