//! Nothing that is sent to the interface breaks it.

use proptest::prelude::*;
use serde_json::{Value, json};

use crate::bed::Bed;

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        ".{0,12}".prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 16, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map(".{0,8}", inner, 0..4)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

/// Actions with a name that is known, and fields that may be anything.
fn nearly_actions() -> impl Strategy<Value = Value> {
    let name = prop::sample::select(divvy_playground::Action::names(divvy_sim::Mode::Leader));
    let field = prop::sample::select(vec![
        "worker",
        "count",
        "weight",
        "zone",
        "name",
        "how",
        "on",
        "partition",
        "state",
        "ms",
        "speed",
        "mode",
        "preset",
        "strategy",
        "exclusive",
        "seed",
        "announced",
        "workers",
    ]);
    let small = prop_oneof![
        any_json(),
        (0..6_i64).prop_map(Value::from),
        Just(json!("orders:1")),
        Just(json!("full")),
        Just(json!(true)),
    ];
    (name, prop::collection::btree_map(field, small, 0..4)).prop_map(|(name, fields)| {
        let mut map: serde_json::Map<String, Value> = fields
            .into_iter()
            .map(|(field, value)| (field.to_owned(), value))
            .collect();
        map.insert("action".to_owned(), name.into());
        Value::Object(map)
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(8))]

    #[test]
    fn no_body_breaks_the_server(
        bodies in prop::collection::vec(prop_oneof![any_json(), nearly_actions()], 40),
        garbage in prop::collection::vec(any::<u8>(), 0..300),
    ) {
        let bed = Bed::new(None);
        bed.done(json!({"action": "hold"}));
        for body in bodies {
            let is_step = body["action"] == "step";
            if is_step {
                continue;
            }
            let (status, answer) = bed.act(&body);
            prop_assert!(matches!(status, 200 | 400 | 404 | 409), "{status}: {body}");
            prop_assert!(answer["done"].is_string() || answer["error"].is_string());
        }
        let mut request = format!(
            "POST /api/v1/actions HTTP/1.1\r\nHost: {}\r\nContent-Type: application/json\r\n\
             Connection: close\r\nContent-Length: {}\r\n\r\n",
            bed.address,
            garbage.len()
        )
        .into_bytes();
        request.extend(&garbage);
        let (status, _, _) = bed.raw(&request);
        prop_assert_eq!(status, 400);
        bed.raw(&garbage);
        let violations = bed.snapshot()["invariants"]["violations"].clone();
        prop_assert_eq!(violations, json!([]));
    }
}
