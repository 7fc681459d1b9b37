//! What happened, the last ten thousand of it.

use std::collections::VecDeque;

use crate::document::Event;

/// Events that are kept.
pub(crate) const EVENTS_MAX: usize = 10_000;

/// Events that one delta has at most: who wants them all asks for the timeline.
const EVENTS_TOLD_MAX: usize = 200;

/// What happened, in order.
#[derive(Debug, Default)]
pub(crate) struct Timeline {
    events: VecDeque<Event>,
    last: u64,
}

/// What is to be told of an event.
#[derive(Debug, Default)]
pub(crate) struct Told {
    pub(crate) worker: Option<usize>,
    pub(crate) partition: Option<String>,
    pub(crate) from: Option<usize>,
    pub(crate) to: Option<usize>,
    pub(crate) token: Option<String>,
    pub(crate) cause: Option<&'static str>,
}

impl Timeline {
    /// Another world begins, with nothing that happened; numbers go on.
    pub(crate) fn begin_anew(&mut self) {
        self.events.clear();
    }

    /// Adds an event.
    pub(crate) fn tell(&mut self, at_ms: u64, kind: &'static str, told: Told, text: String) {
        self.last += 1;
        if self.events.len() == EVENTS_MAX {
            self.events.pop_front();
        }
        self.events.push_back(Event {
            number: self.last,
            at_ms,
            kind,
            worker: told.worker,
            partition: told.partition,
            from: told.from,
            to: told.to,
            token: told.token,
            cause: told.cause,
            text,
        });
    }

    /// The number of the last event.
    pub(crate) const fn last(&self) -> u64 {
        self.last
    }

    /// The number of the oldest that is kept; the next one if none is.
    pub(crate) fn oldest(&self) -> u64 {
        self.events
            .front()
            .map_or(self.last + 1, |event| event.number)
    }

    /// Those after this number, the oldest first.
    pub(crate) fn after(&self, number: u64) -> impl ExactSizeIterator<Item = &Event> {
        let skipped = (number + 1).saturating_sub(self.oldest());
        let skipped = usize::try_from(skipped).unwrap_or(usize::MAX);
        self.events.iter().skip(skipped.min(self.events.len()))
    }

    /// What followers have not been told who know those up to this number: the
    /// last of it.
    pub(crate) fn untold(&self, told: u64) -> Vec<Event> {
        let events = self.after(told);
        let skipped = events.len().saturating_sub(EVENTS_TOLD_MAX);
        events.skip(skipped).cloned().collect()
    }
}

/// Events as lines of JSON.
pub(crate) fn to_json_lines(events: &[Event]) -> String {
    let lines = events.iter().map(|event| {
        let line = serde_json::to_string(event);
        line.expect("events have a JSON form") + "\n"
    });
    lines.collect()
}

/// Events as a table for a spreadsheet.
pub(crate) fn to_csv(events: &[Event]) -> String {
    let mut csv = String::from("number,at_ms,kind,worker,partition,from,to,token,cause,text\n");
    for event in events {
        let number = |number: Option<usize>| number.map_or_else(String::new, |n| n.to_string());
        let fields = [
            event.number.to_string(),
            event.at_ms.to_string(),
            event.kind.to_owned(),
            number(event.worker),
            quoted(event.partition.as_deref().unwrap_or("")),
            number(event.from),
            number(event.to),
            event.token.clone().unwrap_or_default(),
            event.cause.unwrap_or("").to_owned(),
            quoted(&event.text),
        ];
        csv.push_str(&fields.join(","));
        csv.push('\n');
    }
    csv
}

/// A text as a field of a table, where a spreadsheet takes nothing of it for a
/// formula.
fn quoted(text: &str) -> String {
    let guarded = match text.starts_with(['=', '+', '-', '@']) {
        true => format!("'{text}"),
        false => text.to_owned(),
    };
    format!("\"{}\"", guarded.replace('"', "\"\""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_ten_thousand_are_kept_and_found_by_number() {
        let mut timeline = Timeline::default();
        assert_eq!(timeline.oldest(), 1);
        for at in 0..EVENTS_MAX as u64 + 5 {
            timeline.tell(at, "note", Told::default(), format!("event {at}"));
        }
        assert_eq!((timeline.oldest(), timeline.last()), (6, 10_005));
        assert_eq!(timeline.after(0).len(), EVENTS_MAX);
        let rest: Vec<_> = timeline.after(10_003).map(|event| event.number).collect();
        assert_eq!(rest, [10_004, 10_005]);
        assert_eq!(timeline.after(u64::MAX - 1).len(), 0);
        let kept: Vec<Event> = timeline.after(0).cloned().collect();
        assert_eq!(to_json_lines(&kept).lines().count(), EVENTS_MAX);
    }

    #[test]
    fn another_world_has_a_timeline_of_its_own_and_numbers_go_on() {
        let mut timeline = Timeline::default();
        timeline.tell(1, "note", Told::default(), "before".into());
        timeline.begin_anew();
        assert_eq!((timeline.oldest(), timeline.after(0).len()), (2, 0));
        timeline.tell(0, "note", Told::default(), "after".into());
        let told: Vec<_> = timeline.after(0).map(|event| event.number).collect();
        assert_eq!(told, [2]);
    }

    #[test]
    fn texts_stay_texts_in_a_spreadsheet() {
        let mut timeline = Timeline::default();
        timeline.tell(1, "note", Told::default(), "=1+\"2\"".into());
        let kept: Vec<Event> = timeline.after(0).cloned().collect();
        assert!(to_csv(&kept).ends_with(",\"'=1+\"\"2\"\"\"\n"));
    }
}
