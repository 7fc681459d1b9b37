//! Rules that all names share: not empty, bounded, printable.

use crate::error::Invalid;

/// Checks a name against the rules that hold for every kind of name.
pub(crate) fn check(field: &'static str, name: &str, bytes_max: usize) -> Result<(), Invalid> {
    if name.is_empty() {
        return Err(Invalid::new(field, name, "must not be empty"));
    }
    if name.len() > bytes_max {
        let rule = format!(
            "is {} bytes long, at most {bytes_max} are allowed",
            name.len()
        );
        return Err(Invalid::new(field, name, rule));
    }
    if name.bytes().all(|byte| byte.is_ascii_graphic()) {
        // As nearly all are.
        return Ok(());
    }
    if let Some(bad) = name.chars().find(|c| c.is_control()) {
        let rule = if bad == '\0' {
            "must not contain NUL".to_owned()
        } else {
            format!(
                "must not contain control characters, has U+{:04X}",
                bad as u32
            )
        };
        return Err(Invalid::new(field, name, rule));
    }
    if name.starts_with(char::is_whitespace) || name.ends_with(char::is_whitespace) {
        return Err(Invalid::new(
            field,
            name,
            "must not start or end with white space",
        ));
    }
    Ok(())
}
