//! Somebody who has the page open.

use std::path::Path;
use std::time::Duration;

use divvy_testbed::{Browser, Tab, Window, until};
use serde_json::{Value, json};

use crate::served::Served;

/// Generous, because a browser on a busy machine is slow; nothing waits longer than it must.
const SOON: Duration = Duration::from_secs(60);

/// A browser with the page.
#[derive(Debug)]
pub(crate) struct Visit {
    tab: Tab,
    _browser: Browser,
}

impl Visit {
    pub(crate) async fn to(server: &Served, window: Window) -> Self {
        let browser = Browser::start().await;
        let tab = browser.open(&server.url(), window).await;
        Self {
            tab,
            _browser: browser,
        }
    }

    /// Waits until so many workers are there, and everything is where it should be.
    pub(crate) async fn settles(&self, workers: &str) {
        let count = "document.querySelector('#workers-count').textContent";
        self.until(&format!("{count} === '{workers}'")).await;
        self.until("document.querySelector('#strip .state.good')")
            .await;
    }

    pub(crate) async fn until(&self, expression: &str) {
        self.tab.until(SOON, expression).await;
    }

    /// The same for what has to be asked of the server.
    pub(crate) async fn until_answered(&self, promise: &str) {
        until(SOON, promise, async || self.run(promise).await == true).await;
    }

    pub(crate) async fn run(&self, expression: &str) -> Value {
        self.tab.run(expression).await
    }

    pub(crate) async fn click(&self, selector: &str) {
        self.tab.click(selector).await;
    }

    pub(crate) async fn press(&self, key: &str) {
        self.tab.press(key).await;
    }

    /// Does what the page has no button for.
    pub(crate) async fn act(&self, action: &Value) {
        let done = self
            .run(&format!(
                "fetch('/api/v1/actions', {{method: 'POST', headers: {{'content-type': 'application/json'}},
                    body: JSON.stringify({action})}}).then((reply) => reply.ok)"
            ))
            .await;
        assert_eq!(done, true, "{action}");
    }

    /// From the next snapshot on the page sees another world: `change` has the snapshot as `it`,
    /// and nothing new comes after it.
    pub(crate) async fn pretend(&self, change: &str) {
        self.run(&format!(
            "(() => {{
                const real = window.fetch;
                window.fetch = async (path, options) => {{
                    if (path.includes('/events')) return new Promise(() => {{}});
                    const reply = await real(path, options);
                    if (!path.endsWith('/snapshot')) return reply;
                    const it = await reply.json();
                    {change};
                    return new Response(JSON.stringify(it));
                }};
            }})()"
        ))
        .await;
        self.act(&json!({"action": "reset", "workers": 8, "partitions": 256}))
            .await;
    }

    /// Opens the page once more, as `other`: as the same visitor sees it after it was loaded again.
    pub(crate) async fn once_more(&self) {
        let open =
            "addEventListener('click', () => { window.other = open('/'); }, {once: true}); true";
        self.run(open).await;
        self.click(".brand").await;
        self.until("other.document.querySelector('#workers-count').textContent === '8'")
            .await;
    }

    pub(crate) async fn see(&self, window: Window) {
        self.tab.see(window).await;
    }

    /// Keeps a picture under this name.
    pub(crate) async fn picture(&self, name: &str) {
        // What is drawn on canvases is there after the next frame.
        let frames = "new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(() => drawn(true))))";
        self.run(frames).await;
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/playground");
        self.tab.picture(&root.join(format!("{name}.png"))).await;
    }

    pub(crate) fn complaints(&self) -> Vec<String> {
        self.tab.complaints()
    }

    pub(crate) fn has_no_complaints(&self) {
        assert_eq!(self.complaints(), Vec::<String>::new());
    }
}
