//! `assign --plot`.

use std::fs;

use roxmltree::{Document, Node};

use crate::scratch::Scratch;

fn drawn(args: &[&str]) -> String {
    let scratch = Scratch::new();
    scratch
        .run([&["assign", "--plot", "load.svg"], args].concat())
        .done();
    fs::read_to_string(scratch.path("load.svg")).expect("the picture is there")
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
