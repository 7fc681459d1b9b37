//! The thread that starts all processes.
//!
//! A child that asks for a signal at its parent's death gets it when the *thread* that started it
//! ends, and tests' threads end before their processes. So one thread starts them all, and lives as
//! long as the process does.

use std::io;
use std::process::{Child, Command};
use std::sync::OnceLock;
use std::sync::mpsc::{Sender, channel};
use std::thread;

type Order = (Command, Sender<io::Result<Child>>);

pub(crate) fn spawn(command: Command) -> io::Result<Child> {
    static SPAWNER: OnceLock<Sender<Order>> = OnceLock::new();
    let (reply, replied) = channel();
    SPAWNER
        .get_or_init(start)
        .send((command, reply))
        .expect("the spawner never ends");
    replied.recv().expect("the spawner answers every order")
}

fn start() -> Sender<Order> {
    let (orders, ordered) = channel::<Order>();
    thread::Builder::new()
        .name("testbed-spawner".to_owned())
        .spawn(move || {
            for (mut command, reply) in ordered {
                // Nobody waits any more: then nobody would end the child either.
                if let Err(unwanted) = reply.send(command.spawn())
                    && let Ok(mut child) = unwanted.0
                {
                    let _ = child.kill();
                    let _ = child.wait();
                }
            }
        })
        .expect("a thread can be started");
    orders
}
