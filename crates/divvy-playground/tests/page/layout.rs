//! Where things lie: nothing covers another, whatever its words are.

use divvy_playground::Setup;
use divvy_testbed::Window;
use serde_json::json;

use crate::served::Served;
use crate::visit::Visit;

const TABLET: Window = Window {
    width: 1024,
    height: 768,
    is_dark: false,
};

#[tokio::test(flavor = "multi_thread")]
async fn cards_hold_what_is_long() {
    let server = Served::start(Setup::default());
    let page = Visit::to(&server, Window::DESKTOP).await;
    page.settles("8").await;
    let name = "payments-eu-west-1-7f9c6d5b8-x2x9q";
    page.act(&json!({"action": "add", "name": name, "zone": "zone-0"}))
        .await;
    page.settles("9").await;
    for (action, worker) in [("broken", 2), ("slow", 2)] {
        page.act(&json!({"action": action, "worker": worker, "on": true}))
            .await;
    }
    page.act(&json!({"action": "pause", "worker": 1})).await;
    let inside = "[...document.querySelectorAll('#cards .card')].every((card) => {
        const end = card.querySelector('.more').getBoundingClientRect().left;
        return [...card.querySelectorAll('.who > *, .much, .line > *, .badge')].every((part) => part.getBoundingClientRect().right <= end + 1);
    })";
    page.until(inside).await;
    let last = "document.querySelector('#cards .card:last-child')";
    page.until(&format!(
        "{last}.querySelector('.name').scrollWidth > {last}.querySelector('.name').clientWidth"
    ))
    .await;
    page.until(&format!(
        "{last}.querySelector('.main').title.includes('{name}')"
    ))
    .await;
    page.until(&format!("{last}.innerText.includes('zone-0')"))
        .await;
    page.until(&format!("!{last}.innerText.includes('zone zone-0')"))
        .await;
    page.until(
        "document.querySelector('#cards .card:nth-child(2) .state').textContent === 'paused'",
    )
    .await;
    // No rule for something else makes a badge wide.
    page.until(
        "document.querySelector('#cards .card:nth-child(3) .badge.trouble').offsetWidth < 70",
    )
    .await;
    page.picture("long-names").await;
    page.click("#events-kinds summary").await;
    page.until(
        "[...document.querySelectorAll('.kinds input')].every((box) => box.offsetWidth < 24)",
    )
    .await;
    page.until("getComputedStyle(document.querySelector('.kinds .event.store'), '::before').content === 'none'")
        .await;
    page.has_no_complaints();
}

#[tokio::test(flavor = "multi_thread")]
async fn pane_lies_beside_the_rest() {
    let server = Served::start(Setup::default());
    let page = Visit::to(&server, TABLET).await;
    page.settles("8").await;
    page.click("#cards .card:nth-child(2) .main").await;
    let left = "document.querySelector('#pane').getBoundingClientRect().left";
    for other in ["#invariants", "#help", "#cells-focus", "#strip"] {
        page.until(&format!(
            "document.querySelector('{other}').getBoundingClientRect().right <= {left} + 1"
        ))
        .await;
    }
    page.picture("tablet").await;
    page.has_no_complaints();
}

#[tokio::test(flavor = "multi_thread")]
async fn small_page_ends_somewhere() {
    let server = Served::start(Setup::default());
    let page = Visit::to(&server, Window::PHONE).await;
    page.settles("8").await;
    page.until("document.querySelector('#events .fold')").await;
    page.run("document.querySelector('#events .fold button').click()")
        .await;
    page.until("document.querySelectorAll('#events li').length > 200")
        .await;
    page.until("document.documentElement.scrollHeight < 3200")
        .await;
    page.has_no_complaints();
}

#[tokio::test(flavor = "multi_thread")]
async fn heavy_partitions_are_told_by_the_map_and_the_cards() {
    let server = Served::start(Setup::default());
    let page = Visit::to(&server, Window::DESKTOP).await;
    page.settles("8").await;
    page.act(&json!({"action": "partition_weight", "partition": "orders:9", "weight": 6}))
        .await;
    page.until("document.querySelector('#legend').innerText.includes('weight 1 to 6')")
        .await;
    page.until("document.querySelector('#cards .weighs').textContent.startsWith('load ')")
        .await;
    page.picture("weights").await;
    page.has_no_complaints();
}
