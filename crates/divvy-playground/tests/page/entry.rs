//! How somebody comes in: with a token, or for the first time.

use divvy_playground::Setup;
use divvy_testbed::Window;

use crate::served::Served;
use crate::visit::Visit;

const TOKEN: &str = "open-sesame-open-sesame";

#[tokio::test(flavor = "multi_thread")]
async fn token_is_asked_for_once() {
    let server = Served::guarded(Setup::default(), Some(TOKEN));
    let page = Visit::to(&server, Window::DESKTOP).await;
    page.until("document.querySelector('#unlock input')").await;
    page.picture("locked").await;
    page.run("window.asked = 0; window.real = fetch; window.fetch = (...all) => { asked += 1; return real(...all); }")
        .await;
    page.run("document.querySelector('#unlock input').value = 'wrong'")
        .await;
    page.run("document.querySelector('#unlock').requestSubmit()")
        .await;
    page.until("document.querySelector('#unlock input').value === ''")
        .await;
    // It asked once, and waits for another token.
    assert_eq!(page.run("asked").await, 1);
    page.run(&format!(
        "document.querySelector('#unlock input').value = '{TOKEN}'"
    ))
    .await;
    page.run("document.querySelector('#unlock').requestSubmit()")
        .await;
    page.settles("8").await;
    page.once_more().await;
    page.until("other.document.querySelector('#gone').hidden")
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn introduction_is_shown_until_it_was_read() {
    let server = Served::start(Setup::default());
    let page = Visit::to(&server, Window::DESKTOP).await;
    page.settles("8").await;
    page.until("document.querySelector('#intro').innerText.includes('each square is a partition')")
        .await;
    page.click("#intro-close").await;
    page.until("document.querySelector('#intro').hidden").await;
    page.once_more().await;
    page.until("other.document.querySelector('#intro').hidden")
        .await;
    page.run("other.close()").await;
    page.press("?").await;
    page.click("#help-intro").await;
    page.until("!document.querySelector('#intro').hidden").await;
    page.has_no_complaints();
}

#[tokio::test(flavor = "multi_thread")]
async fn world_that_begins_goes_although_time_was_held() {
    let server = Served::start(Setup::default());
    let page = Visit::to(&server, Window::DESKTOP).await;
    page.settles("8").await;
    page.press(" ").await;
    page.until("document.querySelector('.run.held')").await;
    page.click("[data-mode=lease]").await;
    page.until("document.querySelector('[data-mode=lease]').ariaPressed === 'true'")
        .await;
    page.until("!document.querySelector('.run.held')").await;
    page.settles("8").await;
    page.has_no_complaints();
}
