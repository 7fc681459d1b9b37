//! What `divvy top` draws.

use divvy::observer::{Snapshot, WorkerStatus};
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Paragraph, Row, Sparkline, Table};

use super::{Order, Shown};
use crate::commands::status::{headline, misplaced, state_of, summary, unowned};
use crate::natural;
use crate::terminal::printable;
use crate::utc::ago;
use crate::wrap::wrap;

/// Widths of columns, the widest bar among them.
const NAME_MIN: u16 = 18;
const STATE_MIN: u16 = 14;
const STATE_MAX: u16 = 32;
const OWNS: u16 = 6;
const SHARE: u16 = 7;
const WEIGHT: u16 = 6;
const BAR_MAX: u16 = 20;
/// Below it, a bar says nothing.
const BAR_MIN: u16 = 6;
/// Between two columns.
const GAP: u16 = 1;
/// Below it, everything is told in fewer columns.
const NARROW: u16 = 60;
/// The store's answers as a curve, with room for what they are.
const LAG: u16 = 32;
const GOOD: Color = Color::Green;
const WATCH: Color = Color::Yellow;
const BAD: Color = Color::Red;

pub(super) fn draw(frame: &mut Frame<'_>, shown: &Shown) {
    let Some(snapshot) = &shown.snapshot else {
        let text = shown.trouble.as_deref().unwrap_or("looking …");
        frame.render_widget(Paragraph::new(printable(text).into_owned()), frame.area());
        return;
    };
    let width = usize::from(frame.area().width);
    let head = headline(snapshot, &shown.cluster);
    let head: Vec<String> = head.lines().flat_map(|line| wrapped(line, width)).collect();
    let has_curve = frame.area().width >= NARROW + LAG;
    let summary_width = if has_curve {
        width - usize::from(LAG)
    } else {
        width
    };
    let summary = wrapped(&summary(snapshot), summary_width);
    let head_rows = (head.len() + summary.len()) as u16;
    let workers = snapshot.workers.len() as u16 + 2;
    let most = frame.area().height / 2;
    let [top, load, moves, keys] = Layout::vertical([
        Constraint::Length(head_rows),
        Constraint::Length(workers.min(most.max(4))),
        Constraint::Min(2),
        Constraint::Length(1),
    ])
    .areas(frame.area());
    let [text, last] = Layout::vertical([
        Constraint::Length(head.len() as u16),
        Constraint::Length(summary.len() as u16),
    ])
    .areas(top);
    let lines: Vec<Line<'_>> = head.into_iter().map(Line::from).collect();
    frame.render_widget(Paragraph::new(lines), text);
    let [all, lag] = Layout::horizontal([
        Constraint::Fill(1),
        Constraint::Length(if has_curve { LAG } else { 0 }),
    ])
    .areas(last);
    draw_summary(frame, all, snapshot, summary);
    draw_lag(frame, lag, shown, snapshot);
    draw_workers(frame, load, shown, snapshot);
    draw_moves(frame, moves, shown);
    draw_keys(frame, keys, shown);
}

/// Text in lines of a width, with nothing in it that a terminal acts on.
fn wrapped(text: &str, width: usize) -> Vec<String> {
    wrap(printable(text).split(' '), "", width.max(1))
}

fn draw_summary(frame: &mut Frame<'_>, area: Rect, snapshot: &Snapshot, lines: Vec<String>) {
    let tone = match (unowned(snapshot), misplaced(snapshot)) {
        (0, 0) => GOOD,
        (0, _) => WATCH,
        _ => BAD,
    };
    let bold = Style::new().fg(tone).add_modifier(Modifier::BOLD);
    let lines = lines
        .into_iter()
        .map(|line| Line::from(Span::styled(line, bold)));
    frame.render_widget(Paragraph::new(lines.collect::<Vec<_>>()), area);
}

fn draw_lag(frame: &mut Frame<'_>, area: Rect, shown: &Shown, snapshot: &Snapshot) {
    let lag = format!("  lag {} ", lag_of(snapshot));
    let [label, curve] = Layout::horizontal([
        Constraint::Length(lag.chars().count() as u16),
        Constraint::Fill(1),
    ])
    .areas(area);
    frame.render_widget(Paragraph::new(lag), label);
    let lags = shown.lags.iter().rev().take(curve.width.into());
    let mut lags: Vec<u64> = lags.copied().collect();
    lags.reverse();
    frame.render_widget(Sparkline::default().data(lags).style(WATCH), curve);
}

/// How long the store took to answer.
fn lag_of(snapshot: &Snapshot) -> String {
    let ms = snapshot.took.as_secs_f64() * 1000.0;
    match ms < 100.0 {
        true => format!("{ms:.1} ms"),
        false => format!("{ms:.0} ms"),
    }
}

fn draw_workers(frame: &mut Frame<'_>, area: Rect, shown: &Shown, snapshot: &Snapshot) {
    let mut workers: Vec<&WorkerStatus> = snapshot.workers.iter().collect();
    match shown.order {
        Order::Name => workers.sort_by(|a, b| natural::compare(&a.name, &b.name)),
        Order::Load => workers.sort_by_key(|worker| std::cmp::Reverse(worker.owned)),
    }
    let most = workers.iter().map(|worker| worker.owned).max().unwrap_or(0);
    let states = workers.iter().map(|worker| state_of(worker).len() as u16);
    let state = states.max().unwrap_or(0).clamp(STATE_MIN, STATE_MAX);
    let columns = Columns::of(area.width, state);
    let all = snapshot.partitions.len().max(1) as f64;
    let rows = workers.into_iter().skip(shown.scrolled).map(|worker| {
        let tone = match (worker.life.is_here(), worker.healthy) {
            (false, _) => Style::new().fg(Color::DarkGray),
            (true, false) => Style::new().fg(BAD),
            (true, true) if worker.cordoned || worker.drained => Style::new().fg(WATCH),
            (true, true) => Style::new(),
        };
        let cells = [
            printable(&worker.name).into_owned(),
            state_of(worker),
            worker.owned.to_string(),
            format!("{:.1} %", worker.owned as f64 / all * 100.0),
            bar(worker.owned, most, columns.bar.into()),
            worker.weight.to_string(),
        ];
        columns.row(cells).style(tone)
    });
    let heading = Style::new().add_modifier(Modifier::BOLD);
    let headings = ["worker", "state", "owns", "share", "", "weight"].map(str::to_owned);
    let headings = columns.row(headings).style(heading);
    frame.render_widget(Table::new(rows, columns.widths()).header(headings), area);
}

/// The columns of workers that there is room for: name, state and what they own
/// always, then their share, a bar, and their weight.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Columns {
    state: u16,
    share: bool,
    bar: u16,
    weight: bool,
}

impl Columns {
    fn of(width: u16, state: u16) -> Self {
        let mut room = width.saturating_sub(NAME_MIN + GAP + state + GAP + OWNS);
        let mut take = |wanted: u16, least: u16| {
            let given = wanted.min(room.saturating_sub(GAP));
            let given = if given < least { 0 } else { given };
            room -= if given > 0 { given + GAP } else { 0 };
            given
        };
        Self {
            state,
            share: take(SHARE, SHARE) > 0,
            bar: take(BAR_MAX, BAR_MIN),
            weight: take(WEIGHT, WEIGHT) > 0,
        }
    }

    fn shown(&self) -> [(bool, Constraint); 6] {
        [
            (true, Constraint::Fill(1)),
            (true, Constraint::Length(self.state)),
            (true, Constraint::Length(OWNS)),
            (self.share, Constraint::Length(SHARE)),
            (self.bar > 0, Constraint::Length(self.bar)),
            (self.weight, Constraint::Length(WEIGHT)),
        ]
    }

    fn widths(&self) -> Vec<Constraint> {
        let shown = self.shown().into_iter().filter(|(is_shown, _)| *is_shown);
        shown.map(|(_, width)| width).collect()
    }

    fn row(&self, cells: [String; 6]) -> Row<'static> {
        let cells = cells.into_iter().zip(self.shown());
        let cells = cells.filter(|(_, (is_shown, _))| *is_shown);
        Row::new(cells.map(|(cell, _)| cell).collect::<Vec<_>>())
    }
}

/// A bar as long as this many of the most.
fn bar(owned: usize, most: usize, cells: usize) -> String {
    match most {
        0 => String::new(),
        most => "█".repeat((owned * cells).div_ceil(most)),
    }
}

fn draw_moves(frame: &mut Frame<'_>, area: Rect, shown: &Shown) {
    let is_narrow = area.width < NARROW;
    let rows = shown.moves.iter().take(area.height.into()).map(|entry| {
        let who = |name: &Option<String>| {
            let name = name.as_deref().unwrap_or("-");
            printable(name).into_owned()
        };
        let (when, partition) = (ago(entry.unix_ms), printable(&entry.partition).into_owned());
        let (from, to) = (who(&entry.from), who(&entry.to));
        let why = printable(&entry.cause).into_owned();
        match is_narrow {
            true => Row::new(vec![partition, to, why]),
            false => Row::new(vec![when, partition, from, to, why]),
        }
    });
    let heading = Style::new().add_modifier(Modifier::BOLD);
    let (headings, widths) = match is_narrow {
        true => (
            Row::new(vec!["last moves", "to", "why"]),
            vec![
                Constraint::Fill(3),
                Constraint::Fill(3),
                Constraint::Fill(4),
            ],
        ),
        false => (
            Row::new(vec!["last moves", "partition", "from", "to", "why"]),
            vec![
                Constraint::Length(12),
                Constraint::Fill(1),
                Constraint::Fill(1),
                Constraint::Fill(1),
                Constraint::Fill(3),
            ],
        ),
    };
    let table = Table::new(rows, widths).header(headings.style(heading));
    frame.render_widget(table, area);
}

fn draw_keys(frame: &mut Frame<'_>, area: Rect, shown: &Shown) {
    let line = match (&shown.trouble, shown.is_paused) {
        (Some(trouble), _) => {
            let text =
                format!("the store does not answer, this is the last that it said: {trouble}");
            Line::from(Span::styled(printable(&text).into_owned(), BAD))
        }
        (None, true) => Line::from(Span::styled("paused; space goes on", WATCH)),
        (None, false) => {
            let keys = match area.width < NARROW {
                true => "q end  s order  space pause  ↑↓ scroll",
                false => "q end   s order   space pause   arrows scroll",
            };
            Line::from(Span::styled(keys, Color::DarkGray))
        }
    };
    frame.render_widget(Paragraph::new(line), area);
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use divvy::MoveEntry;
    use divvy::observer::{Mode, PartitionStatus, WorkerLife};
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;

    use divvy::Control;

    use super::*;

    fn worker(name: &str, owned: usize) -> WorkerStatus {
        WorkerStatus {
            name: name.to_owned(),
            life: WorkerLife::Live,
            healthy: true,
            weight: 1.0,
            zone: None,
            instance: None,
            leads: false,
            cordoned: name == "b",
            drained: false,
            owned,
            lease: None,
            renewed: None,
            serves: None,
            max_partitions: None,
        }
    }

    fn shown() -> Shown {
        let partition = |number: usize| PartitionStatus {
            name: format!("demo:{number}"),
            owner: (number < 4).then(|| if number < 3 { "b" } else { "a" }.to_owned()),
            token: None,
            asked_back: false,
            orphaned: false,
            foreign: false,
            lease_left: None,
            desired: None,
            misaligned: None,
            weight: 1.0,
            pinned: None,
        };
        let moved = MoveEntry {
            partition: "demo:3".to_owned(),
            from: Some("b\u{1b}[2J".to_owned()),
            to: Some("a".to_owned()),
            cause: "b let its lease run out".to_owned(),
            version: None,
            token: None,
            unix_ms: 1,
            considered: Vec::new(),
        };
        let mut shown = Shown {
            cluster: "orders".to_owned(),
            ..Shown::default()
        };
        let snapshot = Snapshot {
            mode: Mode::Lease,
            store: "redis 7".to_owned(),
            version: None,
            lifecycle: None,
            quarantine: false,
            workers: vec![worker("a", 1), worker("b", 3)],
            partitions: (0..5).map(partition).collect(),
            wishes: Control::default(),
            problems: Vec::new(),
            took: Duration::from_millis(2),
        };
        shown.update(snapshot, vec![moved]);
        shown
    }

    fn drawn(shown: &Shown, width: u16, height: u16) -> String {
        let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
        terminal.draw(|frame| draw(frame, shown)).unwrap();
        terminal.backend().to_string()
    }

    #[test]
    fn it_shows_workers_loads_moves_and_lag() {
        let text = drawn(&shown(), 100, 20);
        for part in [
            "cluster orders in lease mode, redis 7, answered in 2.0 ms",
            "5 partitions on 2 workers: 4 owned, 1 without an owner",
            "live, cordoned",
            "60.0 %",
            "████████████████████",
            "b let its lease run out",
            "q end",
        ] {
            assert!(text.contains(part), "{part} is not in\n{text}");
        }
        assert!(!text.contains('\u{1b}'), "names are made harmless");
    }

    #[test]
    fn keys_change_the_order_and_trouble_keeps_the_last_picture() {
        let mut shown = shown();
        let places = |text: &str| (text.find("\"a ").unwrap(), text.find("\"b ").unwrap());
        let (a, b) = places(&drawn(&shown, 100, 20));
        assert!(a < b);
        shown.heed(super::super::Wish::Reorder);
        let (a, b) = places(&drawn(&shown, 100, 20));
        assert!(a > b);
        shown.trouble = Some("refused".to_owned());
        let text = drawn(&shown, 100, 20);
        assert!(
            text.contains("this is the last that it said: refused"),
            "{text}"
        );
        assert!(text.contains("5 partitions"), "{text}");
    }

    #[test]
    fn forty_columns_show_who_is_there_what_they_own_and_why_it_moved() {
        let text = drawn(&shown(), 40, 20);
        for part in [
            "cluster orders in lease mode, redis 7,",
            "5 partitions on 2 workers: 4 owned, 1",
            "without an owner",
            "live, cordoned",
            "demo:3",
            "b let its lease",
            "q end  s order  space pause  ↑↓ scroll",
        ] {
            assert!(text.contains(part), "{part} is not in\n{text}");
        }
        assert!(!text.contains("share") && !text.contains('█'), "{text}");
    }

    #[test]
    fn columns_come_by_what_they_are_worth() {
        let columns = |width| {
            let columns = Columns::of(width, STATE_MIN);
            (columns.share, columns.bar, columns.weight)
        };
        assert_eq!(columns(1), (false, 0, false));
        assert_eq!(columns(40), (false, 0, false));
        assert_eq!(columns(48), (true, 0, false));
        assert_eq!(columns(55), (true, 6, false));
        assert_eq!(columns(80), (true, 20, true));
    }

    #[test]
    fn it_fits_terminals_of_all_sizes() {
        for (width, height) in [(1, 1), (20, 5), (40, 10), (300, 100)] {
            drawn(&shown(), width, height);
        }
    }
}
