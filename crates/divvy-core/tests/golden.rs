//! Vectors from other implementations, and our own for ever.
//!
//! `native.json` comes from an independent implementation in Python beside it;
//! the others from the systems whose placement we reproduce.

use divvy_core::{
    ConsistentHash, FilteredRendezvous, KeyScheme, KeySpace, Partitions, Rendezvous, RoundRobin,
    Scheme, Strategy, Worker, Workers, hash,
};
use serde_json::Value;

fn golden(name: &str) -> Value {
    let path = format!("{}/tests/golden/{name}", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(&path).expect(&path);
    serde_json::from_str(&text).expect(&path)
}

fn list(value: &Value) -> &Vec<Value> {
    value.as_array().expect("a list")
}

fn text(value: &Value) -> &str {
    value.as_str().expect("a string")
}

fn hex(value: &Value) -> u64 {
    u64::from_str_radix(text(value), 16).expect("hexadecimal")
}

fn units(vector: &Value) -> Vec<u16> {
    if let Some(units) = vector["codeUnits"].as_array() {
        return units
            .iter()
            .map(|unit| unit.as_u64().unwrap() as u16)
            .collect();
    }
    let key = match &vector["keyRepeat"] {
        Value::Null => text(&vector["key"]).to_owned(),
        repeat => text(&repeat["repeat"]).repeat(repeat["times"].as_u64().unwrap() as usize),
    };
    key.encode_utf16().collect()
}

#[test]
fn djb2_js_names_the_partitions_that_javascript_names() {
    let vectors = golden("cosmos.json");
    let mut checked = 0;
    for vector in list(&vectors["vectors"]) {
        let units = units(vector);
        assert_eq!(units.len() as u64, vector["utf16Len"].as_u64().unwrap());
        let hash = hash::djb2_js(units.iter().copied());
        assert_eq!(i64::from(hash), vector["hash_i32"].as_i64().unwrap());
        assert_eq!(
            u64::from(hash.unsigned_abs()),
            vector["abs"].as_u64().unwrap()
        );
        for (count, name) in vector["partitions"].as_object().unwrap() {
            let space = KeySpace::new(KeyScheme::Djb2Js, count.parse().unwrap()).unwrap();
            let place = space.locate_utf16(&units);
            assert_eq!(KeySpace::name(place.partition), text(name));
            assert_eq!(place.hash, u64::from(hash.cast_unsigned()));
            if let Ok(key) = String::from_utf16(&units) {
                assert_eq!(space.name_of(&key), text(name), "{key}");
            } else {
                assert_eq!(vector["validUtf8"], false);
            }
            checked += 1;
        }
    }
    assert!(checked >= 29 * 6, "only {checked} vectors were read");
}

#[test]
fn djb2_js_clamps_counts_as_javascript_does() {
    let vectors = golden("cosmos.json");
    let mut checked = 0;
    for vector in list(&vectors["validatePartitionCount"]) {
        // Fractions, NaN, strings and undefined exist only in JavaScript.
        let whole = text(&vector["input"]).parse::<i64>().ok();
        if let (Some(count), "number") = (whole, text(&vector["type"])) {
            let space = KeySpace::new(KeyScheme::Djb2Js, count).unwrap();
            assert_eq!(
                u64::from(space.partitions()),
                vector["result"].as_u64().unwrap()
            );
            checked += 1;
        }
    }
    assert_eq!(checked, 9);
}

#[test]
fn cruster_hashes_and_shards_are_reproduced() {
    let vectors = golden("cruster.json");
    for vector in list(&vectors["hashes"]) {
        let key = text(&vector["key"]);
        let bytes = key.as_bytes();
        assert_eq!(
            u64::from(hash::djb2_32(bytes)),
            vector["djb2_32"].as_u64().unwrap()
        );
        assert_eq!(hash::djb2_64(bytes), hex(&vector["djb2_64"]));
        assert_eq!(hash::cruster64(&[bytes]), hex(&vector["hash64"]));
        for count in [300, 2048] {
            let space = KeySpace::new(KeyScheme::Djb2Bits32, count).unwrap();
            let expected = vector[format!("shard_{count}")].as_u64().unwrap();
            assert_eq!(u64::from(space.locate(key).partition), expected);
        }
        let space = KeySpace::new(KeyScheme::Djb2Bits64, 2048).unwrap();
        assert_eq!(space.locate(key).hash, hex(&vector["djb2_64"]));
    }
    for vector in list(&vectors["scores"]) {
        let key = text(&vector["key_escaped"]).replace("\\0", "\0");
        assert_eq!(hash::cruster64(&[key.as_bytes()]), hex(&vector["hash64"]));
        let (head, tail) = key.as_bytes().split_at(3);
        assert_eq!(hash::cruster64(&[head, tail]), hex(&vector["hash64"]));
    }
}

#[test]
fn cruster_assignments_are_reproduced_bit_for_bit() {
    let vectors = golden("cruster.json");
    let strategy = Rendezvous::new().with_scheme(Scheme::Cruster);
    for vector in list(&vectors["assignments"]) {
        let runners: Vec<(&str, f64)> = list(&vector["runners"])
            .iter()
            .map(|runner| text(runner).rsplit_once('=').unwrap())
            .map(|(id, weight)| (id, weight.parse().unwrap()))
            .collect();
        let workers = Workers::new(
            runners
                .iter()
                .map(|&(id, weight)| Worker::new(id).unwrap().with_weight(weight).unwrap()),
        )
        .unwrap();
        let shards = vector["shards"].as_u64().unwrap() as u32;
        let group = text(&vector["group"]);
        let partitions = Partitions::shards([(group, shards)]).unwrap();
        let assignment = strategy.assign(&workers, &partitions, None).unwrap();
        for (shard, digit) in text(&vector["owners"]).chars().enumerate() {
            let expected = runners[digit.to_digit(10).unwrap() as usize].0;
            let owner = assignment.owner_of(&format!("{group}:{shard}")).unwrap();
            assert_eq!(owner.id(), expected, "shard {shard}");
        }
        for (id, count) in vector["counts"].as_object().unwrap() {
            let owned = assignment.partitions_of(id).unwrap().count();
            assert_eq!(owned as u64, count.as_u64().unwrap());
        }
    }
}

#[test]
fn rendezgo_hashes_owners_and_rankings_are_reproduced_and_scores_to_2_ulp() {
    for vector in list(&golden("rendezgo.json")) {
        let nodes = list(&vector["nodes"]);
        let (cluster, _) = text(&nodes[0]["id"]).split_once(':').unwrap();
        let strategy = Rendezvous::new().with_scheme(Scheme::Rendezgo {
            cluster: cluster.to_owned(),
        });
        let workers = Workers::new(nodes.iter().map(|node| {
            let (_, id) = text(&node["id"]).split_once(':').unwrap();
            let weight = node["weight"].as_f64().unwrap();
            Worker::new(id).unwrap().with_weight(weight).unwrap()
        }))
        .unwrap();
        let unit = vector["unit"].as_u64().unwrap();
        let name = format!("{}:{unit}", text(&vector["workload"]));
        let partitions = Partitions::new([name.parse().unwrap()]).unwrap();

        let explanation = strategy
            .explain(&name, &workers, &partitions, None)
            .unwrap();
        let full_id = |id: &str| format!("{cluster}:{id}");
        assert_eq!(full_id(&explanation.owner), text(&vector["owner"]));
        let ranking: Vec<String> = explanation
            .ranking
            .iter()
            .map(|r| full_id(&r.worker))
            .collect();
        let expected: Vec<&str> = list(&vector["ranking"]).iter().map(text).collect();
        assert_eq!(ranking, expected);
        let assignment = strategy.assign(&workers, &partitions, None).unwrap();
        assert_eq!(assignment.owner_of(&name).unwrap().id(), explanation.owner);

        for node in nodes {
            let id = text(&node["id"]);
            let ranked = explanation
                .ranking
                .iter()
                .find(|r| full_id(&r.worker) == id)
                .unwrap();
            assert_eq!(ranked.hash.as_deref(), Some(text(&node["xxh64"])));
            let apart = ranked
                .score
                .unwrap()
                .to_bits()
                .abs_diff(hex(&node["scoreBits"]));
            assert!(apart <= 2, "{id}: score is {apart} ulp off");
        }
    }
}

#[test]
fn native_key_hashes_are_pinned() {
    for vector in list(&golden("native.json")["keys"]) {
        let place = KeySpace::default().locate(text(&vector["key"]));
        assert_eq!(place.hash, hex(&vector["hash"]));
        assert_eq!(
            u64::from(place.partition),
            vector["of_100"].as_u64().unwrap()
        );
    }
}

#[test]
fn native_rendezvous_hashes_and_scores_are_pinned_to_the_bit() {
    for vector in list(&golden("native.json")["pairs"]) {
        let strategy = Rendezvous::new().with_scheme(Scheme::Native {
            seed: text(&vector["seed"]).parse().unwrap(),
        });
        let weight = vector["weight"].as_f64().unwrap();
        let worker = Worker::new(text(&vector["worker"])).unwrap();
        let workers = Workers::new([worker.with_weight(weight).unwrap()]).unwrap();
        let name = text(&vector["partition"]);
        let partitions = Partitions::new([name.parse().unwrap()]).unwrap();
        let explanation = strategy.explain(name, &workers, &partitions, None).unwrap();
        let ranked = &explanation.ranking[0];
        assert_eq!(
            ranked.hash.as_deref(),
            Some(text(&vector["hash"])),
            "{vector}"
        );
        assert_eq!(
            ranked.score.unwrap().to_bits(),
            hex(&vector["score_bits"]),
            "{vector}"
        );
    }
}

#[test]
fn native_assignments_of_each_strategy_are_pinned() {
    let vectors = golden("native.json");
    let cases = list(&vectors["assignments"]);
    assert!(cases.len() >= 29, "only {} cases were read", cases.len());
    for case in cases {
        let workers = Workers::new(list(&case["workers"]).iter().map(|worker| {
            let weight = worker[1].as_f64().unwrap();
            Worker::new(text(&worker[0]))
                .unwrap()
                .with_weight(weight)
                .unwrap()
        }))
        .unwrap();
        let shards = case["shards"].as_u64().unwrap() as u32;
        let partitions = Partitions::shards([("default", shards)]).unwrap();
        let seed = case["seed"].as_u64().unwrap_or(0);
        let strategy: Box<dyn Strategy> = match text(&case["strategy"]) {
            "rendezvous" => Box::new(Rendezvous::new().with_scheme(Scheme::Native { seed })),
            "consistent-hash" => {
                let virtual_nodes = case["virtual_nodes"].as_u64().unwrap() as u32;
                let ring = ConsistentHash::new().with_virtual_nodes(virtual_nodes);
                Box::new(ring.with_seed(seed))
            }
            "rendezvous-filtered" => Box::new(FilteredRendezvous::new().with_seed(seed)),
            "round-robin" => Box::new(RoundRobin),
            other => panic!("unknown strategy {other}"),
        };
        let assignment = strategy.assign(&workers, &partitions, None).unwrap();
        let name = format!("{} x {} seed {seed}", strategy.name(), workers.len());
        if let Some(owners) = case["owners"].as_str() {
            let ours: String = assignment
                .owners()
                .iter()
                .map(|&owner| char::from_digit(owner, 36).unwrap())
                .collect();
            assert_eq!(ours, owners, "{name}");
        }
        let bytes: Vec<u8> = assignment
            .owners()
            .iter()
            .flat_map(|o| o.to_le_bytes())
            .collect();
        assert_eq!(hash::xxh64(&bytes), hex(&case["digest"]), "{name}");
    }
}
