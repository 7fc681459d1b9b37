//! A server that does not keep the conditions of writes.

use std::net::{Ipv4Addr, SocketAddr};

use divvy::store::StoreErrorKind;
use divvy_testbed::NatsVersion;
use tokio::io::{AsyncReadExt, AsyncWriteExt, copy};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

use crate::admin::Admin;
use crate::bed::{assert_refused, newest, refusal, settings};

/// The header of a condition, and one of its length that servers pass over.
const CONDITION: &[u8] = b"Nats-Expected-Last-Subject-Sequence";
const NOTHING: &[u8] = b"Xats-Expected-Last-Subject-Sequence";

/// A way to a server on which it loses sight of every condition.
struct Careless {
    address: SocketAddr,
    task: JoinHandle<()>,
}

impl Careless {
    async fn before(server: SocketAddr) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let address = listener.local_addr().unwrap();
        let task = tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let server = TcpStream::connect(server).await.unwrap();
                tokio::spawn(carry(client, server));
            }
        });
        Self { address, task }
    }
}

impl Drop for Careless {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn carry(client: TcpStream, server: TcpStream) {
    let (mut asked, mut told) = client.into_split();
    let (mut answers, mut requests) = server.into_split();
    tokio::spawn(async move {
        let _ended = copy(&mut answers, &mut told).await;
    });
    let mut waiting = Vec::new();
    while asked
        .read_buf(&mut waiting)
        .await
        .is_ok_and(|read| read > 0)
    {
        while let Some(at) = waiting
            .windows(CONDITION.len())
            .position(|at| at == CONDITION)
        {
            waiting[at..at + NOTHING.len()].copy_from_slice(NOTHING);
        }
        // What may be the beginning of one waits for the rest.
        let begins = |count: &usize| waiting.ends_with(&CONDITION[..*count]);
        let kept = (1..CONDITION.len()).rev().find(begins).unwrap_or(0);
        let rest = waiting.split_off(waiting.len() - kept);
        if requests.write_all(&waiting).await.is_err() {
            return;
        }
        waiting = rest;
    }
}

#[tokio::test]
async fn a_server_that_accepts_a_write_whose_condition_fails_is_refused() {
    let server = newest().await;
    assert_eq!(server.version(), NatsVersion::Newest.number());
    let careless = Careless::before(server.address()).await;
    let error = refusal(&format!("nats://{}", careless.address), &settings()).await;
    assert_refused(
        &error,
        StoreErrorKind::Unfit,
        &["accepts a conditional write whose condition does not hold"],
    );
    // The bucket was made, so it was the condition that was found wanting.
    Admin::of(&server).await.config("divvy").await;
}
