//! The interface: every action and every refusal, who may ask, and that nothing
//! which is sent to it breaks it.

mod bed;
mod fuzz;

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpStream;

use serde_json::{Value, json};

use crate::bed::{Bed, PATIENCE};

fn is_converged(snapshot: &Value) -> bool {
    snapshot["summary"]["converged"] == true
}

#[test]
fn every_action_that_is_named_can_be_done() {
    let bed = Bed::new(None);
    bed.done(json!({"action": "hold"}));
    bed.until("all is well", is_converged);
    let answer = bed.done(json!({"action": "add", "weight": 2, "zone": "b", "name": "extra"}));
    assert_eq!(answer["worker"], 4);
    bed.until("the fifth has a share", |snapshot| {
        snapshot["workers"][4]["owned"].as_u64() > Some(5) && is_converged(snapshot)
    });
    let plain = [
        json!({"action": "pause", "worker": 0}),
        json!({"action": "resume", "worker": 0}),
        json!({"action": "isolate", "worker": 1, "how": "outward"}),
        json!({"action": "reconnect", "worker": 1}),
        json!({"action": "slow", "worker": 1, "on": true}),
        json!({"action": "slow", "worker": 1, "on": false}),
        json!({"action": "broken", "worker": 1, "on": true}),
        json!({"action": "broken", "worker": 1, "on": false}),
        json!({"action": "unhealthy", "worker": 1, "on": true}),
        json!({"action": "unhealthy", "worker": 1, "on": false}),
        json!({"action": "cordon", "worker": 2}),
        json!({"action": "uncordon", "worker": 2}),
        json!({"action": "drain", "worker": 2}),
        json!({"action": "uncordon", "worker": 2}),
        json!({"action": "weight", "worker": 2, "weight": 0.5}),
        json!({"action": "zone", "worker": 2, "zone": "z"}),
        json!({"action": "zone", "worker": 2, "zone": null}),
        json!({"action": "pin", "partition": "orders:3", "worker": 1}),
        json!({"action": "unpin", "partition": "orders:3"}),
        json!({"action": "partitions", "count": 40}),
        json!({"action": "partition_weight", "partition": "orders:3", "weight": 2.5}),
        json!({"action": "store", "state": "slow"}),
        json!({"action": "store", "state": "up"}),
        json!({"action": "refresh"}),
        json!({"action": "speed", "speed": 10}),
        json!({"action": "run"}),
        json!({"action": "hold"}),
        json!({"action": "step", "ms": 100}),
        json!({"action": "kill", "worker": 3}),
        json!({"action": "restart", "worker": 3}),
        json!({"action": "stop", "worker": 3, "return_within_ms": 500}),
        json!({"action": "amnesia", "announced": false}),
        json!({"action": "amnesia"}),
        json!({"action": "settings", "strategy": "zoned", "exclusive": false}),
        json!({"action": "settings", "preset": "default"}),
        json!({"action": "mode", "mode": "lease"}),
        json!({"action": "reset", "mode": "leader", "workers": 3, "partitions": 9, "seed": 5}),
    ];
    let mut named: Vec<String> = vec!["add".into()];
    for action in plain {
        named.push(action["action"].as_str().unwrap().to_owned());
        bed.done(action);
    }
    let snapshot = bed.until("the new world is well", is_converged);
    for name in snapshot["actions"].as_array().unwrap() {
        let name = name.as_str().unwrap();
        assert!(
            named.iter().any(|known| known == name),
            "{name} is not tried"
        );
    }
    assert_eq!(snapshot["partitions"]["names"].as_array().unwrap().len(), 9);
    assert_eq!(snapshot["settings"]["seed"], 5);
}

#[test]
fn what_is_not_asked_for_properly_is_refused_with_what_is_wrong() {
    let bed = Bed::new(None);
    bed.done(json!({"action": "hold"}));
    let bad = [
        (json!({}), "action"),
        (json!([]), "body"),
        (json!({"action": "explode"}), "explode"),
        (json!({"action": 7}), "action"),
        (json!({"action": "kill"}), "worker"),
        (json!({"action": "kill", "worker": -1}), "worker"),
        (json!({"action": "kill", "worker": 1.5}), "worker"),
        (
            json!({"action": "kill", "worker": 1, "colour": "blue"}),
            "colour",
        ),
        (json!({"action": "add", "count": 0}), "count"),
        (json!({"action": "add", "count": 201}), "1..=200"),
        (json!({"action": "add", "name": "a b"}), "name"),
        (json!({"action": "add", "name": "a", "count": 2}), "count"),
        (
            json!({"action": "weight", "worker": 1, "weight": 1001}),
            "1000",
        ),
        (
            json!({"action": "weight", "worker": 1, "weight": 1e-9}),
            "weight",
        ),
        (
            json!({"action": "isolate", "worker": 1, "how": "sideways"}),
            "sideways",
        ),
        (json!({"action": "store", "state": "gone"}), "gone"),
        (json!({"action": "partitions", "count": 20001}), "20000"),
        (json!({"action": "speed", "speed": 0.01}), "speed"),
        (json!({"action": "speed", "speed": 101}), "100"),
        (json!({"action": "step", "ms": 60001}), "60000"),
        (json!({"action": "settings"}), "preset"),
        (json!({"action": "settings", "strategy": "best"}), "best"),
        (json!({"action": "settings", "workers": 3}), "reset"),
        (json!({"action": "reset", "workers": 501}), "500"),
        (
            json!({"action": "reset", "mode": "lease", "exclusive": false}),
            "exclusive",
        ),
        (json!({"action": "mode", "mode": "chaos"}), "chaos"),
    ];
    for (action, named) in bad {
        let (status, answer) = bed.act(&action);
        let error = answer["error"].as_str().unwrap_or("");
        assert_eq!(status, 400, "{action}: {answer}");
        assert!(error.contains(named), "{action}: {error}");
    }
}

#[test]
fn what_cannot_be_done_as_things_are_is_refused() {
    let bed = Bed::new(None);
    bed.done(json!({"action": "hold"}));
    for (action, code) in [
        (json!({"action": "kill", "worker": 77}), 404),
        (json!({"action": "unpin", "partition": "orders:99"}), 404),
        (
            json!({"action": "pin", "partition": "nonsense", "worker": 0}),
            404,
        ),
        (json!({"action": "restart", "worker": 0}), 409),
        (json!({"action": "resume", "worker": 0}), 409),
        (json!({"action": "reconnect", "worker": 0}), 409),
        (json!({"action": "uncordon", "worker": 0}), 409),
        (json!({"action": "unpin", "partition": "orders:1"}), 409),
        (json!({"action": "add", "name": "host-1"}), 409),
    ] {
        bed.done(json!({"action": "step", "ms": 1000}));
        let (status, answer) = bed.act(&action);
        assert_eq!(status, code, "{action}: {answer}");
        assert!(answer["error"].is_string(), "{answer}");
    }
    bed.done(json!({"action": "mode", "mode": "lease"}));
    let (status, _) = bed.act(&json!({"action": "zone", "worker": 0, "zone": "a"}));
    assert_eq!(status, 409, "lease mode knows no zones");
}

#[test]
fn paths_methods_and_bodies_that_cannot_be_are_refused() {
    let bed = Bed::new(None);
    for (path, code) in [
        ("/nope", 404),
        ("/api/v1/nope", 404),
        ("/api/v2/snapshot", 404),
        ("/api/v1/workers/99", 404),
        ("/api/v1/workers/first", 400),
        ("/api/v1/workers/99/what-if", 404),
        ("/api/v1/partitions/orders:999", 404),
        ("/api/v1/partitions/%ff", 400),
        ("/api/v1/events?after=x", 400),
        ("/api/v1/events?before=1", 400),
        ("/api/v1/timeline?limit=-1", 400),
        ("/api/v1/timeline?format=xml", 400),
        ("/api/v1/actions", 405),
    ] {
        let (status, answer) = bed.get(path);
        assert_eq!(status, code, "{path}: {answer}");
        assert!(answer["error"].is_string(), "{path}: {answer}");
    }
    let (status, _, _) = bed.ask("DELETE", "/api/v1/snapshot", "", "");
    assert_eq!(status, 405);
    let (status, _, _) = bed.ask("POST", "/api/v1/actions", "", "{\"action\":\"run\"}");
    assert_eq!(status, 415, "a form of a page cannot say that it is JSON");
    let (status, _) = bed.post("/api/v1/actions", "{");
    assert_eq!(status, 400);
    let large = format!("{{\"action\":\"{}\"}}", "x".repeat(65 * 1024));
    let (status, _) = bed.post("/api/v1/actions", &large);
    assert_eq!(status, 413);
    let large = json!({"yaml": "#".repeat(257 * 1024)}).to_string();
    let (status, _) = bed.post("/api/v1/scenarios", &large);
    assert_eq!(status, 413);
    let (status, answer) = bed.post("/api/v1/scenarios", &json!({"yaml": "name: 1"}).to_string());
    assert_eq!((status, answer["error"].is_string()), (400, true));
    let (status, _) = bed.post("/api/v1/scenarios/nope/start", "{}");
    assert_eq!(status, 404);
    let (status, _) = bed.post("/api/v1/scenarios/scale-out/start", "{\"x\":1}");
    assert_eq!(status, 400);
}

#[test]
fn other_hosts_and_pages_of_other_sites_are_refused() {
    let bed = Bed::new(None);
    for host in ["evil.example", "127.0.0.1.evil.example", ""] {
        let headers = format!("Host: {host}\r\n");
        let (status, _, _) = bed.ask("GET", "/api/v1/snapshot", &headers, "");
        assert!(matches!(status, 400 | 403), "{host}: {status}");
    }
    let (status, _, _) = bed.ask("GET", "/", "Host: localhost\r\n", "");
    assert_eq!(status, 200);
    let body = "{\"action\":\"run\"}";
    let own = format!("http://{}", bed.address);
    for (origin, code) in [
        (own.as_str(), 200),
        ("http://evil.example", 403),
        ("null", 403),
    ] {
        let headers = format!("Content-Type: application/json\r\nOrigin: {origin}\r\n");
        let (status, _, _) = bed.ask("POST", "/api/v1/actions", &headers, body);
        assert_eq!(status, code, "{origin}");
    }
}

#[test]
fn where_there_is_a_token_nothing_but_the_page_is_had_without_it() {
    let bed = Bed::new(Some("canary-canary-canary"));
    let (status, head, _) = bed.ask("GET", "/", "", "");
    assert_eq!(status, 200);
    assert!(
        head.contains("content-security-policy: default-src 'self'"),
        "{head}"
    );
    for path in ["/api/v1/snapshot", "/api/v1/events", "/api/v1/trace"] {
        let (status, head, body) = bed.ask("GET", path, "", "");
        assert_eq!(status, 401, "{path}");
        assert!(head.contains("www-authenticate: bearer"));
        assert!(!body.contains("canary"));
    }
    let wrong = "Authorization: Bearer canary-canary-canarx\r\n";
    assert_eq!(bed.ask("GET", "/api/v1/snapshot", wrong, "").0, 401);
    let right = "Authorization: Bearer canary-canary-canary\r\n";
    assert_eq!(bed.ask("GET", "/api/v1/snapshot", right, "").0, 200);
}

#[test]
fn partitions_and_workers_are_explained_and_the_timeline_told() {
    let bed = Bed::new(None);
    bed.done(json!({"action": "hold"}));
    bed.until("all is well", is_converged);
    let (_, partition) = bed.get("/api/v1/partitions/orders:5");
    let owner = partition["owner"].as_u64().unwrap();
    assert_eq!(partition["ranking"].as_array().unwrap().len(), 4);
    assert_eq!(partition["owners"][0]["worker"], owner);
    assert!(
        partition["why"]
            .as_str()
            .unwrap()
            .contains("has it and should")
    );
    let (_, worker) = bed.get(&format!("/api/v1/workers/{owner}"));
    assert!(
        worker["partitions"]
            .as_array()
            .unwrap()
            .contains(&json!("orders:5"))
    );
    assert_eq!(worker["number"], owner);
    let (status, plan) = bed.get(&format!("/api/v1/workers/{owner}/what-if"));
    assert_eq!((status, plan["moves"].as_array().unwrap().len()), (200, 8));
    bed.done(json!({"action": "kill", "worker": owner}));
    bed.until("others have it", |snapshot| {
        snapshot["partitions"]["owners"][5] != owner
    });
    bed.until("all is well again", is_converged);
    let (_, partition) = bed.get("/api/v1/partitions/orders:5");
    assert_eq!(partition["owners"][1]["cause"], "lost");
    assert!(partition["owners"][0]["until_ms"].is_u64());
    let (_, timeline) = bed.get("/api/v1/timeline");
    let events = timeline["events"].as_array().unwrap();
    for kind in ["note", "leader", "started", "killed", "moved"] {
        assert!(events.iter().any(|event| event["kind"] == kind), "{kind}");
    }
    let last = events.last().unwrap()["number"].as_u64().unwrap();
    let (_, rest) = bed.get(&format!("/api/v1/timeline?after={}&limit=2", last - 5));
    assert_eq!(rest["events"].as_array().unwrap().len(), 2);
    let (_, head, csv) = bed.ask("GET", "/api/v1/timeline?format=csv", "", "");
    assert!(head.contains("text/csv") && csv.starts_with("number,at_ms,kind"));
    let (_, _, lines) = bed.ask("GET", "/api/v1/timeline?format=jsonl", "", "");
    assert!(lines.contains("\"kind\":\"moved\""));
    let (status, _, trace) = bed.ask("GET", "/api/v1/trace", "", "");
    assert_eq!(status, 200);
    assert!(
        trace.contains("m0 starts"),
        "{}",
        &trace[..200.min(trace.len())]
    );
}

#[test]
fn followers_are_told_and_told_to_load_a_new_world() {
    let bed = Bed::new(None);
    let sequence = bed.snapshot()["sequence"].as_u64().unwrap();
    let stream = TcpStream::connect(bed.address).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let request = format!(
        "GET /api/v1/events?after={sequence} HTTP/1.1\r\nHost: {}\r\n\r\n",
        bed.address
    );
    (&stream).write_all(request.as_bytes()).unwrap();
    let mut lines = BufReader::new(&stream).lines().map(Result::unwrap);
    let mut data_of = |event: &str| {
        lines
            .find(|line| *line == format!("event: {event}"))
            .unwrap();
        lines
            .find_map(|line| line.strip_prefix("data: ").map(str::to_owned))
            .unwrap()
    };
    let delta: Value = serde_json::from_str(&data_of("delta")).unwrap();
    assert_eq!(delta["sequence"].as_u64(), Some(sequence + 1));
    bed.done(json!({"action": "reset"}));
    let reload: Value = serde_json::from_str(&data_of("reload")).unwrap();
    assert_eq!(reload["why"], "another world begins");
    let delta: Value = serde_json::from_str(&data_of("delta")).unwrap();
    assert!(delta["sequence"].as_u64() > Some(sequence));
    // Numbers of another server are not known here.
    let stream = TcpStream::connect(bed.address).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let request = format!(
        "GET /api/v1/events HTTP/1.1\r\nHost: {}\r\nLast-Event-ID: 5\r\n\r\n",
        bed.address
    );
    (&stream).write_all(request.as_bytes()).unwrap();
    let mut lines = BufReader::new(&stream).lines().map(Result::unwrap);
    assert!(lines.any(|line| line == "event: reload"));
}

#[test]
fn scenarios_are_listed_started_and_taken_from_whoever_writes_one() {
    let bed = Bed::new(None);
    let (_, list) = bed.get("/api/v1/scenarios");
    assert!(list["scenarios"].as_array().unwrap().len() >= 20);
    let (status, _) = bed.post("/api/v1/scenarios/scale-out/start", "{}");
    assert_eq!(status, 200);
    bed.done(json!({"action": "step", "ms": 15_100}));
    let state = bed.snapshot()["scenario"].clone();
    assert_eq!(
        (&state["name"], &state["state"]),
        (&json!("scale-out"), &json!("passed"))
    );
    let yaml = "name: mine\ntitle: Mine\nabout: Nothing happens.\nlasts_ms: 6000\n\
                goal: {says: all is owned, numbers: {unowned: {at_most: 0}}}\n";
    let (status, answer) = bed.post("/api/v1/scenarios", &json!({"yaml": yaml}).to_string());
    assert_eq!(status, 200, "{answer}");
    bed.done(json!({"action": "step", "ms": 6_100}));
    assert_eq!(bed.snapshot()["scenario"]["state"], "passed");
}

#[test]
fn exports_take_what_the_timeline_takes_and_hold_one_world() {
    let bed = Bed::new(None);
    bed.done(json!({"action": "hold"}));
    bed.done(json!({"action": "step", "ms": 3000}));
    let lines = |query: &str| {
        let (status, _, body) = bed.ask("GET", &format!("/api/v1/timeline?{query}"), "", "");
        assert_eq!(status, 200, "{body}");
        body.lines().map(str::to_owned).collect::<Vec<_>>()
    };
    let first: Value = serde_json::from_str(&lines("format=jsonl&after=3&limit=2")[0]).unwrap();
    assert_eq!(first["number"], 4);
    assert_eq!(lines("format=jsonl&after=3&limit=2").len(), 2);
    let table = lines("format=csv&after=3&limit=2");
    assert_eq!(table.len(), 3);
    assert!(table[1].starts_with("4,"), "{table:?}");
    let (_, before) = bed.get("/api/v1/timeline");
    let last = before["events"].as_array().unwrap().last().unwrap()["number"].as_u64();
    bed.done(json!({"action": "reset", "seed": 9}));
    let (_, after) = bed.get("/api/v1/timeline");
    assert_eq!(after["oldest"].as_u64(), last.map(|last| last + 1));
    assert_eq!(after["events"][0]["at_ms"], 0);
}

#[test]
fn queries_that_say_nothing_are_refused_and_methods_are_named() {
    let bed = Bed::new(None);
    for path in [
        "snapshot?x=1",
        "trace?x=1",
        "timeline?x=1",
        "events?x=1",
        "workers/0?x=1",
    ] {
        let (status, answer) = bed.get(&format!("/api/v1/{path}"));
        assert_eq!(status, 400, "{path}: {answer}");
        assert!(
            answer["error"].as_str().unwrap().contains("'x'"),
            "{answer}"
        );
    }
    for (method, path, allowed) in [
        ("DELETE", "/api/v1/snapshot", "get"),
        ("GET", "/api/v1/actions", "post"),
    ] {
        let (status, head, _) = bed.ask(method, path, "", "");
        assert_eq!(status, 405);
        let allow = head.lines().find(|line| line.starts_with("allow:"));
        assert!(allow.is_some_and(|allow| allow.contains(allowed)), "{head}");
    }
}

/// Opens a connection and sends the beginning of something.
fn begun(bed: &Bed, text: &str) -> TcpStream {
    let mut stream = TcpStream::connect(bed.address).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream.write_all(text.as_bytes()).unwrap();
    stream
}

#[test]
fn whoever_follows_or_sends_half_a_request_keeps_nobody_waiting() {
    let bed = Bed::new(None);
    let follow = format!(
        "GET /api/v1/events HTTP/1.1\r\nHost: {}\r\n\r\n",
        bed.address
    );
    let answer = |stream: &TcpStream| {
        let mut line = String::new();
        BufReader::new(stream).read_line(&mut line).unwrap();
        line
    };
    let followers: Vec<TcpStream> = (0..64).map(|_| begun(&bed, &follow)).collect();
    for follower in &followers {
        assert!(answer(follower).contains("200"));
    }
    let (status, head, body) = bed.ask("GET", "/api/v1/events", "", "");
    assert_eq!(status, 503, "{body}");
    assert!(
        head.contains("retry-after: 5") && body.contains("error"),
        "{head}"
    );
    let half = "POST /api/v1/actions HTTP/1.1\r\nHost: localhost\r\n";
    let body = format!("{half}Content-Type: application/json\r\nContent-Length: 99\r\n\r\n{{");
    let halves = (0..100).map(|_| begun(&bed, half));
    let bodies = (0..100).map(|_| begun(&bed, &body));
    let _halves: Vec<TcpStream> = halves.chain(bodies).collect();
    for _ in 0..5 {
        assert_eq!(bed.get("/api/v1/snapshot").0, 200);
    }
    drop(followers);
}
