//! Agents and workers as people operate them: asked by HTTP, reloaded, drained.

mod client;
mod commands;
mod deploy;
mod doors;
mod http;
mod left_behind;
mod member;
mod printed;
mod service;
mod unread;
mod webhook;
