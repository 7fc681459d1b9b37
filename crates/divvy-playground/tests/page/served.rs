//! A playground's server that can be stopped and started again.

use std::net::{Ipv4Addr, SocketAddr, TcpListener};

use divvy_http::Token;
use divvy_playground::{Playground, Setup, listen};
use tokio::runtime::{Builder, Runtime};

/// A server on a port of its own. All of its connections end with it.
#[derive(Debug)]
pub(crate) struct Served {
    setup: Setup,
    token: Option<&'static str>,
    address: SocketAddr,
    running: Option<Runtime>,
}

impl Served {
    pub(crate) fn start(setup: Setup) -> Self {
        Self::guarded(setup, None)
    }

    /// One that answers only to who has the token.
    pub(crate) fn guarded(setup: Setup, token: Option<&'static str>) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let address = listener.local_addr().unwrap();
        let mut served = Self {
            setup,
            token,
            address,
            running: None,
        };
        served.serve(listener);
        served
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}/", self.address)
    }

    pub(crate) fn stop(&mut self) {
        if let Some(runtime) = self.running.take() {
            runtime.shutdown_background();
        }
    }

    /// On the same port, with a world of its own.
    pub(crate) fn start_again(&mut self) {
        self.serve(TcpListener::bind(self.address).unwrap());
    }

    fn serve(&mut self, listener: TcpListener) {
        listener.set_nonblocking(true).unwrap();
        let playground = Playground::open(self.setup.clone(), None).unwrap();
        let token = self
            .token
            .map(|token| Token::new(token.as_bytes()).unwrap());
        let mut runtime = Builder::new_multi_thread();
        let runtime = runtime.worker_threads(1).enable_all().build().unwrap();
        runtime.spawn(async move {
            let listener = tokio::net::TcpListener::from_std(listener).unwrap();
            listen(listener, playground, token).await;
        });
        self.running = Some(runtime);
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        self.stop();
    }
}
