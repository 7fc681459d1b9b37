//! The testbed's claims.

mod browser;
mod cluster;
mod docs_check;
mod killed;
mod nats;
mod nats_auth;
mod proxy;
mod redis;
mod tls;
mod until;
mod wire;
