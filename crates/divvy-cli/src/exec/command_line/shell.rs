//! What only a shell would understand, in a command line that none reads.

use super::Word;

/// Words by which a shell joins commands, or sends their output somewhere.
const OPERATORS: [&str; 6] = ["|", "||", "&", "&&", ";", "2>&1"];
/// What such words begin with, if a file stands behind.
const REDIRECTIONS: [&str; 5] = [">", "<", "2>", "1>", "&>"];

/// What to say of a command line that was probably meant for a shell.
pub(super) fn meant_for(flag: &str, words: &[Word]) -> Option<String> {
    let [program, arguments @ ..] = words else {
        return None;
    };
    if is_assignment(&program.text) && !program.is_quoted {
        let text = &program.text;
        return Some(format!(
            "--{flag}: no shell reads '{text}': it is taken for the program; write env {text} …"
        ));
    }
    let word = arguments.iter().find(|word| is_for_shell(word))?;
    Some(format!(
        "--{flag}: no shell reads '{}': it is handed to {} as a word; write sh -c '…'",
        word.text, program.text
    ))
}

fn is_for_shell(word: &Word) -> bool {
    let text = word.text.as_str();
    let is_operator = OPERATORS.contains(&text)
        || REDIRECTIONS.iter().any(|begin| text.starts_with(begin))
        || text.ends_with(';');
    let is_variable = !word.is_literal && has_variable(text);
    !word.is_quoted && is_operator || is_variable
}

/// `$NAME` or `${NAME}`.
fn has_variable(text: &str) -> bool {
    let is_name = |c: char| c.is_ascii_alphabetic() || c == '_';
    text.split('$').skip(1).any(|behind| {
        let behind = behind.strip_prefix('{').unwrap_or(behind);
        behind.starts_with(is_name)
    })
}

/// `NAME=value`.
fn is_assignment(text: &str) -> bool {
    let Some((name, _)) = text.split_once('=') else {
        return false;
    };
    let is_first = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    is_first && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

#[cfg(test)]
mod tests {
    use super::super::words;
    use super::*;

    fn told(line: &str) -> Option<String> {
        meant_for("exec", &words(line).unwrap())
    }

    #[test]
    fn what_only_a_shell_would_understand_is_told_with_what_to_write() {
        let expected = "--exec: no shell reads '|': it is handed to python3 as a word; write sh -c \
                        '…'";
        assert_eq!(told("python3 a.py | tee log").as_deref(), Some(expected));
        for line in [
            "a > out",
            "a >out",
            "a < in",
            "a && b",
            "a; b ;",
            "a b; c",
            "a 2>&1",
            "a 2>/dev/null",
            "a $HOME",
            "a ${HOME}/x",
            "a \"$HOME\"",
            "X=1 a",
        ] {
            assert!(told(line).is_some() || line.starts_with("a;"), "{line}");
        }
    }

    #[test]
    fn what_is_quoted_or_means_nothing_to_a_shell_is_not_told() {
        for line in [
            "sh -c 'a | b > c; echo $X'",
            "awk '{{print $NF}}'",
            "a '|' \"&&\" \\;",
            "a $1 100$",
            "a --x=1 http://h/?a=1&b=2",
            "./a=b",
            "a {unit}",
        ] {
            assert_eq!(told(line), None, "{line}");
        }
    }
}
