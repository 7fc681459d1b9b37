//! What the page says of the world: why, how sure, and how old it is.

use divvy_playground::Setup;
use divvy_testbed::Window;
use serde_json::json;

use crate::served::Served;
use crate::visit::Visit;

/// Picks a partition by what happened to it.
async fn explain(page: &Visit, partition: &str) {
    page.run(&format!(
        "document.querySelector('#events-search').value = '{partition}:'"
    ))
    .await;
    page.run("document.querySelector('#events-search').dispatchEvent(new Event('input'))")
        .await;
    page.until(&format!(
        "document.querySelector('#events [data-partition=\"{partition}\"] button')"
    ))
    .await;
    page.click(&format!("#events [data-partition=\"{partition}\"] button"))
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn pane_says_why_and_by_whom() {
    let server = Served::start(Setup::default());
    let page = Visit::to(&server, Window::DESKTOP).await;
    page.settles("8").await;
    explain(&page, "orders:3").await;
    page.until("document.querySelector('.explanation .method').textContent.length > 20")
        .await;
    page.until(
        "document.querySelector('.owners small').textContent.includes('nobody had it before')",
    )
    .await;
    page.act(&json!({"action": "pin", "partition": "orders:3", "worker": 6}))
        .await;
    let buttons = "[...document.querySelectorAll('.explanation form:not([hidden]) button')].map((button) => button.textContent).join()";
    page.until(&format!("{buttons} === 'unpin,set'")).await;
    page.until("document.querySelector('.explanation .method').textContent.includes('pinned')")
        .await;
    page.until(
        "document.querySelector('.owners small').textContent.includes('an operator pinned it')",
    )
    .await;
    page.picture("pinned").await;
    page.run("[...document.querySelectorAll('.explanation button')].find((button) => button.textContent === 'unpin').click()")
        .await;
    page.until(&format!("{buttons} === 'pin,set'")).await;
    page.has_no_complaints();
}

#[tokio::test(flavor = "multi_thread")]
async fn events_between_the_first_answer_and_the_first_delta_are_shown() {
    let server = Served::start(Setup::default());
    let page = Visit::to(&server, Window::DESKTOP).await;
    page.settles("8").await;
    // The answer is from before anything started, and comes after the deltas.
    page.run(
        "(() => {
            const real = window.fetch;
            window.fetch = async (path, options) => {
                const reply = await real(path, options);
                if (!path.includes('timeline?after=0')) return reply;
                window.fetch = real;
                const { events, oldest } = await reply.json();
                await new Promise((go) => { window.goOn = go; });
                return new Response(JSON.stringify({ events: events.slice(0, 4), oldest }));
            };
        })()",
    )
    .await;
    page.act(&json!({"action": "reset", "workers": 8, "partitions": 600}))
        .await;
    page.act(&json!({"action": "hold"})).await;
    page.until("window.goOn").await;
    // One delta is for all of it, and has only the last events.
    page.act(&json!({"action": "step", "ms": 10_000})).await;
    page.until("document.querySelector('#strip .owned dd').textContent === '600 / 600'")
        .await;
    page.run("window.goOn()").await;
    explain(&page, "orders:3").await;
    page.has_no_complaints();
}

#[tokio::test(flavor = "multi_thread")]
async fn overlap_is_said_and_nothing_else_is_promised() {
    let server = Served::start(Setup::default());
    let page = Visit::to(&server, Window::DESKTOP).await;
    page.settles("8").await;
    page.until("document.querySelector('#overlap').hidden")
        .await;
    page.act(&json!({"action": "settings", "exclusive": false}))
        .await;
    page.until("!document.querySelector('#overlap').hidden && document.querySelector('#overlap').title.length > 20")
        .await;
    page.press("i").await;
    page.until(
        "document.querySelector('#broken').innerText.includes('not promised in overlap mode')",
    )
    .await;
    page.until(
        "!document.querySelector('#broken').innerText.includes('no partition with two owners')",
    )
    .await;
    page.has_no_complaints();
}

#[tokio::test(flavor = "multi_thread")]
async fn trace_is_shown_where_it_broke() {
    let server = Served::start(Setup::default());
    let page = Visit::to(&server, Window::DESKTOP).await;
    page.settles("8").await;
    page.pretend(
        "it.invariants.violations = [{invariant: 'I1', property: 'One owner at a time.', seen: 'two had it', \
         at_ms: it.clock.now_ms, trace: '/api/v1/trace'}]",
    )
    .await;
    page.until("document.querySelector('#invariants.bad')")
        .await;
    page.click("#invariants").await;
    page.click(".violations .link").await;
    page.until("document.querySelector('.trace mark')").await;
    page.until(
        "(() => { const trace = document.querySelector('.trace').getBoundingClientRect();
            const mark = document.querySelector('.trace mark').getBoundingClientRect();
            return mark.bottom > trace.top && mark.top < trace.bottom; })()",
    )
    .await;
    page.until("document.querySelector('.violations p').getBoundingClientRect().height >= 14 && document.querySelector('.violations').clientHeight >= 40")
        .await;
    page.picture("trace").await;
    page.has_no_complaints();
}

#[tokio::test(flavor = "multi_thread")]
async fn failure_has_a_reason_and_a_replay_a_name() {
    let server = Served::start(Setup::default());
    let page = Visit::to(&server, Window::DESKTOP).await;
    page.settles("8").await;
    page.pretend(
        "it.source = 'replayed'; it.settings.seed = 4711; it.scenario = {name: 'x', title: 'X', goal: 'all is well', \
         state: 'failed', reason: 'a step was refused', progress: 1, at_ms: 1, lasts_ms: 1, numbers: []}",
    )
    .await;
    page.until("document.querySelector('#scenario .reason').textContent === 'a step was refused'")
        .await;
    page.until("document.querySelector('#source').textContent === 'replay of seed 4711'")
        .await;
    page.has_no_complaints();
}

#[tokio::test(flavor = "multi_thread")]
async fn old_news_of_a_live_cluster_are_said_to_be_old() {
    let server = Served::start(Setup::default());
    let page = Visit::to(&server, Window::DESKTOP).await;
    page.settles("8").await;
    page.pretend(
        "it.source = 'observed'; it.mode = 'lease'; it.actions = []; it.settings = {}; \
         it.store = {state: 'down', trouble: 'the connection was lost', latency_ms: null}; \
         it.workers.forEach((worker) => { worker.lease_ms = null; worker.lease_left_ms = 500; })",
    )
    .await;
    page.until("document.querySelector('#old').innerText.includes('has not answered since')")
        .await;
    page.until("document.querySelector('#old').innerText.includes('the connection was lost')")
        .await;
    page.until("document.body.classList.contains('stale')")
        .await;
    // There is no clock without a length, and no menu with nothing in it.
    page.until("document.querySelectorAll('#cards .card:not(.clockless)').length === 0")
        .await;
    page.until("document.querySelector('.tools details').hidden")
        .await;
    // What cannot be done is not tried.
    page.click("#cards .card:nth-child(2) .main").await;
    page.until("document.querySelector('#pane .forecast').hidden")
        .await;
    page.press("w").await;
    page.press("?").await;
    page.until("document.querySelector('#sheet').open && !document.querySelector('#sheet').innerText.includes('what if')")
        .await;
    page.picture("old-news").await;
    page.has_no_complaints();
}

#[tokio::test(flavor = "multi_thread")]
async fn who_is_gone_does_not_die_again() {
    let server = Served::start(Setup::default());
    let page = Visit::to(&server, Window::DESKTOP).await;
    page.settles("8").await;
    page.click("#cards .card:nth-child(3) .main").await;
    page.until("!document.querySelector('#pane .forecast').hidden")
        .await;
    page.press("k").await;
    page.until("document.querySelector('#cards .card:nth-child(3).gone')")
        .await;
    page.until("document.querySelector('#pane .forecast').hidden")
        .await;
    page.has_no_complaints();
}
