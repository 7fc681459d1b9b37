//! A browser shows pages, does what it is told, and says what went wrong.

use std::fs;

use divvy_testbed::{Browser, Window};

use crate::wire::SOON;

const PAGE: &str = "data:text/html,<button onclick=\"this.textContent='pressed'\">press</button>\
    <input><script>document.title = 'loaded'</script>";
const BROKEN: &str = "data:text/html,<script>console.error('says so'); \
    throw new Error('gives up')</script>";

#[tokio::test]
async fn browser_clicks_types_and_takes_pictures() {
    let browser = Browser::start().await;
    let tab = browser.open(PAGE, Window::PHONE).await;
    tab.until(SOON, "document.title === 'loaded'").await;
    assert_eq!(tab.run("innerWidth").await, 360);
    tab.click("button").await;
    tab.until(
        SOON,
        "document.querySelector('button').textContent === 'pressed'",
    )
    .await;
    tab.click("input").await;
    tab.press("x").await;
    tab.until(SOON, "document.querySelector('input').value === 'x'")
        .await;
    tab.see(Window::DARK).await;
    tab.until(SOON, "matchMedia('(prefers-color-scheme: dark)').matches")
        .await;
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("pictures/page.png");
    tab.picture(&file).await;
    assert!(fs::read(file).unwrap().starts_with(b"\x89PNG"));
    assert_eq!(tab.complaints(), Vec::<String>::new());
}

#[tokio::test]
async fn browser_collects_what_a_page_complains_of() {
    let browser = Browser::start().await;
    let tab = browser.open(BROKEN, Window::DESKTOP).await;
    divvy_testbed::until(SOON, "both complaints", async || {
        tab.complaints().len() == 2
    })
    .await;
    let complaints = tab.complaints().join("\n");
    assert!(complaints.contains("says so"), "{complaints}");
    assert!(complaints.contains("gives up"), "{complaints}");
}
