//! Several NATS servers with one JetStream.

use std::time::Duration;

use serde_json::Value;

use crate::nats::NatsServer;
use crate::nats_options::NatsOptions;
use crate::port::Port;
use crate::program::NatsVersion;
use crate::until::until_some;

const STARTS_MAX: usize = 3;
/// Elections take up to ten seconds, and one may fail.
const SETTLED_WITHIN: Duration = Duration::from_secs(60);

/// NATS servers that replicate each other's data.
///
/// They don't tell clients of each other: a client reaches those, and through those proxies, that
/// the test gives it.
#[derive(Debug)]
pub struct NatsCluster {
    servers: Vec<NatsServer>,
}

impl NatsCluster {
    /// Starts `size` servers, and waits until they have a leader and all follow it.
    ///
    /// # Panics
    ///
    /// When the server is missing or the cluster does not start.
    pub async fn start(version: NatsVersion, size: usize) -> Self {
        Self::start_with(version, size, NatsOptions::new()).await
    }

    /// Starts `size` servers with these options each.
    ///
    /// # Panics
    ///
    /// When the server is missing or the cluster does not start.
    pub async fn start_with(version: NatsVersion, size: usize, options: NatsOptions) -> Self {
        for _ in 0..STARTS_MAX {
            if let Some(new) = Self::try_start(version, size, &options).await {
                new.until_settled().await;
                return new;
            }
        }
        panic!("{STARTS_MAX} times another process was faster to take a port");
    }

    async fn try_start(version: NatsVersion, size: usize, options: &NatsOptions) -> Option<Self> {
        let claimed: Vec<_> = (0..size).map(|_| Port::claim()).collect();
        let routes: Vec<_> = claimed.iter().map(Port::address).collect();
        let mut servers = Vec::with_capacity(size);
        for route in claimed {
            let mut server = NatsServer::prepare(version, options, Some(route), &routes);
            match server.try_start().await {
                Ok(()) => servers.push(server),
                Err(_) if server.has_lost_its_port() => return None,
                Err(why) => server.fail(&why),
            }
        }
        Some(Self { servers })
    }

    /// The servers, in the order of their indices.
    pub fn servers(&self) -> &[NatsServer] {
        &self.servers
    }

    /// One of the servers, to stop or to start again.
    pub fn server(&mut self, index: usize) -> &mut NatsServer {
        &mut self.servers[index]
    }

    /// Where clients connect to: all of them, separated by commas.
    pub fn url(&self) -> String {
        let urls: Vec<_> = self.servers.iter().map(|server| server.url()).collect();
        urls.join(",")
    }

    /// Waits until the servers that run have a leader who hears from all of the cluster's servers;
    /// returns its index.
    ///
    /// # Panics
    ///
    /// When they have none for a minute.
    pub async fn until_settled(&self) -> usize {
        let what = "a leader whom all servers of the cluster follow";
        until_some(SETTLED_WITHIN, what, async || self.settled_leader().await).await
    }

    /// The index of the server that leads a stream, such as `KV_bucket`, as the servers know it.
    pub async fn leader_of(&self, stream: &str) -> Option<usize> {
        for server in &self.servers {
            let Some(known) = server.monitor("/jsz?accounts=true&streams=true").await else {
                continue;
            };
            let of_account = |account: &Value| account["stream_detail"].as_array().cloned();
            let accounts = known["account_details"].as_array();
            let streams = accounts.into_iter().flatten().filter_map(of_account);
            let found = streams.flatten().find(|found| found["name"] == stream);
            if let Some(leader) = found.and_then(|found| self.index(&found["cluster"]["leader"])) {
                return Some(leader);
            }
        }
        None
    }

    async fn settled_leader(&self) -> Option<usize> {
        let mut leader = None;
        for server in self.servers.iter().filter(|server| server.is_running()) {
            let healthy = server.monitor("/healthz").await?;
            let state = server.monitor("/jsz").await?;
            let here = self.index(&state["meta_cluster"]["leader"])?;
            if healthy["status"] != "ok" || leader.is_some_and(|leader| leader != here) {
                return None;
            }
            leader = Some(here);
        }
        let state = self.servers[leader?].monitor("/jsz").await?;
        let followers = state["meta_cluster"]["replicas"].as_array()?;
        let current = followers
            .iter()
            .filter(|follower| follower["current"] == true && follower["offline"] != true);
        let running = self.servers.iter().filter(|server| server.is_running());
        (current.count() + 1 >= running.count()).then_some(leader?)
    }

    /// The index of the server with this name.
    fn index(&self, name: &Value) -> Option<usize> {
        let is_named = |server: &NatsServer| *name == *server.name();
        self.servers.iter().position(is_named)
    }
}
