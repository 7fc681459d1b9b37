//! The page in a real browser. Its pictures are kept in `target/playground`.

mod entry;
mod keyboard;
mod layout;
mod sayings;
mod served;
mod visit;

use divvy_playground::Setup;
use divvy_testbed::Window;

use crate::served::Served;
use crate::visit::Visit;

#[tokio::test(flavor = "multi_thread")]
async fn page_adds_and_kills_workers_and_watches_the_cluster_converge() {
    let server = Served::start(Setup::default());
    let page = Visit::to(&server, Window::DESKTOP).await;
    page.settles("8").await;
    page.click("#add-quick").await;
    page.settles("9").await;
    page.click("#cards .card:nth-child(3) .more").await;
    page.until("document.querySelector('.floating:not([hidden]) .danger')")
        .await;
    page.picture("menu").await;
    page.click(".floating .danger").await;
    page.settles("8").await;
    page.until("document.querySelector('#events .killed')")
        .await;
    page.until("document.querySelector('#strip .owned dd').textContent === '256 / 256'")
        .await;
    page.picture("light").await;
    page.has_no_complaints();
}

#[tokio::test(flavor = "multi_thread")]
async fn page_explains_where_a_partition_is() {
    let server = Served::start(Setup::default());
    let page = Visit::to(&server, Window::DARK).await;
    page.settles("8").await;
    page.click("#cells-focus").await;
    page.press("Home").await;
    page.press("ArrowRight").await;
    page.press("Enter").await;
    page.until("document.querySelector('.explanation .why').textContent.length > 20")
        .await;
    page.until("document.querySelectorAll('.ranking tbody tr').length === 8")
        .await;
    page.until("document.querySelector('.ranking .owns')").await;
    page.until("document.querySelector('.owners b')").await;
    page.picture("explanation").await;
    page.press("Escape").await;
    page.until("document.querySelector('#pane').hidden").await;
    page.has_no_complaints();
}

#[tokio::test(flavor = "multi_thread")]
async fn death_happens_as_the_page_foretold() {
    let server = Served::start(Setup::default());
    let page = Visit::to(&server, Window::DESKTOP).await;
    page.settles("8").await;
    page.click("#cards .card:nth-child(4) .main").await;
    // The sentence pushes the button down when it comes.
    page.until("document.querySelector('.worker-detail .why').textContent.length > 20")
        .await;
    page.click("#what-if").await;
    page.until("document.querySelectorAll('.gains li').length === 7")
        .await;
    page.picture("what-if").await;
    page.click("#kill-planned").await;
    page.until("document.querySelector('.forecast h3.good')")
        .await;
    page.settles("7").await;
    page.picture("as-planned").await;
    page.has_no_complaints();
}

#[tokio::test(flavor = "multi_thread")]
async fn page_runs_a_scenario_to_its_goal() {
    let server = Served::start(Setup::default());
    let page = Visit::to(&server, Window::DESKTOP).await;
    page.settles("8").await;
    page.press("s").await;
    page.until("document.querySelectorAll('.stories li').length >= 20")
        .await;
    page.picture("scenarios").await;
    page.click("[data-scenario=half-the-fleet-dies] button")
        .await;
    page.until("!document.querySelector('#scenario').hidden")
        .await;
    page.run("document.querySelector('[aria-label=Speed]').value = '10'")
        .await;
    page.run("document.querySelector('[aria-label=Speed]').dispatchEvent(new Event('change'))")
        .await;
    page.until("document.querySelector('#scenario .verdict').textContent === 'passed'")
        .await;
    page.until("!document.querySelector('#scenario .unmet')")
        .await;
    page.picture("scenario").await;
    page.has_no_complaints();
}

#[tokio::test(flavor = "multi_thread")]
async fn page_switches_modes() {
    let server = Served::start(Setup::default());
    let page = Visit::to(&server, Window::DESKTOP).await;
    page.settles("8").await;
    page.click("[data-mode=lease]").await;
    page.until("document.querySelector('[data-mode=lease]').ariaPressed === 'true'")
        .await;
    page.settles("8").await;
    page.until("!document.querySelector('#cards .leads')").await;
    page.picture("lease").await;
    page.has_no_complaints();
}

#[tokio::test(flavor = "multi_thread")]
async fn page_comes_back_to_a_server_that_was_started_again() {
    let mut server = Served::start(Setup::default());
    let page = Visit::to(&server, Window::DESKTOP).await;
    page.settles("8").await;
    page.has_no_complaints();
    let run = page.run("document.body.dataset.run").await;
    server.stop();
    page.until("!document.querySelector('#gone').hidden").await;
    page.picture("gone").await;
    server.start_again();
    page.until("document.querySelector('#gone').hidden").await;
    page.until(&format!("document.body.dataset.run !== {run}"))
        .await;
    page.settles("8").await;
    // A browser says of its own accord that nobody answered.
    let others = page.complaints().into_iter();
    let others: Vec<_> = others
        .filter(|words| !words.contains("net::ERR_"))
        .collect();
    assert_eq!(others, Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn time_holds_and_steps_by_the_keyboard() {
    let server = Served::start(Setup::default());
    let page = Visit::to(&server, Window::DESKTOP).await;
    page.settles("8").await;
    page.press(" ").await;
    page.until("document.querySelector('.run.held')").await;
    // What the page shows may run ahead a little until it hears where time stands.
    let clock =
        "fetch('/api/v1/snapshot').then((reply) => reply.json()).then((all) => all.clock.now_ms";
    let held = page.run(&format!("{clock})")).await;
    page.press(".").await;
    page.until_answered(&format!("{clock} > {held})")).await;
    page.press(" ").await;
    page.until("!document.querySelector('.run.held')").await;
    page.press("?").await;
    page.until("document.querySelector('#sheet').open").await;
    page.picture("keys").await;
    page.has_no_complaints();
}

#[tokio::test(flavor = "multi_thread")]
async fn page_fits_small_windows_and_both_themes() {
    let server = Served::start(Setup::default());
    let page = Visit::to(&server, Window::PHONE).await;
    page.settles("8").await;
    page.until("document.documentElement.scrollWidth <= innerWidth")
        .await;
    page.picture("small").await;
    page.click("#cards .card:nth-child(2) .main").await;
    page.until("!document.querySelector('#pane').hidden").await;
    page.until("document.documentElement.scrollWidth <= innerWidth")
        .await;
    page.picture("small-worker").await;
    page.press("Escape").await;
    let ground = "getComputedStyle(document.querySelector('.panel')).backgroundColor";
    let light = page.run(ground).await;
    page.see(Window::DARK).await;
    page.until(&format!("{ground} !== {light}")).await;
    page.press("t").await;
    page.until(&format!("{ground} === {light}")).await;
    page.press("t").await;
    page.until(&format!("{ground} !== {light}")).await;
    page.picture("dark").await;
    page.has_no_complaints();
}

#[tokio::test(flavor = "multi_thread")]
async fn page_follows_two_hundred_workers_with_ten_thousand_partitions() {
    let setup = Setup {
        workers: 200,
        partitions: 10_000,
        ..Setup::default()
    };
    let server = Served::start(setup);
    let page = Visit::to(&server, Window::DESKTOP).await;
    page.settles("200").await;
    assert_eq!(
        page.run("document.querySelectorAll('#cards .card').length")
            .await,
        200
    );
    page.picture("large").await;
    page.click("#cards .card:nth-child(2) .more").await;
    page.until("document.querySelector('.floating:not([hidden]) .danger')")
        .await;
    page.click(".floating .danger").await;
    page.settles("199").await;
    page.has_no_complaints();
}
