//! Asking an election agent, one question at a time.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use divvy_core::leader::{Event, LeaderSettings};
use tokio::runtime::Handle;
use tokio::sync::{Mutex, mpsc};
use tokio::time::timeout;

use super::calls::{Aborting, panic_text};
use super::driver::Input;
use super::election::ElectionAgent;
use super::error::ManagerError;
use super::hooks::HookError;

/// Talks to an election agent.
#[derive(Clone)]
pub(super) struct Agent {
    agent: Arc<dyn ElectionAgent>,
    runtime: Handle,
    limit: Duration,
    lease: Duration,
    driver: mpsc::Sender<Input>,
    /// Held while a question is asked.
    turn: Arc<Mutex<()>>,
    is_elected: Arc<AtomicBool>,
}

impl Agent {
    pub(super) fn new(
        agent: Arc<dyn ElectionAgent>,
        runtime: Handle,
        settings: &LeaderSettings,
        driver: mpsc::Sender<Input>,
    ) -> Self {
        Self {
            agent,
            runtime,
            limit: settings.election_timeout,
            lease: settings.leader_lease,
            driver,
            turn: Arc::default(),
            is_elected: Arc::default(),
        }
    }

    /// Asks to lead, or to go on leading. A question that comes while another
    /// is asked is answered by that.
    pub(super) fn request(&self, worker: Arc<str>) -> impl Future<Output = ()> + use<> {
        let this = self.clone();
        async move {
            let Ok(_turn) = this.turn.try_lock() else {
                return;
            };
            let was_elected = this.is_elected.load(Ordering::Relaxed);
            let (agent, lease) = (Arc::clone(&this.agent), this.lease);
            let answer = this
                .ask(async move {
                    if was_elected && agent.is_leader().await {
                        agent.renew_leadership().await.map(|()| true)
                    } else {
                        agent.request_leadership(&worker, lease).await
                    }
                })
                .await;
            let elected = match answer {
                Ok(elected) => elected,
                Err(why) => {
                    let error = ManagerError::ElectionFailed(why.into());
                    let _gone = this.driver.send(Input::Problem(error)).await;
                    false
                }
            };
            this.is_elected.store(elected, Ordering::Relaxed);
            let event = Input::Event(Event::Elected(elected));
            let _gone = this.driver.send(event).await;
        }
    }

    /// Gives leadership up.
    pub(super) fn release(&self) -> impl Future<Output = ()> + use<> {
        let this = self.clone();
        async move {
            let _turn = this.turn.lock().await;
            this.is_elected.store(false, Ordering::Relaxed);
            let agent = Arc::clone(&this.agent);
            let asked = this.ask(async move { agent.release_leadership().await });
            if let Err(why) = asked.await {
                let error = ManagerError::ElectionFailed(why.into());
                let _gone = this.driver.send(Input::Problem(error)).await;
            }
        }
    }

    async fn ask<T: Send + 'static>(
        &self,
        question: impl Future<Output = Result<T, HookError>> + Send + 'static,
    ) -> Result<T, String> {
        let mut asked = Aborting(self.runtime.spawn(question));
        match timeout(self.limit, &mut asked).await {
            Ok(Ok(Ok(answer))) => Ok(answer),
            Ok(Ok(Err(error))) => Err(error.to_string()),
            Ok(Err(error)) if error.is_panic() => Err(panic_text(error.into_panic().as_ref())),
            Ok(Err(_cancelled)) => Err("the runtime has ended".to_owned()),
            Err(_elapsed) => Err(format!("no answer within {:?}", self.limit)),
        }
    }
}
