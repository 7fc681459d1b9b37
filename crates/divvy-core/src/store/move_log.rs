//! The log of moves that a lease store keeps for a cluster: lines of text, of
//! which the last ones stay.

use crate::error::Invalid;
use crate::moves::{MOVES_BYTES_MAX, check_line};

/// Most moves of one call.
pub const MOVES_PER_CALL_MAX: usize = 1_000;
/// Most lines of a log of moves.
pub const MOVE_LINES_MAX: usize = 4_096;

/// Whether these can be added to a log.
pub fn check_moves(moves: &[String]) -> Result<(), Invalid> {
    if moves.len() > MOVES_PER_CALL_MAX {
        let rule = format!("must be at most {MOVES_PER_CALL_MAX}");
        return Err(Invalid::new("moves in one call", moves.len(), rule));
    }
    moves.iter().try_for_each(|line| check_line(line))
}

/// A log with these lines added, cut at its beginning to what may be kept: at
/// most [`MOVE_LINES_MAX`] lines and [`MOVES_BYTES_MAX`] bytes, every line with
/// its end.
///
/// ```
/// let moves = ["two".to_owned(), "three".to_owned()];
/// assert_eq!(divvy_core::store::with_moves("one\n".into(), &moves), "one\ntwo\nthree\n");
/// ```
pub fn with_moves(mut log: String, moves: &[String]) -> String {
    for line in moves {
        log.push_str(line);
        log.push('\n');
    }
    if log.len() > MOVES_BYTES_MAX {
        // A line that would be cut goes as a whole.
        let surplus = log.len() - MOVES_BYTES_MAX;
        let end = log.as_bytes()[surplus - 1..]
            .iter()
            .position(|byte| *byte == b'\n');
        log.drain(..end.map_or(log.len(), |end| surplus + end));
    }
    let mut ends = log.rmatch_indices('\n').skip(MOVE_LINES_MAX);
    if let Some((end, _)) = ends.next() {
        log.drain(..=end);
    }
    log
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_lines_stay_whole() {
        let line = |number: usize| format!("{number:>0$}", 99);
        let mut log = String::new();
        for number in 0..5_000 {
            log = with_moves(log, &[line(number)]);
            assert!(log.len() <= MOVES_BYTES_MAX);
        }
        let kept: Vec<&str> = log.lines().collect();
        assert_eq!(kept.len(), MOVES_BYTES_MAX / 100);
        assert_eq!(*kept[0], line(5_000 - kept.len()));
        assert_eq!(*kept[kept.len() - 1], line(4_999));
    }

    #[test]
    fn short_lines_are_counted() {
        let lines: Vec<String> = (0..MOVE_LINES_MAX).map(|it| it.to_string()).collect();
        let log = with_moves("one\ntwo\n".to_owned(), &lines[2..]);
        assert!(log.starts_with("one\n"));
        let log = with_moves(log, &["last".to_owned()]);
        assert!(log.starts_with("two\n") && log.ends_with("\nlast\n"));
        assert_eq!(log.lines().count(), MOVE_LINES_MAX);
    }

    #[test]
    fn what_is_no_line_is_refused() {
        let refused = |line: &str| check_moves(&[line.to_owned()]).is_err();
        assert!(refused("") && refused("a\nb") && refused(&"x".repeat(2049)));
        assert!(check_moves(&vec!["x".to_owned(); MOVES_PER_CALL_MAX + 1]).is_err());
        assert!(check_moves(&["x".repeat(2048)]).is_ok());
    }
}
