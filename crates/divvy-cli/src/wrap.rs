//! Words in lines of a width.

/// Joins `words` by spaces into lines of at most `width` characters, each
/// behind `indent`. A word that is longer has a line of its own.
pub(crate) fn wrap<'a>(
    words: impl IntoIterator<Item = &'a str>,
    indent: &str,
    width: usize,
) -> Vec<String> {
    let mut lines = Vec::new();
    let mut line = String::new();
    let mut columns = 0;
    for word in words {
        let length = word.chars().count();
        if !line.is_empty() && columns + 1 + length > width {
            lines.push(std::mem::take(&mut line));
        }
        if line.is_empty() {
            line.push_str(indent);
            columns = indent.chars().count();
        } else {
            line.push(' ');
            columns += 1;
        }
        line.push_str(word);
        columns += length;
    }
    if !line.is_empty() {
        lines.push(line);
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_keep_to_the_width_and_lose_no_word() {
        let text = "the highest score owns it and averyveryverylongword stands alone";
        let lines = wrap(text.split(' '), "  ", 16);
        assert_eq!(
            lines
                .join(" ")
                .split_whitespace()
                .collect::<Vec<_>>()
                .join(" "),
            text
        );
        for line in lines {
            assert!(
                line.chars().count() <= 16 || !line.trim().contains(' '),
                "{line}"
            );
        }
    }
}
