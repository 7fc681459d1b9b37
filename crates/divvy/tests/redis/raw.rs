//! A client of its own, as small as can be: what it shows is what is on the
//! wire, whoever wrote it.

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use divvy_testbed::RedisServer;

/// A connection over the server's Unix socket.
pub(crate) struct Raw {
    stream: BufReader<UnixStream>,
}

/// A reply, as far as the tests look at them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Reply {
    Nil,
    Integer(i64),
    Bytes(Vec<u8>),
    Error(String),
    Array(Vec<Self>),
}

impl Raw {
    pub(crate) fn of(server: &RedisServer) -> Self {
        Self::at(server.socket())
    }

    pub(crate) fn at(socket: &Path) -> Self {
        let stream = UnixStream::connect(socket).unwrap();
        stream
            .set_read_timeout(Some(Duration::from_secs(10)))
            .unwrap();
        Self {
            stream: BufReader::new(stream),
        }
    }

    /// Sends a command of words, and waits for the reply.
    pub(crate) fn say(&mut self, words: &[&str]) -> Reply {
        let words: Vec<&[u8]> = words.iter().map(|word| word.as_bytes()).collect();
        self.say_bytes(&words)
    }

    pub(crate) fn say_bytes(&mut self, words: &[&[u8]]) -> Reply {
        let mut request = format!("*{}\r\n", words.len()).into_bytes();
        for word in words {
            request.extend(format!("${}\r\n", word.len()).as_bytes());
            request.extend(*word);
            request.extend(b"\r\n");
        }
        self.stream.get_mut().write_all(&request).unwrap();
        self.next()
    }

    /// The next reply, or message of a subscription.
    pub(crate) fn next(&mut self) -> Reply {
        let mut line = String::new();
        self.stream.read_line(&mut line).unwrap();
        let (kind, rest) = line.trim_end().split_at(1);
        match kind {
            "+" => Reply::Bytes(rest.into()),
            "-" => Reply::Error(rest.to_owned()),
            ":" => Reply::Integer(rest.parse().unwrap()),
            "$" if rest == "-1" => Reply::Nil,
            "$" => {
                let mut bytes = vec![0; rest.parse::<usize>().unwrap() + 2];
                self.stream.read_exact(&mut bytes).unwrap();
                bytes.truncate(bytes.len() - 2);
                Reply::Bytes(bytes)
            }
            "*" if rest == "-1" => Reply::Nil,
            "*" => Reply::Array((0..rest.parse().unwrap()).map(|_| self.next()).collect()),
            other => panic!("{other} begins no reply"),
        }
    }

    pub(crate) fn get(&mut self, key: &str) -> Option<String> {
        match self.say(&["GET", key]) {
            Reply::Nil => None,
            reply => Some(reply.text()),
        }
    }

    pub(crate) fn set(&mut self, key: &str, value: &str) {
        assert_eq!(self.say(&["SET", key, value]), Reply::Bytes("OK".into()));
    }

    /// How many milliseconds a key still lives, -1 for ever, -2 if it is gone.
    pub(crate) fn time_left(&mut self, key: &str) -> i64 {
        match self.say(&["PTTL", key]) {
            Reply::Integer(left) => left,
            reply => panic!("{reply:?}"),
        }
    }

    /// All keys of the database, in order.
    pub(crate) fn keys(&mut self) -> Vec<String> {
        let Reply::Array(keys) = self.say(&["KEYS", "*"]) else {
            panic!("KEYS gives an array");
        };
        let mut keys: Vec<String> = keys.iter().map(Reply::text).collect();
        keys.sort();
        keys
    }

    /// The members of a set, in order.
    pub(crate) fn members(&mut self, key: &str) -> Vec<String> {
        let Reply::Array(members) = self.say(&["SMEMBERS", key]) else {
            panic!("SMEMBERS gives an array");
        };
        let mut members: Vec<String> = members.iter().map(Reply::text).collect();
        members.sort();
        members
    }
}

impl Reply {
    pub(crate) fn text(&self) -> String {
        match self {
            Self::Bytes(bytes) => String::from_utf8(bytes.clone()).unwrap(),
            other => panic!("{other:?} is no text"),
        }
    }
}
