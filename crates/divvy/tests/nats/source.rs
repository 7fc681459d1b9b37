//! What the store's own source must not say.

use std::fs;
use std::path::Path;

/// Every line of the store's source, with its place.
fn lines() -> Vec<(String, String)> {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/store");
    let mut files = vec![source.join("nats.rs")];
    for entry in fs::read_dir(source.join("nats")).unwrap() {
        files.push(entry.unwrap().path());
    }
    assert!(files.len() > 10);
    let mut lines = Vec::new();
    for file in files {
        let name = file.file_name().unwrap().to_str().unwrap().to_owned();
        for line in fs::read_to_string(&file).unwrap().lines() {
            lines.push((name.clone(), line.trim().to_owned()));
        }
    }
    lines
}

fn files_with(word: &str) -> Vec<String> {
    let code = lines()
        .into_iter()
        .filter(|(_, line)| !line.starts_with("//"));
    let mut files: Vec<_> = code
        .filter(|(_, line)| line.contains(word))
        .map(|(file, _)| file)
        .collect();
    files.dedup();
    files
}

#[test]
fn every_write_of_a_key_carries_its_condition() {
    // One function of the client's sends anything, and one function writes
    // keys, with the header that makes it conditional.
    for word in [
        ".publish(",
        ".publish_with_headers(",
        ".put(",
        ".purge(",
        ".delete_key",
    ] {
        assert_eq!(files_with(word), Vec::<String>::new(), "{word}");
    }
    assert_eq!(files_with(".publish_with_reply"), ["link.rs"]);
    assert_eq!(files_with("EXPECTED_SEQUENCE, "), ["api.rs"]);
    let keys: Vec<_> = files_with("\"$KV.");
    assert!(
        keys.iter()
            .all(|file| file == "bucket.rs" || file == "events.rs"),
        "{keys:?}"
    );
    let mut requests = files_with(".request(deadline");
    requests.extend(files_with(".request("));
    requests.dedup();
    assert_eq!(requests, ["api.rs"]);
}

#[test]
fn nothing_has_a_time_to_live() {
    for word in ["Nats-TTL", "with_ttl", "limit_marker", "allow_msg_ttl"] {
        assert_eq!(files_with(word), Vec::<String>::new(), "{word}");
    }
}
