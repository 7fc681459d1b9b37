//! Sets that may be large and that others write to, too.

use std::collections::BTreeSet;

use divvy_core::store::StoreError;

use super::link::Call;
use super::reply;
use crate::store::bounds::LIST_MAX;

/// Members that the server looks at for one answer.
const STEP: usize = 1000;

/// The members of a set that begin with `beginning`, in order. They are read
/// in steps, so that a large set does not hold up the server. Those that are
/// not UTF-8 are passed over.
pub(super) async fn members(
    call: &Call,
    key: &str,
    beginning: &str,
) -> Result<BTreeSet<String>, StoreError> {
    let mut scan = ::redis::cmd("SSCAN");
    scan.arg(key);
    pages(call, scan, &format!("{}*", literal(beginning)), key).await
}

/// The keys of the database that match `pattern`, in order. All keys are looked
/// at, in steps.
pub(super) async fn keys(call: &Call, pattern: &str) -> Result<BTreeSet<String>, StoreError> {
    pages(call, ::redis::cmd("SCAN"), pattern, "of all keys").await
}

async fn pages(
    call: &Call,
    command: ::redis::Cmd,
    pattern: &str,
    key: &str,
) -> Result<BTreeSet<String>, StoreError> {
    let mut found = BTreeSet::new();
    let mut cursor = b"0".to_vec();
    loop {
        let mut scan = command.clone();
        scan.arg(&cursor);
        scan.arg("MATCH").arg(pattern);
        scan.arg("COUNT").arg(STEP);
        let answer = reply::array(call.ask(scan).await?).unwrap_or_default();
        let Ok([next, page]) = <[_; 2]>::try_from(answer) else {
            return Err(reply::unexpected("SCAN"));
        };
        for member in reply::array(page).unwrap_or_default() {
            let text = reply::bytes(&member).and_then(|bytes| std::str::from_utf8(bytes).ok());
            found.extend(text.map(str::to_owned));
        }
        if found.len() > LIST_MAX {
            return Err(StoreError::unfit(format_args!(
                "the set {key} has over {LIST_MAX} members"
            )));
        }
        cursor = reply::bytes(&next).unwrap_or(b"0").to_vec();
        if cursor == b"0" {
            return Ok(found);
        }
    }
}

/// A text as a pattern that matches nothing else.
fn literal(text: &str) -> String {
    let mut pattern = String::with_capacity(text.len());
    for c in text.chars() {
        if matches!(c, '*' | '?' | '[' | ']' | '\\' | '^' | '-') {
            pattern.push('\\');
        }
        pattern.push(c);
    }
    pattern
}
