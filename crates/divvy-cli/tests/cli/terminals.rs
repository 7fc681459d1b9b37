//! What is different on a terminal: colour, width, long tables.

use std::io::Read as _;
use std::process::Stdio;

use crate::pty;
use crate::scratch::Scratch;

/// Runs the binary with a terminal of so many columns for stdout and stderr,
/// and returns what the terminal was sent.
fn on_terminal(columns: u16, no_color: Option<&str>, line: &str) -> String {
    let args: Vec<&str> = line.split(' ').collect();
    let (sent, code) = typed_on_terminal(columns, no_color, &args);
    assert_eq!(code, Some(0), "{line}: {sent}");
    sent
}

/// The same for any words, with the exit code.
fn typed_on_terminal(columns: u16, no_color: Option<&str>, args: &[&str]) -> (String, Option<i32>) {
    let (mut ours, theirs) = pty::open(columns);
    let scratch = Scratch::new();
    let mut command = scratch.command();
    command
        .args(args)
        .env_remove("NO_COLOR")
        .env("TERM", "xterm")
        .stdin(Stdio::null());
    if let Some(value) = no_color {
        command.env("NO_COLOR", value);
    }
    command
        .stdout(theirs.try_clone().expect("a second handle"))
        .stderr(theirs);
    let mut child = command.spawn().expect("the binary can be started");
    // The command holds the other end open until it is dropped.
    drop(command);
    let mut sent = Vec::new();
    // A terminal whose other end is closed reads as an error, after all else.
    let _ = ours.read_to_end(&mut sent);
    let code = child.wait().expect("it ends").code();
    (String::from_utf8(sent).expect("text"), code)
}

#[test]
fn a_terminal_gets_colour_unless_it_is_refused() {
    for line in [
        "assign --workers 3 --partitions 64",
        "explain default:17 --workers 3",
        "plan --workers 3 --add 1 --partitions 64",
        "key a --scheme djb2-js --partitions 5",
    ] {
        assert!(on_terminal(100, None, line).contains("\u{1b}["), "{line}");
        assert!(
            on_terminal(100, Some(""), line).contains("\u{1b}["),
            "{line}"
        );
        assert!(
            !on_terminal(100, Some("1"), line).contains('\u{1b}'),
            "{line}"
        );
    }
}

#[test]
fn a_long_table_is_shortened_unless_all_is_asked_for() {
    let rows = |text: &str| {
        text.lines()
            .filter(|line| line.starts_with("worker-"))
            .count()
    };
    let text = on_terminal(100, Some("1"), "assign --workers 100 --partitions 1000");
    assert_eq!(rows(&text), 40);
    assert!(text.contains("60 of 100 workers left out"), "{text}");
    assert_eq!(
        rows(&on_terminal(
            100,
            Some("1"),
            "assign --workers 100 --partitions 1000 --all"
        )),
        100
    );
}

#[test]
fn a_long_plan_keeps_those_who_come_go_or_change_most() {
    let line = "plan --strategy balanced --workers 100 --add 2 --remove worker-7 --partitions 2000";
    let rows = |text: &str| -> Vec<String> {
        let rows = text.lines().filter(|line| line.starts_with("worker-"));
        rows.map(|line| line.split(' ').next().unwrap_or_default().to_owned())
            .collect()
    };
    let text = on_terminal(100, Some("1"), line);
    let shown = rows(&text);
    assert_eq!(shown.len(), 40);
    for id in ["worker-7", "worker-100", "worker-101"] {
        assert!(shown.contains(&id.to_owned()), "{id}: {shown:?}");
    }
    assert!(
        text.contains("62 of 102 workers left out, those that change least: --all or --json"),
        "{text}"
    );
    let all = on_terminal(100, Some("1"), &format!("{line} --all"));
    assert_eq!(rows(&all).len(), 102);
}

#[test]
fn lists_are_as_wide_as_the_terminal() {
    for columns in [60, 120] {
        let text = on_terminal(
            columns,
            Some("1"),
            "assign --workers 2 --partitions 200 --list",
        );
        let longest = text
            .lines()
            .filter(|line| line.starts_with("  "))
            .map(|line| line.trim_end().len())
            .max();
        let longest = longest.expect("a list");
        assert!(
            (usize::from(columns) - 12..=usize::from(columns)).contains(&longest),
            "{columns} {longest}"
        );
    }
}

#[test]
fn json_is_the_same_everywhere() {
    let line = "assign --workers 3 --partitions 64 --json";
    let sent = on_terminal(100, None, line).replace("\r\n", "\n");
    assert_eq!(sent, Scratch::new().run(line.split(' ')).done());
}

#[test]
fn nothing_that_was_typed_is_sent_to_a_terminal_as_it_is() {
    let title = "a\u{1b}]0;pwn\u{7}";
    let flag = format!("--{title}\u{202e}");
    let cases: [&[&str]; 6] = [
        &[title],
        &[&flag],
        &["assign", title],
        &["assign", &flag],
        &["assign", "--strategy", title],
        &["key", "--partitions", title],
    ];
    for args in cases {
        let (sent, code) = typed_on_terminal(100, None, args);
        assert_eq!(code, Some(2), "{args:?}: {sent:?}");
        for c in ['\u{1b}', '\u{7}', '\u{202e}'] {
            assert!(!sent.contains(c), "{args:?}: {sent:?}");
        }
    }
    let (sent, _) = typed_on_terminal(100, None, &[title]);
    assert!(sent.contains("'a\\u{1b}]0;pwn\\u{7}'"), "{sent}");
}

#[test]
fn nothing_is_wider_than_a_terminal_of_eighty_columns() {
    let workers: Vec<String> = (0..6)
        .map(|n| format!("a-rather-long-name-of-node-{n}=8000"))
        .collect();
    let workers = workers.join(",");
    for line in [
        "assign --partitions 500 --strategy weighted-consistent-hash --no-fast-path",
        "plan --partitions 500 --add 2 --strategy balanced",
        "plan --partitions 500 --add 2",
        "explain default:17",
        "explain default:17 --partitions 500 --strategy zoned",
    ] {
        let sent = on_terminal(80, Some("1"), &format!("{line} --workers {workers}"));
        // What the spinner drew is gone again.
        let lines = sent.lines().map(|line| line.rsplit("\u{1b}[2K").next());
        for shown in lines.flatten() {
            assert!(shown.chars().count() <= 80, "{line}: {shown}\n{sent}");
        }
    }
}

/// The lines that were shown, without what a spinner drew meanwhile.
fn lines_of(sent: &str) -> Vec<&str> {
    let lines = sent.lines().map(|line| line.rsplit("\u{1b}[2K").next());
    lines
        .flatten()
        .map(|line| line.trim_start_matches('\r'))
        .collect()
}

#[test]
fn tables_with_long_texts_fit_forty_eighty_and_a_hundred_and_twenty_columns() {
    let scratch = Scratch::new();
    let store = format!("file:{}", scratch.path("store.db").display());
    let name = "a-rather-long-name-of-a-workload-with-many-units";
    let set = format!("workload set {name} 64 --max-per-worker 2 --store {store}");
    scratch.run(set.split(' ')).done();
    let measured = "--time 20ms --leases 20 --interval 10ms --clients 2";
    let lines = [
        format!("doctor --store {store}"),
        format!("workload list --store {store}"),
        format!("bench stores --store memory --store {store} {measured}"),
        format!("bench stores --processes 2 --store {store} {measured}"),
        "playground --list".to_owned(),
    ];
    for (line, columns) in lines
        .iter()
        .flat_map(|line| [(line, 40), (line, 80), (line, 120)])
    {
        let sent = on_terminal(columns, Some("1"), line);
        for shown in lines_of(&sent) {
            let width = shown.chars().count();
            assert!(width <= usize::from(columns), "{line}: {shown}\n{sent}");
        }
    }
}

#[test]
fn long_texts_go_on_below_themselves_on_a_narrow_terminal() {
    let scratch = Scratch::new();
    let store = format!("file:{}", scratch.path("store.db").display());
    let line = format!("doctor --store {store}");
    let found = "this client may read, write, list, watch and delete them";
    let piped = scratch.run(line.split(' ')).done();
    assert!(piped.contains(found), "what is piped is whole: {piped}");
    let sent = on_terminal(40, Some("1"), &line);
    let folded = "records  good     this client may\n\
                  (leader           read, write, list,\n\
                  mode)             watch and delete\n                  them\n";
    assert!(lines_of(&sent).join("\n").contains(folded), "{sent}");
}

#[test]
fn stores_stand_above_their_figures_where_a_table_is_too_wide() {
    let line = "bench stores --store memory --time 20ms --leases 20 --interval 10ms --clients 2";
    let wide = on_terminal(120, Some("1"), line);
    assert!(lines_of(&wide)[0].starts_with("store   load  "), "{wide}");
    let narrow = on_terminal(40, Some("1"), line);
    let lines = lines_of(&narrow);
    assert_eq!(lines[0], "memory", "{narrow}");
    assert!(lines[1].starts_with("load  "), "{narrow}");
}
