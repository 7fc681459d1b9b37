//! The records of one member: `leader` and `w.<stable id>`.

use std::time::Duration;

use super::frame::{Kind, Reader, Writer};
use crate::error::Invalid;
use crate::leader::record::{
    EPOCH_MAX, LeaderRecord, Life, SessionId, VERSION_NUMBER_MAX, Version, WorkerRecord,
};
use crate::name;
use crate::store::Token;
use crate::worker::{Health, WORKER_NAME_BYTES_MAX, is_weight};

/// Most partitions that a worker's record names as still stopping. One with
/// more waits with its acknowledgement.
pub const STOPPING_MAX: usize = 1024;
/// Most partitions that a worker's record names as not to be given to it. One
/// with more is not fit to own any.
pub const UNABLE_MAX: usize = 256;
/// What a leader writes in place of the record of a worker that renews its
/// lease and does not read the root. It is no record, so that every reader
/// waits for whoever had its place.
pub const STRUCK_OUT: &[u8] = b"struck out: renewed its lease and did not read the root";
/// Longest name of an instance, in bytes.
pub const INSTANCE_BYTES_MAX: usize = 256;

impl LeaderRecord {
    /// The record as it is stored.
    pub fn encode(&self) -> Vec<u8> {
        let mut writer = Writer::frame(Kind::Leader);
        writer.number(self.epoch);
        writer.wide(self.session.0);
        writer.number(self.beat);
        writer.span(self.lease);
        writer.sealed()
    }

    /// Reads what [`LeaderRecord::encode`] wrote, and refuses everything else.
    pub fn decode(bytes: &[u8]) -> Result<Self, Invalid> {
        let mut reader = Reader::frame(Kind::Leader, bytes)?;
        let record = Self {
            epoch: read_epoch(&mut reader)?,
            session: SessionId(reader.wide()?),
            beat: reader.number()?,
            lease: reader.span()?,
        };
        reader.finish()?;
        Ok(record)
    }
}

impl WorkerRecord {
    /// The record as it is stored. `stopping` holds at most
    /// [`STOPPING_MAX`] partitions, `unable` [`UNABLE_MAX`].
    pub fn encode(&self) -> Vec<u8> {
        assert!(self.stopping.len() <= STOPPING_MAX, "too many to name");
        assert!(self.unable.len() <= UNABLE_MAX, "too many to name");
        let mut writer = Writer::frame(Kind::Worker);
        writer.text(&self.instance);
        writer.wide(self.session.0);
        writer.number(self.beat);
        writer.span(self.lease);
        match self.life {
            Life::Live => writer.byte(0),
            Life::Fenced => writer.byte(1),
            Life::Left { keep_for } => {
                writer.byte(2);
                writer.span(keep_for);
            }
        }
        put_version(&mut writer, self.acked);
        writer.number(self.stopping.len() as u64);
        for partition in &self.stopping {
            writer.fixed(*partition);
        }
        put_version(&mut writer, self.adopted);
        let token = self.token_max.map_or(0, Token::get);
        writer.number(token.unsigned_abs());
        writer.byte(match self.health {
            Health::Healthy => 0,
            Health::Unhealthy => 1,
        });
        writer.fixed(self.weight.to_bits());
        writer.text(self.zone.as_deref().unwrap_or_default());
        writer.number(self.refresh);
        writer.number(self.alarm);
        // What says nothing is left out, as before it could be said.
        let knows_longer = self.longest > self.lease;
        if !self.unable.is_empty() || knows_longer {
            writer.number(self.unable.len() as u64);
            for partition in &self.unable {
                writer.fixed(*partition);
            }
        }
        if knows_longer {
            writer.span(self.longest);
        }
        writer.sealed()
    }

    /// Reads what [`WorkerRecord::encode`] wrote, and refuses everything else.
    pub fn decode(bytes: &[u8]) -> Result<Self, Invalid> {
        let mut reader = Reader::frame(Kind::Worker, bytes)?;
        let reader_ref = &mut reader;
        let mut record = Self {
            instance: reader_ref.text(INSTANCE_BYTES_MAX)?.into(),
            session: SessionId(reader_ref.wide()?),
            beat: reader_ref.number()?,
            lease: reader_ref.span()?,
            life: read_life(reader_ref)?,
            acked: read_version(reader_ref)?,
            stopping: read_stopping(reader_ref)?,
            adopted: read_version(reader_ref)?,
            token_max: read_token(reader_ref)?,
            health: read_health(reader_ref)?,
            weight: read_weight(reader_ref)?,
            zone: read_zone(reader_ref)?,
            refresh: reader_ref.number()?,
            alarm: read_epoch(reader_ref)?,
            unable: read_unable(reader_ref)?,
            longest: Duration::ZERO,
        };
        record.longest = read_longest(&mut reader, &record)?;
        reader.finish()?;
        Ok(record)
    }
}

pub(super) fn put_version(writer: &mut Writer, version: Version) {
    writer.number(version.epoch);
    writer.number(u64::from(version.number));
}

pub(super) fn read_version(reader: &mut Reader<'_>) -> Result<Version, Invalid> {
    let (epoch, number) = (read_epoch(reader)?, reader.number_u32()?);
    match number <= VERSION_NUMBER_MAX {
        true => Ok(Version { epoch, number }),
        false => Err(reader.wrong(number, "is no number of a root")),
    }
}

pub(super) fn read_epoch(reader: &mut Reader<'_>) -> Result<u64, Invalid> {
    let epoch = reader.number()?;
    match epoch <= EPOCH_MAX {
        true => Ok(epoch),
        false => Err(reader.wrong(epoch, "is no epoch")),
    }
}

fn read_life(reader: &mut Reader<'_>) -> Result<Life, Invalid> {
    match reader.byte()? {
        0 => Ok(Life::Live),
        1 => Ok(Life::Fenced),
        2 => Ok(Life::Left {
            keep_for: reader.span()?,
        }),
        other => Err(reader.wrong(other, "is no state of a session")),
    }
}

fn read_stopping(reader: &mut Reader<'_>) -> Result<Vec<u64>, Invalid> {
    let count = reader.count(STOPPING_MAX)?;
    (0..count).map(|_| reader.fixed()).collect()
}

fn read_unable(reader: &mut Reader<'_>) -> Result<Vec<u64>, Invalid> {
    if reader.is_at_end() {
        return Ok(Vec::new());
    }
    let count = reader.count(UNABLE_MAX)?;
    let unable: Vec<u64> = (0..count)
        .map(|_| reader.fixed())
        .collect::<Result<_, _>>()?;
    // An empty list is written only before something else.
    let is_needed = count > 0 || !reader.is_at_end();
    if is_needed && unable.is_sorted_by(|one, next| one < next) {
        Ok(unable)
    } else {
        Err(reader.wrong("a list of partitions", "is empty or not in order"))
    }
}

fn read_longest(reader: &mut Reader<'_>, record: &WorkerRecord) -> Result<Duration, Invalid> {
    if reader.is_at_end() {
        return Ok(record.lease);
    }
    let longest = reader.span()?;
    if longest > record.lease {
        Ok(longest)
    } else {
        let rule = "is no longer lease than its own";
        Err(reader.wrong(format!("{longest:?}"), rule))
    }
}

fn read_token(reader: &mut Reader<'_>) -> Result<Option<Token>, Invalid> {
    match reader.number()? {
        0 => Ok(None),
        number => {
            let token = i64::try_from(number).ok().and_then(Token::new);
            token
                .map(Some)
                .ok_or_else(|| reader.wrong(number, "does not fit a token"))
        }
    }
}

fn read_health(reader: &mut Reader<'_>) -> Result<Health, Invalid> {
    match reader.byte()? {
        0 => Ok(Health::Healthy),
        1 => Ok(Health::Unhealthy),
        other => Err(reader.wrong(other, "is no health")),
    }
}

fn read_zone(reader: &mut Reader<'_>) -> Result<Option<Box<str>>, Invalid> {
    let zone = reader.text(WORKER_NAME_BYTES_MAX)?;
    if zone.is_empty() {
        return Ok(None);
    }
    name::check("worker zone", zone, WORKER_NAME_BYTES_MAX)?;
    Ok(Some(zone.into()))
}

/// The rules for weights are those of workers: no record may bring a worker
/// that could not be made.
fn read_weight(reader: &mut Reader<'_>) -> Result<f64, Invalid> {
    let weight = f64::from_bits(reader.fixed()?);
    match is_weight(weight) {
        true => Ok(weight),
        false => Err(reader.wrong(weight, "is no weight of a worker")),
    }
}
