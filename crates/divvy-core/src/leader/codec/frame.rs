//! Bytes with bounds: what every record is written with and read by.

use std::time::Duration;

use crate::error::Invalid;
use crate::hash;
use crate::leader::settings::TIMING_MAX;

/// What every record begins with.
const MARK: u8 = 0xD7;
/// The format that is written, and the newest that is read.
const FORMAT: u8 = 1;
const CHECKSUM_BYTES: usize = 8;
/// Bytes of the largest number.
const NUMBER_BYTES_MAX: usize = 10;
/// What most records of a worker fit into.
const USUAL_BYTES: usize = 160;

/// What a frame holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Leader = 1,
    Worker = 2,
    Root = 3,
}

impl Kind {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Leader => "leader record",
            Self::Worker => "worker record",
            Self::Root => "root",
        }
    }
}

/// A value as it is being written.
#[derive(Debug, Default)]
pub(super) struct Writer(Vec<u8>);

impl Writer {
    /// A frame, to be closed by [`Writer::sealed`].
    pub(super) fn frame(kind: Kind) -> Self {
        let mut bytes = Vec::with_capacity(USUAL_BYTES);
        bytes.extend([MARK, kind as u8, FORMAT]);
        Self(bytes)
    }

    /// Closes a frame with its checksum.
    pub(super) fn sealed(mut self) -> Vec<u8> {
        let checksum = hash::bytes64(&self.0, 0);
        self.0.extend(checksum.to_le_bytes());
        self.0
    }

    /// What was written, without a checksum.
    pub(super) fn into_bytes(self) -> Vec<u8> {
        self.0
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    pub(super) fn byte(&mut self, value: u8) {
        self.0.push(value);
    }

    /// Seven bits a byte, the lowest first.
    pub(super) fn number(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.0.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.0.push(value as u8);
    }

    pub(super) fn wide(&mut self, value: u128) {
        self.0.extend(value.to_le_bytes());
    }

    pub(super) fn fixed(&mut self, value: u64) {
        self.0.extend(value.to_le_bytes());
    }

    /// Beyond [`TIMING_MAX`] a span is cut.
    pub(super) fn span(&mut self, value: Duration) {
        let nanos = value.min(TIMING_MAX).as_nanos();
        self.number(u64::try_from(nanos).expect("a day has that few nanoseconds"));
    }

    pub(super) fn text(&mut self, value: &str) {
        self.bytes(value.as_bytes());
    }

    pub(super) fn bytes(&mut self, value: &[u8]) {
        self.number(value.len() as u64);
        self.0.extend(value);
    }
}

/// A value as it is being read; every length is checked before it is believed.
#[derive(Debug, Clone)]
pub(super) struct Reader<'a> {
    rest: &'a [u8],
    what: &'static str,
}

impl<'a> Reader<'a> {
    /// The body of a frame of `kind`, if mark, kind, format and checksum are
    /// right.
    pub(super) fn frame(kind: Kind, bytes: &'a [u8]) -> Result<Self, Invalid> {
        let what = kind.name();
        let refused = |value: String, rule: &str| Err(Invalid::new(what, value, rule));
        let Some((framed, checksum)) = bytes.split_last_chunk::<CHECKSUM_BYTES>() else {
            return refused(format!("{} bytes", bytes.len()), "is cut off");
        };
        let [MARK, found, format, rest @ ..] = framed else {
            return refused(format!("{} bytes", bytes.len()), "was not written by divvy");
        };
        if *format == 0 || *format > FORMAT {
            let rule = format!("has a format that this version cannot read, it reads 1..={FORMAT}");
            return refused(format!("format {format}"), &rule);
        }
        if *found != kind as u8 {
            return refused(format!("kind {found}"), "is another kind of record");
        }
        let right = hash::bytes64(framed, 0);
        if u64::from_le_bytes(*checksum) != right {
            return refused(
                format!("{} bytes", bytes.len()),
                "does not match its checksum",
            );
        }
        Ok(Self::plain(what, rest))
    }

    /// Bytes without a frame, whose checksum was compared elsewhere.
    pub(super) const fn plain(what: &'static str, rest: &'a [u8]) -> Self {
        Self { rest, what }
    }

    /// Whether everything was read.
    pub(super) const fn is_at_end(&self) -> bool {
        self.rest.is_empty()
    }

    /// Nothing may be left over.
    pub(super) fn finish(self) -> Result<(), Invalid> {
        match self.rest.len() {
            0 => Ok(()),
            left => Err(self.wrong(format!("{left} bytes"), "are left over")),
        }
    }

    pub(super) fn wrong(&self, value: impl std::fmt::Display, rule: &str) -> Invalid {
        Invalid::new(self.what, value, rule)
    }

    pub(super) fn byte(&mut self) -> Result<u8, Invalid> {
        let [first] = self.take()?;
        Ok(first)
    }

    pub(super) fn number(&mut self) -> Result<u64, Invalid> {
        let mut value = 0_u64;
        for (index, byte) in self.rest.iter().enumerate().take(NUMBER_BYTES_MAX) {
            let (bits, shift) = (u64::from(byte & 0x7f), index * 7);
            if (bits << shift) >> shift != bits {
                break;
            }
            value |= bits << shift;
            if *byte < 0x80 {
                self.rest = &self.rest[index + 1..];
                return Ok(value);
            }
        }
        match self.rest.len() < NUMBER_BYTES_MAX {
            true => Err(self.wrong("a value", "is cut off")),
            false => Err(self.wrong("a number", "does not fit 64 bits")),
        }
    }

    pub(super) fn number_u32(&mut self) -> Result<u32, Invalid> {
        let value = self.number()?;
        u32::try_from(value).map_err(|_error| self.wrong(value, "does not fit 32 bits"))
    }

    pub(super) fn wide(&mut self) -> Result<u128, Invalid> {
        Ok(u128::from_le_bytes(self.take()?))
    }

    pub(super) fn fixed(&mut self) -> Result<u64, Invalid> {
        Ok(u64::from_le_bytes(self.take()?))
    }

    /// Who waits for a lease waits at most as long as one can be.
    pub(super) fn span(&mut self) -> Result<Duration, Invalid> {
        let span = Duration::from_nanos(self.number()?);
        match span <= TIMING_MAX {
            true => Ok(span),
            false => {
                let rule = format!("is a span over the bound of {TIMING_MAX:?}");
                Err(self.wrong(format!("{span:?}"), &rule))
            }
        }
    }

    pub(super) fn text(&mut self, bytes_max: usize) -> Result<&'a str, Invalid> {
        let bytes = self.bytes(bytes_max)?;
        std::str::from_utf8(bytes).map_err(|_error| self.wrong("a text", "is not UTF-8"))
    }

    pub(super) fn bytes(&mut self, bytes_max: usize) -> Result<&'a [u8], Invalid> {
        let length = self.count(bytes_max)?;
        let (bytes, rest) = self.rest.split_at(length);
        self.rest = rest;
        Ok(bytes)
    }

    /// How many things follow, of at least a byte each: never more than are
    /// there.
    pub(super) fn count(&mut self, most: usize) -> Result<usize, Invalid> {
        let count = self.number()?;
        let most = most.min(self.rest.len());
        match usize::try_from(count) {
            Ok(count) if count <= most => Ok(count),
            _ => Err(self.wrong(
                format!("{count} things"),
                &format!("are over the bound of {most}"),
            )),
        }
    }

    fn take<const N: usize>(&mut self) -> Result<[u8; N], Invalid> {
        let cut = self.rest.split_first_chunk::<N>();
        let (first, rest) = cut.ok_or_else(|| self.wrong("a value", "is cut off"))?;
        self.rest = rest;
        Ok(*first)
    }
}
