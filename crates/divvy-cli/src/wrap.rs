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

/// A text in lines of at most `width` characters, with the blanks that it begins
/// with before each. A word that is longer is broken.
pub(crate) fn fold(text: &str, width: usize) -> Vec<String> {
    if text.chars().count() <= width {
        return vec![text.to_owned()];
    }
    let words = text.trim_start();
    let indent = &text[..text.len() - words.len()];
    let mut lines = Vec::new();
    for line in wrap(words.split(' '), indent, width) {
        let chars: Vec<char> = line.chars().collect();
        let parts = chars.chunks(width.max(1));
        lines.extend(parts.map(|part| part.iter().collect::<String>()));
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folded_text_keeps_to_the_width_its_indent_and_every_character() {
        assert_eq!(fold("short", 5), ["short"]);
        assert_eq!(fold("", 5), [""]);
        assert_eq!(fold("  two words", 8), ["  two", "  words"]);
        assert_eq!(fold("käse file:/tmp/x", 6), ["käse", "file:/", "tmp/x"]);
    }

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
