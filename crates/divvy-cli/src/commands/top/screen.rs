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

const BAR_CELLS: usize = 20;
const GOOD: Color = Color::Green;
const WATCH: Color = Color::Yellow;
const BAD: Color = Color::Red;

pub(super) fn draw(frame: &mut Frame<'_>, shown: &Shown) {
    let Some(snapshot) = &shown.snapshot else {
        let text = shown.trouble.as_deref().unwrap_or("looking …");
        frame.render_widget(Paragraph::new(printable(text).into_owned()), frame.area());
        return;
    };
    let head = headline(snapshot, &shown.cluster);
    let head_rows = head.lines().count() as u16 + 1;
    let workers = snapshot.workers.len() as u16 + 2;
    let most = frame.area().height / 2;
    let [top, load, moves, keys] = Layout::vertical([
        Constraint::Length(head_rows),
        Constraint::Length(workers.min(most.max(4))),
        Constraint::Min(2),
        Constraint::Length(1),
    ])
    .areas(frame.area());
    draw_head(frame, top, shown, snapshot, &head);
    draw_workers(frame, load, shown, snapshot);
    draw_moves(frame, moves, shown);
    draw_keys(frame, keys, shown);
}

fn draw_head(frame: &mut Frame<'_>, area: Rect, shown: &Shown, snapshot: &Snapshot, head: &str) {
    let [text, last] = Layout::vertical([Constraint::Min(1), Constraint::Length(1)]).areas(area);
    let lines = head
        .lines()
        .map(|line| Line::from(printable(line).into_owned()));
    frame.render_widget(Paragraph::new(lines.collect::<Vec<_>>()), text);
    let lag = format!("  lag {} ", lag_of(snapshot));
    let [all, label, curve] = Layout::horizontal([
        Constraint::Min(40),
        Constraint::Length(lag.chars().count() as u16),
        Constraint::Length(16),
    ])
    .areas(last);
    let tone = match (unowned(snapshot), misplaced(snapshot)) {
        (0, 0) => GOOD,
        (0, _) => WATCH,
        _ => BAD,
    };
    let bold = Style::new().fg(tone).add_modifier(Modifier::BOLD);
    let line = Line::from(Span::styled(summary(snapshot), bold));
    frame.render_widget(Paragraph::new(line), all);
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
    let all = snapshot.partitions.len().max(1) as f64;
    let rows = workers.into_iter().skip(shown.scrolled).map(|worker| {
        let tone = match (worker.life.is_here(), worker.healthy) {
            (false, _) => Style::new().fg(Color::DarkGray),
            (true, false) => Style::new().fg(BAD),
            (true, true) if worker.cordoned || worker.drained => Style::new().fg(WATCH),
            (true, true) => Style::new(),
        };
        Row::new([
            printable(&worker.name).into_owned(),
            state_of(worker),
            worker.weight.to_string(),
            worker.owned.to_string(),
            format!("{:.1} %", worker.owned as f64 / all * 100.0),
            bar(worker.owned, most),
        ])
        .style(tone)
    });
    let widths = [
        Constraint::Fill(3),
        Constraint::Fill(2),
        Constraint::Length(7),
        Constraint::Length(8),
        Constraint::Length(8),
        Constraint::Length(BAR_CELLS as u16),
    ];
    let heading = Style::new().add_modifier(Modifier::BOLD);
    let headings = Row::new(["worker", "state", "weight", "owns", "share", ""]).style(heading);
    frame.render_widget(Table::new(rows, widths).header(headings), area);
}

/// A bar as long as this many of the most.
fn bar(owned: usize, most: usize) -> String {
    match most {
        0 => String::new(),
        most => "█".repeat((owned * BAR_CELLS).div_ceil(most)),
    }
}

fn draw_moves(frame: &mut Frame<'_>, area: Rect, shown: &Shown) {
    let rows = shown.moves.iter().take(area.height.into()).map(|entry| {
        let who = |name: &Option<String>| {
            let name = name.as_deref().unwrap_or("-");
            printable(name).into_owned()
        };
        Row::new([
            ago(entry.unix_ms),
            printable(&entry.partition).into_owned(),
            who(&entry.from),
            who(&entry.to),
            printable(&entry.cause).into_owned(),
        ])
    });
    let widths = [
        Constraint::Length(12),
        Constraint::Fill(1),
        Constraint::Fill(1),
        Constraint::Fill(1),
        Constraint::Fill(3),
    ];
    let heading = Style::new().add_modifier(Modifier::BOLD);
    let headings = Row::new(["last moves", "partition", "from", "to", "why"]).style(heading);
    frame.render_widget(Table::new(rows, widths).header(headings), area);
}

fn draw_keys(frame: &mut Frame<'_>, area: Rect, shown: &Shown) {
    let line = match (&shown.trouble, shown.is_paused) {
        (Some(trouble), _) => {
            let text =
                format!("the store does not answer, this is the last that it said: {trouble}");
            Line::from(Span::styled(printable(&text).into_owned(), BAD))
        }
        (None, true) => Line::from(Span::styled("paused; space goes on", WATCH)),
        (None, false) => Line::from(Span::styled(
            "q end   s order   space pause   arrows scroll",
            Color::DarkGray,
        )),
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
    fn it_fits_terminals_of_all_sizes() {
        for (width, height) in [(1, 1), (20, 5), (40, 10), (300, 100)] {
            drawn(&shown(), width, height);
        }
    }
}
