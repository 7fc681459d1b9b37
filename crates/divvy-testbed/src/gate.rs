//! What holds up the hooks of a test.

use tokio::sync::watch;

/// Open at first. Hooks that come to it while it is closed wait.
#[derive(Debug, Default)]
pub struct Gate(watch::Sender<bool>);

impl Gate {
    /// Hooks that come from now on wait.
    pub fn close(&self) {
        self.0.send_replace(true);
    }

    /// Lets all pass.
    pub fn open(&self) {
        self.0.send_replace(false);
    }

    /// Waits until it is open.
    pub async fn pass(&self) {
        let mut state = self.0.subscribe();
        let opened = state.wait_for(|is_closed| !is_closed).await;
        drop(opened.expect("the sender is borrowed meanwhile"));
    }
}
