//! Replies as values. What does not look as expected is an error, never a
//! panic: another client, or another server, may be at work.

use ::redis::Value;
use divvy_core::store::StoreError;

/// The bytes of a text, whichever way the server wrote it.
pub(super) fn bytes(value: &Value) -> Option<&[u8]> {
    match value {
        Value::BulkString(bytes) => Some(bytes),
        Value::SimpleString(text) | Value::VerbatimString { text, .. } => Some(text.as_bytes()),
        _ => None,
    }
}

/// A text, with a mark for what is not UTF-8.
pub(super) fn text(value: &Value) -> Option<String> {
    bytes(value).map(|bytes| String::from_utf8_lossy(bytes).into_owned())
}

pub(super) fn integer(value: &Value) -> Option<i64> {
    match value {
        Value::Int(number) => Some(*number),
        _ => None,
    }
}

pub(super) fn array(value: Value) -> Option<Vec<Value>> {
    match value {
        Value::Array(values) | Value::Set(values) => Some(values),
        _ => None,
    }
}

/// Positions, which scripts count from 1, as flags of `count` things.
pub(super) fn flags(value: Value, count: usize) -> Option<Vec<bool>> {
    let mut flags = vec![false; count];
    for position in array(value)? {
        let position = usize::try_from(integer(&position)?).ok()?;
        *flags.get_mut(position.checked_sub(1)?)? = true;
    }
    Some(flags)
}

pub(super) fn unexpected(what: &str) -> StoreError {
    StoreError::unfit(format_args!("the server's answer to {what} makes no sense"))
}
