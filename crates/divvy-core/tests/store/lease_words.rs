//! Nonces, tokens, ids and descriptions, as they are read back from a store
//! that others can write to.

use divvy_core::store::{
    GivingUp, LEASE_NAME_BYTES_MAX, LeaseName, Nonce, Token, WorkerId, WorkerInfo,
};
use proptest::collection::vec;
use proptest::prelude::*;

proptest! {
    #![proptest_config(ProptestConfig { cases: 1000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_nonce_comes_back(bits: u128) {
        let nonce = Nonce::new(bits);
        prop_assert_eq!(nonce.to_string().len(), 32);
        prop_assert_eq!(nonce.to_string().parse::<Nonce>().unwrap(), nonce);
    }

    #[test]
    fn every_token_comes_back(number in 1_i64..) {
        let token = Token::new(number).unwrap();
        prop_assert_eq!(token.to_string().parse::<Token>().unwrap(), token);
        prop_assert_eq!(token.get(), number);
    }

    #[test]
    fn a_token_follows_the_last_and_the_clock(last in 1_i64..i64::MAX, unix_ms in 0_u64..1 << 50) {
        let last = Token::new(last).unwrap();
        let next = Token::after(Some(last), unix_ms);
        prop_assert!(next > last);
        prop_assert!(i128::from(next.get()) >= i128::from(unix_ms) * 1024);
    }

    #[test]
    fn hostile_text_is_refused_or_means_one_thing(text in "\\PC{0,40}|[0-9a-fA-F+ .e-]{0,36}") {
        if let Ok(nonce) = text.parse::<Nonce>() {
            prop_assert_eq!(nonce.to_string(), text.to_lowercase());
        }
        if let Ok(token) = text.parse::<Token>() {
            let digits = text.trim_start_matches('0');
            prop_assert_eq!(token.to_string(), digits);
        }
        if let Ok(id) = text.parse::<WorkerId>() {
            prop_assert_eq!(id.to_string(), text);
        }
    }

    #[test]
    fn an_id_comes_back_whatever_its_names(cluster in "\\PC{1,20}", name in "\\PC{1,20}") {
        if let Ok(id) = WorkerId::new(&cluster, &name) {
            prop_assert_eq!(id.to_string().matches(':').count(), 1);
            prop_assert_eq!(id.to_string().parse::<WorkerId>().unwrap(), id);
        }
    }

    #[test]
    fn every_valid_description_comes_back(
        weight in prop_oneof![Just(0.0), 0.001_f64..1000.0],
        healthy: bool,
        drained: bool,
        quarantined: bool,
        lease_ttl_ms: Option<u64>,
        groups in prop::option::of(vec("[a-zé\\\\\"*]{1,10}", 0..5)),
        partitions in prop::collection::btree_map("[a-zé\\\\\"*]{1,10}", any::<u32>(), 0..5),
        max_partitions: Option<u32>,
        max_per_group: Option<u32>,
        gives_up: Option<(bool, u64, u64, u32, u64)>,
        unconfirmed in vec("[a-zé\\\\\"*]{1,10}:[0-9]{1,3}", 0..5),
    ) {
        let info = WorkerInfo {
            weight,
            healthy,
            drained,
            quarantined,
            lease_ttl_ms,
            groups,
            partitions,
            max_partitions,
            max_per_group,
            gives_up: gives_up.map(|(never, min_runtime_ms, cooldown_ms, at_once, every_ms)| {
                GivingUp { never, min_runtime_ms, cooldown_ms, at_once, every_ms }
            }),
            unconfirmed,
        };
        let json = info.to_json().unwrap();
        prop_assert_eq!(WorkerInfo::from_json(&json).unwrap(), info);
    }

    #[test]
    fn hostile_descriptions_are_refused_or_keep_their_rules(
        text in "\\PC{0,60}|[\\[\\]{}:,\"0-9a-z.-]{0,60}|\\{\"weight\": ?[0-9.eE+-]{1,8}\\}",
    ) {
        if let Ok(info) = WorkerInfo::from_json(&text) {
            prop_assert!(info.weight.is_finite() && info.weight >= 0.0);
            prop_assert_eq!(WorkerInfo::from_json(&info.to_json().unwrap()).unwrap(), info);
        }
    }
}

#[test]
fn numbers_that_are_no_tokens_are_refused() {
    for text in [
        "",
        "0",
        "-1",
        "+1",
        " 1",
        "1 ",
        "1.0",
        "1e3",
        "1.8e+15",
        "0x1",
        "٣",
        "nan",
        "-0",
        "9223372036854775808",
        "99999999999999999999999999",
    ] {
        let error = text.parse::<Token>().unwrap_err();
        assert!(
            error.to_string().contains("whole number above 0"),
            "{error}"
        );
    }
    assert_eq!(
        "9223372036854775807".parse::<Token>().unwrap().get(),
        i64::MAX
    );
    assert!(Token::new(0).is_none() && Token::new(-1).is_none());
}

#[test]
fn texts_that_are_no_nonces_are_refused() {
    let digits = "0123456789abcdef0123456789abcdef";
    assert!(digits.parse::<Nonce>().is_ok());
    for text in [
        "",
        &digits[1..],
        &format!("{digits}0"),
        &format!("+{}", &digits[1..]),
        &format!("{}g", &digits[1..]),
        &format!("{}é", &digits[2..]),
        &digits.replace('0', " "),
    ] {
        assert!(text.parse::<Nonce>().is_err(), "{text}");
    }
}

#[test]
fn names_that_would_be_ambiguous_in_a_key_are_refused() {
    let longest = "n".repeat(LEASE_NAME_BYTES_MAX);
    for name in [
        "a",
        "a.b",
        "*",
        "a b",
        "é",
        "\u{1F980}",
        "=",
        "'",
        longest.as_str(),
    ] {
        assert_eq!(LeaseName::new("group", name).unwrap().as_str(), name);
    }
    let longer = format!("{longest}n");
    for name in [
        "", ":", "a:b", "a|b", "{a}", "a}", "a\nb", "a\0", "\u{7f}", " a", "a ", "\t", &longer,
    ] {
        let error = LeaseName::new("group", name).unwrap_err();
        assert!(error.to_string().starts_with("group '"), "{error}");
        assert!(error.to_string().len() < 400, "{error}");
    }
}

#[test]
fn hostile_json_is_refused_within_bounds() {
    let deep = format!("{{\"x\": {}}}", "[".repeat(30_000));
    let wide = format!("{{\"groups\": [{}\"a\"]}}", "\"a\", ".repeat(1000));
    let long = format!("{{\"x\": \"{}\"}}", "x".repeat(64 * 1024));
    let named = format!("{{\"groups\": [\"{}\"]}}", "n".repeat(300));
    for text in [
        deep.as_str(),
        wide.as_str(),
        long.as_str(),
        named.as_str(),
        "",
        "null",
        "[]",
        " \n[2, true]",
        "{",
        "{\"weight\": \"1\"}",
        "{\"weight\": 1e999}",
        "{\"weight\": -1}",
        "{\"weight\": 1e-300}",
        "{\"weight\": NaN}",
        "{\"groups\": [\"a:b\"]}",
        "{\"groups\": [\"\\u0000\"]}",
        "{\"groups\": {}}",
        "{\"healthy\": 1}",
        "{\"weight\": 1, \"weight\": 2}",
    ] {
        let error = WorkerInfo::from_json(text).unwrap_err().to_string();
        assert!(error.len() < 1000, "{error}");
        let named = ["worker info", "worker weight", "served group"];
        assert!(named.iter().any(|name| error.starts_with(name)), "{error}");
    }
    // What a later version may add is passed over.
    let later = WorkerInfo::from_json("{\"weight\": 2, \"zone\": [{\"a\": null}]}").unwrap();
    assert_eq!(
        (later.weight, later.healthy, later.groups),
        (2.0, true, None)
    );
    assert_eq!(WorkerInfo::from_json("{}").unwrap(), WorkerInfo::default());
}

#[test]
fn descriptions_out_of_bounds_are_not_written() {
    let default = WorkerInfo::default;
    for info in [
        WorkerInfo {
            weight: f64::NAN,
            ..default()
        },
        WorkerInfo {
            weight: f64::INFINITY,
            ..default()
        },
        WorkerInfo {
            weight: -1.0,
            ..default()
        },
        WorkerInfo {
            weight: f64::MIN_POSITIVE,
            ..default()
        },
        WorkerInfo {
            groups: Some(vec!["a|b".to_owned()]),
            ..default()
        },
        WorkerInfo {
            groups: Some(vec!["g".to_owned(); 1001]),
            ..default()
        },
    ] {
        assert!(info.to_json().is_err(), "{info:?}");
    }
}
