//! Keys of a store, and the one encoder for every name that becomes part of
//! one.
//!
//! A raw name is never formatted into a key, a subject or a watch pattern: on
//! some servers `*`, `>` and `.` would reach other people's keys. Every byte
//! outside `[A-Za-z0-9_-]` is written as `=XX`, and parts are joined by `.`,
//! which cannot occur inside an encoded part. So the encoding is injective,
//! reversible, and stays inside its prefix.

use std::fmt;
use std::sync::Arc;

use crate::error::Invalid;

/// Longest key, in bytes, after encoding.
pub const KEY_BYTES_MAX: usize = 1024;
/// Most parts of a key.
pub const KEY_PARTS_MAX: usize = 8;

/// The key of a value: parts, each encoded, joined by `.`.
///
/// ```
/// use divvy_core::store::Key;
///
/// let key = Key::new(["w", "eu.west/*"])?;
/// assert_eq!(key.as_str(), "w.eu=2Ewest=2F=2A");
/// assert_eq!(key.parts(), ["w", "eu.west/*"]);
/// assert_eq!(Key::parse(key.as_str())?, key);
/// assert!(Key::parse("w.*").is_err());
/// # Ok::<(), divvy_core::Invalid>(())
/// ```
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key(Arc<str>);

impl Key {
    /// The key of these raw parts: 1..=[`KEY_PARTS_MAX`], none empty.
    pub fn new<'a>(parts: impl IntoIterator<Item = &'a str>) -> Result<Self, Invalid> {
        let mut text = String::new();
        let mut count = 0;
        for part in parts {
            if part.is_empty() {
                return Err(Invalid::new("key", &text, "has an empty part"));
            }
            if count > 0 {
                text.push('.');
            }
            push_encoded(&mut text, part);
            count += 1;
            check_size(&text, count)?;
        }
        if count == 0 {
            return Err(Invalid::new(
                "key",
                "",
                "has no parts, at least 1 is needed",
            ));
        }
        Ok(Self(text.into()))
    }

    /// The key with this encoded text, as [`Key::as_str`] gives it. Anything
    /// that the encoder would not have written is refused.
    pub fn parse(text: &str) -> Result<Self, Invalid> {
        check_size(text, text.split('.').count())?;
        match text.split('.').all(|part| decode_part(part).is_some()) {
            true => Ok(Self(text.into())),
            false => Err(Invalid::new("key", text, "is not an encoded key")),
        }
    }

    /// The encoded text: `[A-Za-z0-9_=-]` and `.` between parts.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The raw parts.
    pub fn parts(&self) -> Vec<String> {
        let decoded = self.0.split('.').map(decode_part);
        decoded
            .map(|part| part.expect("a key holds encoded parts only"))
            .collect()
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Key({})", self.0)
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// All keys, those that go on after the parts of another, or a single one:
/// below `w` is `w.7`, but neither `w` itself nor `work.7`.
///
/// ```
/// use divvy_core::store::{Key, Prefix};
///
/// let (root, chunk) = (Key::new(["root"])?, Key::new(["root", "0"])?);
/// assert!(Prefix::below(root.clone()).holds(&chunk));
/// assert!(!Prefix::below(root.clone()).holds(&root));
/// assert!(Prefix::only(root.clone()).holds(&root));
/// assert!(!Prefix::only(root).holds(&chunk));
/// # Ok::<(), divvy_core::Invalid>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Prefix(Extent);

#[derive(Debug, Clone, PartialEq, Eq, Default)]
enum Extent {
    #[default]
    All,
    Below(Key),
    Only(Key),
}

impl Prefix {
    /// The prefix of every key.
    pub const ALL: Self = Self(Extent::All);

    /// The keys below `parent`.
    pub const fn below(parent: Key) -> Self {
        Self(Extent::Below(parent))
    }

    /// This key and no other.
    pub const fn only(key: Key) -> Self {
        Self(Extent::Only(key))
    }

    /// The key that these are below, unless they are all or one.
    pub const fn parent(&self) -> Option<&Key> {
        match &self.0 {
            Extent::Below(parent) => Some(parent),
            Extent::All | Extent::Only(_) => None,
        }
    }

    /// The one key that it is about, if it is about one.
    pub const fn single(&self) -> Option<&Key> {
        match &self.0 {
            Extent::Only(key) => Some(key),
            Extent::All | Extent::Below(_) => None,
        }
    }

    /// Whether `key` is one of them.
    pub fn holds(&self, key: &Key) -> bool {
        match &self.0 {
            Extent::All => true,
            Extent::Only(only) => only == key,
            Extent::Below(parent) => {
                let rest = key.as_str().strip_prefix(parent.as_str());
                rest.is_some_and(|rest| rest.starts_with('.'))
            }
        }
    }

    /// The text that the encoded form of every key of these begins with.
    pub fn text(&self) -> String {
        match &self.0 {
            Extent::All => String::new(),
            Extent::Only(only) => only.to_string(),
            Extent::Below(parent) => format!("{parent}."),
        }
    }
}

/// One name in the alphabet that every store takes: `[A-Za-z0-9_-]` is kept,
/// every other byte becomes `=XX`.
pub fn encode_part(name: &str) -> String {
    let mut text = String::with_capacity(name.len());
    push_encoded(&mut text, name);
    text
}

/// The name behind an encoded part; nothing if the encoder cannot have written
/// it.
pub fn decode_part(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, after @ ..] = rest {
        if *first == b'=' {
            let [high, low, after @ ..] = after else {
                return None;
            };
            let byte = hex_value(*high)? << 4 | hex_value(*low)?;
            // What is kept is never escaped: each name has one encoding only.
            if is_kept(byte) {
                return None;
            }
            bytes.push(byte);
            rest = after;
        } else if is_kept(*first) {
            bytes.push(*first);
            rest = after;
        } else {
            return None;
        }
    }
    let name = String::from_utf8(bytes).ok()?;
    (!name.is_empty()).then_some(name)
}

fn push_encoded(text: &mut String, name: &str) {
    for byte in name.bytes() {
        if is_kept(byte) {
            text.push(char::from(byte));
        } else {
            text.push('=');
            text.push(hex_digit(byte >> 4));
            text.push(hex_digit(byte & 15));
        }
    }
}

const fn is_kept(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-'
}

const fn hex_digit(value: u8) -> char {
    b"0123456789ABCDEF"[value as usize] as char
}

const fn hex_value(digit: u8) -> Option<u8> {
    match digit {
        b'0'..=b'9' => Some(digit - b'0'),
        b'A'..=b'F' => Some(digit - b'A' + 10),
        _ => None,
    }
}

fn check_size(text: &str, parts: usize) -> Result<(), Invalid> {
    if text.len() > KEY_BYTES_MAX {
        let rule = format!("is over {KEY_BYTES_MAX} bytes long when encoded");
        return Err(Invalid::new("key", text, rule));
    }
    if parts > KEY_PARTS_MAX {
        let rule = format!("has over {KEY_PARTS_MAX} parts");
        return Err(Invalid::new("key", text, rule));
    }
    Ok(())
}
