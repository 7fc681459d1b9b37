//! What a comment above a block says of how it is checked.

/// How a block is checked, where its language does not say all.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Directive {
    /// Its commands go on, until the section ends; each has begun when it says
    /// this.
    GoesOn { says: String },
    /// Less than is shown is run, of what takes long.
    With { shown: String, run: String },
    /// Its commands end with this code.
    Ends { code: i32 },
    /// It is the content of a file that commands below read.
    File { name: String },
    /// It is a file that this command reads, where it says `FILE`.
    ReadBy { command: String },
    /// This test reads it.
    Test { path: String },
    /// It needs this, which not every machine has.
    Elsewhere { why: String },
}

/// What a comment says, or nothing where that is not known.
pub(crate) fn of_comment(comment: &str) -> Option<Directive> {
    let quoted = |text: &str| Some(text.strip_prefix('"')?.strip_suffix('"')?.to_owned());
    if let Some(says) = comment.strip_prefix("goes on, says ") {
        let says = quoted(says)?;
        return Some(Directive::GoesOn { says });
    }
    if let Some(pair) = comment.strip_prefix("with ") {
        let (run, shown) = pair.split_once(" for ")?;
        let (run, shown) = (quoted(run)?, quoted(shown)?);
        return Some(Directive::With { shown, run });
    }
    if let Some(command) = comment.strip_prefix("read by ") {
        let command = command.to_owned();
        return Some(Directive::ReadBy { command });
    }
    let (word, rest) = comment.split_once(' ')?;
    let rest = rest.to_owned();
    match word {
        "ends" => Some(Directive::Ends {
            code: rest.parse().ok()?,
        }),
        "file" => Some(Directive::File { name: rest }),
        "test" => Some(Directive::Test { path: rest }),
        "needs" => Some(Directive::Elsewhere { why: rest }),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_are_read_whole_or_not_at_all() {
        let shorter = Directive::With {
            shown: "--seeds 20000".to_owned(),
            run: "--seeds 200".to_owned(),
        };
        let read = of_comment("with \"--seeds 200\" for \"--seeds 20000\"");
        assert_eq!(read, Some(shorter));
        assert_eq!(of_comment("ends 1"), Some(Directive::Ends { code: 1 }));
        let read = Directive::ReadBy {
            command: "divvy worker --config FILE".to_owned(),
        };
        assert_eq!(of_comment("read by divvy worker --config FILE"), Some(read));
        for wrong in [
            "ends soon",
            "with less",
            "goes on",
            "goes on, says ready",
            "skip",
            "file",
        ] {
            assert_eq!(of_comment(wrong), None, "{wrong}");
        }
    }
}
