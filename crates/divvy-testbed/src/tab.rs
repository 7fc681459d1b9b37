//! A page in a browser: looked at, clicked and typed into as a person does.

use std::fs;
use std::path::Path;
use std::time::Duration;

use data_encoding::BASE64;
use serde_json::{Value, json};

use crate::devtools::DevTools;
use crate::until::until;

/// How a page is seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// In CSS pixels.
    pub width: u32,
    /// In CSS pixels.
    pub height: u32,
    /// Whether the system prefers dark pages.
    pub is_dark: bool,
}

impl Window {
    /// A light desktop.
    pub const DESKTOP: Self = Self {
        width: 1440,
        height: 900,
        is_dark: false,
    };
    /// A dark desktop.
    pub const DARK: Self = Self {
        is_dark: true,
        ..Self::DESKTOP
    };
    /// A small phone.
    pub const PHONE: Self = Self {
        width: 360,
        height: 740,
        is_dark: false,
    };
}

/// A tab of a [`Browser`](crate::Browser).
#[derive(Debug)]
pub struct Tab {
    devtools: DevTools,
    session: String,
}

/// What a page says when something is wrong.
const COMPLAINTS: [&str; 3] = [
    "Runtime.exceptionThrown",
    "Runtime.consoleAPICalled",
    "Log.entryAdded",
];

impl Tab {
    pub(crate) async fn open(devtools: DevTools, address: &str, window: Window) -> Self {
        let blank = json!({"url": "about:blank"});
        let made = devtools.ask(None, "Target.createTarget", blank).await;
        let target = json!({"targetId": made["targetId"], "flatten": true});
        let attached = devtools.ask(None, "Target.attachToTarget", target).await;
        let session = attached["sessionId"].as_str().expect("a session has an id");
        let tab = Self {
            session: session.to_owned(),
            devtools,
        };
        for domain in ["Page.enable", "Runtime.enable", "Log.enable"] {
            tab.ask(domain, json!({})).await;
        }
        tab.see(window).await;
        tab.ask("Page.navigate", json!({"url": address})).await;
        tab
    }

    /// Changes the window.
    pub async fn see(&self, window: Window) {
        let scheme = if window.is_dark { "dark" } else { "light" };
        let size = json!({
            "width": window.width, "height": window.height, "deviceScaleFactor": 1, "mobile": false,
        });
        let features = json!({"features": [{"name": "prefers-color-scheme", "value": scheme}]});
        self.ask("Emulation.setDeviceMetricsOverride", size).await;
        self.ask("Emulation.setEmulatedMedia", features).await;
    }

    /// What an expression is in the page.
    ///
    /// # Panics
    ///
    /// When it throws.
    pub async fn run(&self, expression: &str) -> Value {
        let fields = json!({"expression": expression, "awaitPromise": true, "returnByValue": true});
        let answer = self.ask("Runtime.evaluate", fields).await;
        let thrown = &answer["exceptionDetails"];
        assert!(thrown.is_null(), "{expression}: {thrown}");
        answer["result"]["value"].clone()
    }

    /// Waits until an expression is true in the page.
    ///
    /// # Panics
    ///
    /// When it is not within `bound`.
    pub async fn until(&self, bound: Duration, expression: &str) {
        until(bound, expression, async || {
            // While a page loads there may be nothing to ask yet.
            let tried = format!(
                "(() => {{ try {{ return !!({expression}) }} catch {{ return false }} }})()"
            );
            self.run(&tried).await == true
        })
        .await;
    }

    /// Clicks the first element that a selector finds, in its middle.
    ///
    /// # Panics
    ///
    /// When there is none that can be seen.
    pub async fn click(&self, selector: &str) {
        let quoted = json!(selector);
        let place = self
            .run(&format!(
                "(() => {{ const found = document.querySelector({quoted});
                    if (!found) return null;
                    found.scrollIntoView({{block: 'center', behavior: 'instant'}});
                    const box = found.getBoundingClientRect();
                    return box.width && {{x: box.x + box.width / 2, y: box.y + box.height / 2}}; }})()"
            ))
            .await;
        assert!(place.is_object(), "{selector} cannot be seen");
        self.click_at(&place["x"], &place["y"]).await;
    }

    /// Clicks at a place of the window.
    pub async fn click_at(&self, x: &Value, y: &Value) {
        for kind in ["mousePressed", "mouseReleased"] {
            let fields = json!({"type": kind, "x": x, "y": y, "button": "left", "clickCount": 1});
            self.ask("Input.dispatchMouseEvent", fields).await;
        }
    }

    /// Presses a key, as the keyboard names it: `a`, `Enter`, `ArrowDown`.
    pub async fn press(&self, key: &str) {
        let code = match key {
            "Enter" => 13,
            "Escape" => 27,
            "ArrowLeft" => 37,
            "ArrowUp" => 38,
            "ArrowRight" => 39,
            "ArrowDown" => 40,
            _ => 0,
        };
        let mut fields = json!({"type": "keyDown", "key": key, "windowsVirtualKeyCode": code});
        if key.chars().count() == 1 {
            fields["text"] = key.into();
        }
        self.ask("Input.dispatchKeyEvent", fields).await;
        let up = json!({"type": "keyUp", "key": key, "windowsVirtualKeyCode": code});
        self.ask("Input.dispatchKeyEvent", up).await;
    }

    /// Keeps a picture of what the window shows.
    ///
    /// # Panics
    ///
    /// When the file cannot be written.
    pub async fn picture(&self, file: &Path) {
        let taken = self
            .ask("Page.captureScreenshot", json!({"format": "png"}))
            .await;
        let text = taken["data"].as_str().expect("a picture is text");
        let bytes = BASE64.decode(text.as_bytes()).expect("which is base64");
        if let Some(directory) = file.parent() {
            fs::create_dir_all(directory).expect("pictures have a directory");
        }
        fs::write(file, bytes).expect("a picture can be kept");
    }

    /// What went wrong in the page so far: exceptions, errors and warnings of its console, and what
    /// the browser complains of.
    pub fn complaints(&self) -> Vec<String> {
        let events = self.devtools.events(&self.session, &COMPLAINTS);
        events.iter().filter_map(complaint).collect()
    }

    async fn ask(&self, method: &str, fields: Value) -> Value {
        self.devtools.ask(Some(&self.session), method, fields).await
    }
}

/// The words of an event, unless it is harmless.
fn complaint(event: &Value) -> Option<String> {
    if let Some(thrown) = event.get("exceptionDetails") {
        return Some(format!("exception: {thrown}"));
    }
    if let Some(entry) = event.get("entry") {
        let is_harmless = !matches!(entry["level"].as_str(), Some("error" | "warning"));
        let words = format!("{}: {} {}", entry["level"], entry["text"], entry["url"]);
        return (!is_harmless).then_some(words);
    }
    let kind = event["type"].as_str().unwrap_or_default();
    let is_complaint = matches!(kind, "error" | "warning" | "assert");
    is_complaint.then(|| format!("console {kind}: {}", event["args"]))
}
