//! What becomes of each worker.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::io::{self, Write};

use divvy::Worker;

use crate::bar::Scale;
use crate::holding::Holding;
use crate::preview::{Pair, Preview};
use crate::table::{Align, GAP, Table, Tone};
use crate::terminal::{ROWS_MAX, Terminal};

/// One worker with what it gains and loses.
struct Line<'a> {
    pair: Pair<'a>,
    gained: usize,
    lost: usize,
}

/// Writes a row per worker; on a terminal only those that change most, unless
/// all are asked for.
pub(super) fn write(
    preview: &Preview<'_>,
    terminal: &Terminal,
    all: bool,
    out: &mut dyn Write,
) -> io::Result<()> {
    let mut lines = lines(preview);
    let count = lines.len();
    let ratios = lines.iter().map(|line| line.pair.after);
    let scale = Scale::of(ratios.flatten().map(|holding| holding.ratio()));
    if !all && !terminal.fits(count) {
        keep_most_changed(&mut lines);
    }
    let table = |bars| table(&lines, bars, preview.is_loaded());
    let table = match terminal.interactive {
        true => {
            let plain = table(None);
            let room = terminal.width.saturating_sub(plain.width() + GAP);
            scale.within(room).map_or(plain, |bars| table(Some(bars)))
        }
        false => table(Some(scale)),
    };
    table.write(out, terminal.colour)?;
    let left_out = count - lines.len();
    if left_out > 0 {
        writeln!(
            out,
            "\n{left_out} of {count} workers left out, those that change least: --all or --json \
             shows all"
        )?;
    }
    Ok(())
}

fn lines<'a>(preview: &Preview<'a>) -> Vec<Line<'a>> {
    // Unlike the proposal's changes, these know of partitions that are gone.
    let moves = preview.after().moves_from(preview.before);
    let mut gained: BTreeMap<&str, usize> = BTreeMap::new();
    let mut lost: BTreeMap<&str, usize> = BTreeMap::new();
    for change in &moves {
        if let Some(to) = &change.to {
            *gained.entry(to).or_default() += 1;
        }
        if let Some(from) = &change.from {
            *lost.entry(from).or_default() += 1;
        }
    }
    let of = |counts: &BTreeMap<&str, usize>, id| counts.get(id).copied().unwrap_or(0);
    let line = |pair: Pair<'a>| Line {
        gained: of(&gained, pair.id),
        lost: of(&lost, pair.id),
        pair,
    };
    preview.workers().into_iter().map(line).collect()
}

/// Keeps those that come, go, or change most, in the order that they have.
fn keep_most_changed(lines: &mut Vec<Line<'_>>) {
    let mut order: Vec<usize> = (0..lines.len()).collect();
    order.sort_by_key(|&index| {
        let line = &lines[index];
        let stays = line.pair.before.is_some() && line.pair.after.is_some();
        (stays, Reverse(line.gained + line.lost), index)
    });
    let mut kept = vec![false; lines.len()];
    for index in order.into_iter().take(ROWS_MAX) {
        kept[index] = true;
    }
    let mut kept = kept.into_iter();
    lines.retain(|_| kept.next().unwrap_or(false));
}

fn table(lines: &[Line<'_>], bars: Option<Scale>, loaded: bool) -> Table {
    let weighted = lines.iter().any(|line| worker(line).weight() != 1.0);
    let zoned = lines.iter().any(|line| worker(line).zone().is_some());
    let noted = lines.iter().any(|line| !note(line).is_empty());
    let counts = steps(lines, |holding| holding.partitions as u64);
    let loads = steps(lines, |holding| holding.load);

    let mut headings = vec![("worker", Align::Left)];
    headings.extend(weighted.then_some(("weight", Align::Right)));
    headings.extend(zoned.then_some(("zone", Align::Left)));
    headings.push(("partitions", Align::Right));
    headings.extend(loaded.then_some(("load", Align::Right)));
    headings.push(("change", Align::Right));
    headings.extend(noted.then_some(("note", Align::Left)));
    let headings = headings
        .into_iter()
        .map(|(name, align)| (name.to_owned(), align));
    let bar = bars.map(|scale| (scale.heading(), Align::Left));
    let mut table = Table::new(headings.chain(bar));
    for (line, (count, load)) in lines.iter().zip(counts.into_iter().zip(loads)) {
        let mut cells = vec![line.pair.id.to_owned()];
        cells.extend(weighted.then(|| worker(line).weight().to_string()));
        cells.extend(zoned.then(|| worker(line).zone().unwrap_or_default().to_owned()));
        cells.push(count);
        cells.extend(loaded.then_some(load));
        cells.push(signed(line.gained, line.lost));
        cells.extend(noted.then(|| note(line)));
        let eligible = line.pair.after.filter(|after| after.worker.is_eligible());
        let bar = |scale: Scale| eligible.map(|after| scale.bar(after.ratio()));
        cells.extend(bars.map(|scale| bar(scale).unwrap_or_default()));
        table.push(tone(line), cells);
    }
    table
}

/// `before -> after` of each, the numbers one below the other; a worker that
/// is not there has none.
fn steps(lines: &[Line<'_>], number: impl Fn(&Holding<'_>) -> u64) -> Vec<String> {
    let text = |holding: &Option<Holding<'_>>| {
        let number = holding.as_ref().map(&number);
        number.map_or_else(|| "-".to_owned(), |number| number.to_string())
    };
    let pairs: Vec<(String, String)> = lines
        .iter()
        .map(|line| (text(&line.pair.before), text(&line.pair.after)))
        .collect();
    let width = pairs
        .iter()
        .map(|(_, after)| after.len())
        .max()
        .unwrap_or(0);
    let step = |(before, after): &(String, String)| format!("{before} -> {after:>width$}");
    pairs.iter().map(step).collect()
}

/// What is gained and what is lost.
fn signed(gained: usize, lost: usize) -> String {
    match (gained, lost) {
        (0, 0) => "0".to_owned(),
        (gained, 0) => format!("+{gained}"),
        (0, lost) => format!("-{lost}"),
        (gained, lost) => format!("+{gained} -{lost}"),
    }
}

/// The worker as it will be, or as it was where it leaves.
fn worker<'a>(line: &Line<'a>) -> &'a Worker {
    let holding = line.pair.after.or(line.pair.before);
    holding.expect("a worker is there before or after").worker
}

fn note(line: &Line<'_>) -> String {
    match (&line.pair.before, &line.pair.after) {
        (_, None) => "gone".to_owned(),
        (_, Some(after)) if !after.worker.is_eligible() => after
            .worker
            .veto()
            .map_or_else(String::new, |veto| veto.to_string()),
        (None, Some(_)) => "new".to_owned(),
        (Some(_), Some(_)) => String::new(),
    }
}

fn tone(line: &Line<'_>) -> Tone {
    match line.pair.after {
        Some(after) if after.worker.is_eligible() && after.ratio() > 1.0 => Tone::LastHigh,
        Some(after) if after.worker.is_eligible() => Tone::LastLow,
        _ => Tone::Faint,
    }
}
