//! `assign --plot` and `plan --plot`.

use std::fs;

use roxmltree::{Document, Node};

use crate::scratch::Scratch;

fn drawn(args: &[&str]) -> String {
    drawn_by(&Scratch::new(), &[&["assign"], args].concat())
}

fn drawn_by(scratch: &Scratch, args: &[&str]) -> String {
    scratch.run([args, &["--plot", "load.svg"]].concat()).done();
    fs::read_to_string(scratch.path("load.svg")).expect("the picture is there")
}

fn planned(scratch: &Scratch, line: &str) -> String {
    drawn_by(scratch, &line.split(' ').collect::<Vec<_>>())
}

fn of_class<'a, 'input>(
    picture: &'a Document<'input>,
    tag: &str,
    class: &str,
) -> Vec<Node<'a, 'input>> {
    let elements = picture.descendants().filter(Node::is_element);
    elements
        .filter(|node| node.tag_name().name() == tag && node.attribute("class") == Some(class))
        .collect()
}

fn number(node: &Node<'_, '_>, attribute: &str) -> f64 {
    let text = node
        .attribute(attribute)
        .unwrap_or_else(|| panic!("{attribute} of {node:?}"));
    text.parse()
        .unwrap_or_else(|_| panic!("{attribute} is {text}"))
}

#[test]
fn every_worker_has_a_bar_and_the_mean_a_line_with_a_label() {
    for count in [1, 3, 30, 300, 2000] {
        let svg = drawn(&["--workers", &count.to_string(), "--partitions", "4000"]);
        let picture = Document::parse(&svg).expect("well-formed XML");
        let width = number(&picture.root_element(), "width");
        let height = number(&picture.root_element(), "height");
        let bars = of_class(&picture, "rect", "bar");
        assert_eq!(bars.len(), count);
        for bar in &bars {
            assert!(number(bar, "x") >= 0.0 && number(bar, "x") + number(bar, "width") <= width);
            assert!(number(bar, "y") >= 0.0 && number(bar, "y") + number(bar, "height") <= height);
        }
        assert_eq!(of_class(&picture, "line", "mean").len(), 1);
        let label = of_class(&picture, "text", "mean")[0]
            .text()
            .expect("a label");
        let mean = 4000.0 / count as f64;
        let shown: f64 = label
            .trim_start_matches("mean ")
            .replace(',', "")
            .parse()
            .expect("a number");
        assert!(
            (shown - mean).abs() < 0.06_f64.max(mean * 0.001),
            "{label} {mean}"
        );
        let labels = of_class(&picture, "text", "worker").len();
        assert!(
            (1..=150).contains(&labels) && labels <= count,
            "{labels} labels of {count}"
        );
    }
}

#[test]
fn heights_are_in_proportion_to_loads() {
    let svg = drawn(&[
        "--strategy",
        "round-robin",
        "--workers",
        "a,b,c=0",
        "--partitions",
        "3",
    ]);
    let picture = Document::parse(&svg).expect("well-formed XML");
    let heights: Vec<f64> = of_class(&picture, "rect", "bar")
        .iter()
        .map(|bar| number(bar, "height"))
        .collect();
    assert_eq!(heights[2], 0.0);
    assert!((heights[0] / heights[1] - 2.0).abs() < 0.001, "{heights:?}");
}

#[test]
fn names_cannot_break_the_picture() {
    let name = "<a&b>\"'\u{ffff}]]>";
    let svg = drawn(&["--workers", &format!("{name},b"), "--partitions", "9"]);
    let picture = Document::parse(&svg).expect("well-formed XML");
    let titles = of_class(&picture, "rect", "bar");
    let title = titles[0]
        .first_element_child()
        .and_then(|title| title.text())
        .expect("a title");
    assert!(title.starts_with("<a&b>\"'\u{fffd}]]>: "), "{title}");
    let labels = of_class(&picture, "text", "worker");
    assert_eq!(labels[0].text(), Some("<a&b>\"'\u{fffd}]]>"));
}

#[test]
fn bars_stand_in_natural_order_under_a_title_that_says_what_they_are() {
    let svg = drawn(&[
        "--workers",
        "11",
        "--partitions",
        "110",
        "--strategy",
        "consistent-hash",
    ]);
    let picture = Document::parse(&svg).expect("well-formed XML");
    let names: Vec<_> = of_class(&picture, "text", "worker")
        .iter()
        .map(|node| node.text().expect("a name").to_owned())
        .collect();
    let expected: Vec<String> = (0..11).map(|number| format!("worker-{number}")).collect();
    assert_eq!(names, expected);
    let texts: Vec<&str> = picture
        .descendants()
        .filter(|node| node.is_text())
        .filter_map(|node| node.text())
        .collect();
    assert!(texts.contains(&"Load per worker"));
    assert!(
        texts
            .iter()
            .any(|text| text
                .starts_with("consistent-hash · 110 partitions on 11 workers · max/mean ")),
        "{texts:?}"
    );
}

#[test]
fn extreme_loads_have_an_axis_that_holds_them() {
    let scratch = Scratch::new();
    scratch.file("p.csv", "key,weight\na,9223372036854775800\nb,1\n");
    scratch
        .run("assign --workers 2 --partitions @p.csv --plot load.svg".split(' '))
        .done();
    let svg = fs::read_to_string(scratch.path("load.svg")).expect("the picture is there");
    assert!(!svg.contains("NaN") && !svg.contains("inf"), "{svg}");
    let picture = Document::parse(&svg).expect("well-formed XML");
    let height = number(&picture.root_element(), "height");
    assert!(
        of_class(&picture, "rect", "bar")
            .iter()
            .all(|bar| number(bar, "height") < height)
    );
}

#[test]
fn a_plan_has_a_pair_of_bars_for_each_worker_that_stays() {
    for (count, pitch_min) in [(3, 100.0), (30, 30.0), (110, 10.0), (1000, 1.0)] {
        let line = format!(
            "plan --strategy balanced --partitions 4000 --workers {count} --add 2 --remove worker-1"
        );
        let svg = planned(&Scratch::new(), &line);
        let picture = Document::parse(&svg).expect("well-formed XML");
        let before = of_class(&picture, "rect", "before");
        let after = of_class(&picture, "rect", "after");
        assert_eq!((before.len(), after.len()), (count, count + 1));
        // In natural order the first worker stays and the second leaves.
        let (left, right) = (number(&before[0], "x"), number(&after[0], "x"));
        let width = number(&before[0], "width");
        assert!(
            (right - left - width).abs() < 0.02,
            "{left} {right} {width}"
        );
        assert!(number(&before[1], "x") - left >= pitch_min * 0.5);
        let picture_width = number(&picture.root_element(), "width");
        for bar in before.iter().chain(&after) {
            assert!(number(bar, "x") >= 0.0);
            assert!(number(bar, "x") + number(bar, "width") <= picture_width);
            assert!(number(bar, "y") >= 0.0 && number(bar, "height") > 0.0);
        }
        assert_eq!(of_class(&picture, "line", "mean").len(), 1);
        assert_eq!(of_class(&picture, "line", "band").len(), 0);
    }
}

#[test]
fn who_comes_and_goes_stands_out() {
    let line = "plan --strategy balanced --workers 3 --add 1 --remove worker-1 --partitions 64";
    let svg = planned(&Scratch::new(), line);
    let picture = Document::parse(&svg).expect("well-formed XML");
    let names: Vec<_> = of_class(&picture, "text", "worker")
        .iter()
        .filter_map(Node::text)
        .map(str::to_owned)
        .collect();
    assert_eq!(
        names,
        ["worker-0", "worker-1 (gone)", "worker-2", "worker-3 (new)"]
    );
    let colours = |class| -> Vec<String> {
        let bars = of_class(&picture, "rect", class);
        let fill = |bar: &Node<'_, '_>| bar.attribute("fill").expect("a colour").to_owned();
        bars.iter().map(fill).collect()
    };
    let (before, after) = (colours("before"), colours("after"));
    assert!(before[0] == before[2] && before[0] != before[1]);
    assert!(after[0] == after[1] && after[0] != after[2]);
    for key in ["before", "before, leaves", "after", "after, new"] {
        let shown = picture.descendants().any(|node| node.text() == Some(key));
        assert!(shown, "{key}");
    }
}

#[test]
fn the_band_is_drawn_where_it_is_kept() {
    let scratch = Scratch::new();
    let rows: String = (0..200)
        .map(|number| format!("p:{number},{}\n", 10 + number % 90))
        .collect();
    scratch.file("p.csv", format!("key,weight\n{rows}"));
    let bands = |strategy: &str, workers: &str| {
        let line =
            format!("plan --strategy {strategy} --workers {workers} --to 5 --partitions @p.csv");
        let svg = planned(&scratch, &line);
        let picture = Document::parse(&svg).expect("well-formed XML");
        let heights: Vec<f64> = of_class(&picture, "line", "band")
            .iter()
            .map(|line| number(line, "y1"))
            .collect();
        let mean = number(&of_class(&picture, "line", "mean")[0], "y1");
        (heights, mean)
    };
    for strategy in ["weighted-consistent-hash", "zoned"] {
        let (edges, mean) = bands(strategy, "4");
        assert_eq!(edges.len(), 2, "{strategy}");
        assert!(edges[0] > mean && mean > edges[1], "{edges:?} {mean}");
    }
    assert_eq!(bands("balanced", "4").0.len(), 0);
}

#[test]
fn with_weighted_workers_each_has_a_band_of_its_own() {
    let scratch = Scratch::new();
    scratch.file(
        "p.csv",
        "key,weight\na,5\nb,6\nc,7\nd,5\ne,6\nf,9\ng,4\nh,5\n",
    );
    let line = "plan --strategy weighted-consistent-hash --workers a,b=2 --to a=2,b=2,c=1 \
                --partitions @p.csv";
    let svg = planned(&scratch, line);
    let picture = Document::parse(&svg).expect("well-formed XML");
    assert_eq!(of_class(&picture, "line", "share").len(), 3);
    assert_eq!(of_class(&picture, "line", "band").len(), 6);
}

#[test]
fn a_plan_for_nothing_or_a_giant_has_no_number_that_is_none() {
    let scratch = Scratch::new();
    scratch.file("p.csv", "key,weight\na,9223372036854775800\nb,1\nc,2\n");
    for line in [
        "plan --workers 2 --add 1 --partitions 0",
        "plan --workers 2 --add 1 --partitions @p.csv --strategy weighted-consistent-hash",
        "plan --workers a,b=0 --to a=0,b --partitions 5 --strategy balanced",
    ] {
        let svg = planned(&scratch, line);
        assert!(!svg.contains("NaN") && !svg.contains("inf"), "{svg}");
        let picture = Document::parse(&svg).expect("well-formed XML");
        let height = number(&picture.root_element(), "height");
        for class in ["before", "after"] {
            for bar in of_class(&picture, "rect", class) {
                assert!(number(&bar, "height") < height, "{line}");
            }
        }
    }
}

#[test]
fn the_mean_is_told_from_the_bars_next_to_it() {
    let args = "--strategy balanced --workers 50 --partitions 349";
    let svg = drawn(&args.split(' ').collect::<Vec<_>>());
    let picture = Document::parse(&svg).expect("well-formed XML");
    let label = of_class(&picture, "text", "mean")[0].text();
    assert_eq!(label, Some("mean 6.98"));
}

#[test]
fn long_names_have_room_below_the_bars() {
    for name in ["W".repeat(200), "名".repeat(80), "m".repeat(26)] {
        let ids: Vec<String> = (0..30).map(|number| format!("{name}{number}")).collect();
        let svg = drawn(&["--workers", &ids.join(","), "--partitions", "90"]);
        let picture = Document::parse(&svg).expect("well-formed XML");
        let height = number(&picture.root_element(), "height");
        let shown = of_class(&picture, "text", "worker")[0].text();
        let shown = shown.expect("a name").chars().count();
        // As wide as high, at 11 pixels, and turned by 45 degrees.
        let down = shown as f64 * 11.0 * std::f64::consts::FRAC_1_SQRT_2;
        assert!(104.0 + 320.0 + 14.0 + down <= height, "{shown} {height}");
    }
}

#[test]
fn nothing_invisible_is_drawn() {
    let svg = drawn(&["--workers", "a\u{202e}b,c\u{feff}d", "--partitions", "9"]);
    assert!(!svg.contains(['\u{202e}', '\u{feff}']), "{svg}");
    let picture = Document::parse(&svg).expect("well-formed XML");
    let names = of_class(&picture, "text", "worker");
    let names: Vec<_> = names.iter().filter_map(Node::text).collect();
    assert_eq!(names, ["a\\u{202e}b", "c\\u{feff}d"]);
}
