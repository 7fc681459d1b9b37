//! Agents and workers as people operate them: asked by HTTP, reloaded, drained.

mod client;
mod doors;
mod http;
mod member;
