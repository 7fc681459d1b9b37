//! The fenced blocks of a document, and what is said of each.

use crate::directive::{Directive, of_comment};

/// A fenced block.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Block {
    /// The line of its fence, from 1.
    pub(crate) line: usize,
    /// How many headings stand above it.
    pub(crate) section: usize,
    pub(crate) language: String,
    pub(crate) text: String,
    pub(crate) directives: Vec<Directive>,
}

/// A command of a block, and what it is shown to print.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Command {
    pub(crate) line: usize,
    pub(crate) text: String,
    pub(crate) shown: Vec<String>,
}

/// All blocks in order, or what is wrong and in which line.
pub(crate) fn blocks(document: &str) -> Result<Vec<Block>, String> {
    let mut blocks = Vec::new();
    let mut directives = Vec::new();
    let mut section = 0;
    let mut lines = document.lines().enumerate();
    while let Some((index, line)) = lines.next() {
        let number = index + 1;
        let bare = line.trim();
        if let Some(language) = bare.strip_prefix("```") {
            let indent = line.len() - line.trim_start().len();
            let mut text = String::new();
            loop {
                let Some((_, inside)) = lines.next() else {
                    return Err(format!("{number}: the block does not end"));
                };
                if inside.trim() == "```" {
                    break;
                }
                text.push_str(inside.get(indent..).unwrap_or_default());
                text.push('\n');
            }
            blocks.push(Block {
                line: number,
                section,
                language: language.split(',').next().unwrap_or_default().to_owned(),
                text,
                directives: std::mem::take(&mut directives),
            });
        } else if let Some(comment) = bare.strip_prefix("<!-- check:") {
            let comment = comment.strip_suffix("-->").map(str::trim);
            let read = comment.and_then(of_comment);
            directives.push(read.ok_or_else(|| format!("{number}: '{bare}' is not known"))?);
        } else if !bare.is_empty() && !directives.is_empty() {
            return Err(format!("{number}: a check is not followed by a block"));
        } else if line.starts_with('#') {
            section += 1;
        }
    }
    match directives.is_empty() {
        true => Ok(blocks),
        false => Err("the last check is not followed by a block".to_owned()),
    }
}

impl Block {
    /// Its commands: of `console` what stands behind `$`, with what is printed
    /// below; of `sh` every line.
    pub(crate) fn commands(&self) -> Vec<Command> {
        let mut commands: Vec<Command> = Vec::new();
        let mut goes_on = false;
        for (index, line) in self.text.lines().enumerate() {
            let number = self.line + 1 + index;
            let begins = match self.language.as_str() {
                "console" => line.strip_prefix("$ "),
                _ => Some(line).filter(|line| !line.is_empty() && !line.starts_with('#')),
            };
            let is_shown = self.language == "console";
            match (commands.last_mut(), begins) {
                (Some(last), _) if goes_on => {
                    last.text.push('\n');
                    last.text.push_str(line);
                }
                (_, Some(text)) => commands.push(Command {
                    line: number,
                    text: text.to_owned(),
                    shown: Vec::new(),
                }),
                (Some(last), None) if is_shown => last.shown.push(line.to_owned()),
                _ => {}
            }
            goes_on = line.ends_with('\\');
        }
        commands
    }
}

/// Whether what was printed is what is shown: `…` stands for anything, alone in
/// a line for any lines.
pub(crate) fn is_as_shown(shown: &[String], printed: &[&str]) -> bool {
    match shown.split_first() {
        None => printed.is_empty(),
        Some((first, rest)) if first.trim() == "…" => {
            (0..=printed.len()).any(|skipped| is_as_shown(rest, &printed[skipped..]))
        }
        Some((first, rest)) => printed.split_first().is_some_and(|(line, others)| {
            is_line_as_shown(first.trim_end(), line.trim_end()) && is_as_shown(rest, others)
        }),
    }
}

fn is_line_as_shown(shown: &str, printed: &str) -> bool {
    let Some((before, after)) = shown.split_once('…') else {
        return shown == printed;
    };
    let Some(rest) = printed.strip_prefix(before) else {
        return false;
    };
    let mut ends = rest.char_indices().map(|(at, _)| at).chain([rest.len()]);
    ends.any(|at| is_line_as_shown(after, &rest[at..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    const DOCUMENT: &str = "# Title

<!-- check: goes on, says \"ready\" -->

```console
$ one --flag \\
    --other
$ two
```

## Section

1. Inside of a list:

   ```console
   $ three
   shown
   ```

```rust,ignore
fn main() {}
```
";

    #[test]
    fn blocks_have_their_commands_and_what_is_said_of_them() {
        let blocks = blocks(DOCUMENT).unwrap();
        let languages: Vec<&str> = blocks.iter().map(|block| &*block.language).collect();
        assert_eq!(languages, ["console", "console", "rust"]);
        assert_eq!((blocks[0].line, blocks[0].section), (5, 1));
        assert_eq!((blocks[1].line, blocks[1].section), (15, 2));
        let ready = Directive::GoesOn {
            says: "ready".to_owned(),
        };
        assert_eq!(blocks[0].directives, [ready]);
        let commands = blocks[0].commands();
        assert_eq!(commands[0].text, "one --flag \\\n    --other");
        assert_eq!((&*commands[1].text, commands[1].line), ("two", 8));
        let three = &blocks[1].commands()[0];
        assert_eq!(
            (&*three.text, three.shown.join("|")),
            ("three", "shown".to_owned())
        );
    }

    #[test]
    fn comments_of_shell_scripts_are_no_commands() {
        let blocks = blocks("```sh\n# why\none  # how\n\ntwo\n```\n").unwrap();
        let commands = blocks[0].commands();
        let texts: Vec<&str> = commands.iter().map(|command| &*command.text).collect();
        assert_eq!(texts, ["one  # how", "two"]);
    }

    #[test]
    fn what_nobody_would_check_is_refused() {
        let refused = |text: &str| blocks(text).unwrap_err();
        assert_eq!(refused("```sh\none\n"), "1: the block does not end");
        let unknown = refused("<!-- check: perhaps -->\n```sh\n```\n");
        assert_eq!(unknown, "1: '<!-- check: perhaps -->' is not known");
        let stray = refused("<!-- check: ends 1 -->\n\ntext\n");
        assert_eq!(stray, "3: a check is not followed by a block");
    }

    #[test]
    fn dots_stand_for_anything_and_nothing_else_does() {
        let is = |shown: &str, printed: &str| {
            let shown: Vec<String> = shown.lines().map(str::to_owned).collect();
            is_as_shown(&shown, &printed.lines().collect::<Vec<_>>())
        };
        assert!(is("a\nb", "a\nb"));
        assert!(!is("a\nb", "a\nc"));
        assert!(!is("a", "a\nb"));
        assert!(!is("a\nb", "a"));
        assert!(is("a\n…\nd", "a\nb\nc\nd"));
        assert!(is("a\n…", "a"));
        assert!(!is("a\n…\nd", "a\nb"));
        assert!(is("at … ms, … of …", "at 12 ms, 3 of 4"));
        assert!(!is("at … ms", "at 12 s"));
    }
}
