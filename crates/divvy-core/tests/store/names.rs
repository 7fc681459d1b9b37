//! The one encoder for names: injective, reversible, inside its prefix.

use divvy_core::store::{KEY_BYTES_MAX, KEY_PARTS_MAX, Key, Prefix, decode_part, encode_part};
use proptest::collection::vec;
use proptest::prelude::*;

/// Names of every kind: any characters, those that servers read as patterns,
/// and those that the encoder itself writes.
fn name() -> impl Strategy<Value = String> {
    prop_oneof![
        vec(any::<char>(), 1..8).prop_map(String::from_iter),
        "[a.*>=:|{}/ %0-9A-F-]{1,10}",
        "(=[0-9A-Fa-f]{2}|=|[a-z.]){1,5}",
        "[a-zA-Z0-9_-]{1,12}",
    ]
}

fn parts() -> impl Strategy<Value = Vec<String>> {
    vec(name(), 1..=KEY_PARTS_MAX)
}

fn key_of(parts: &[String]) -> Key {
    Key::new(parts.iter().map(String::as_str)).unwrap()
}

/// Whether the encoder can have written `text` as one part, said once more in
/// other words: as a grammar over bytes.
fn is_encoded_part(text: &[u8]) -> bool {
    let mut name = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        let kept = rest[0].is_ascii_alphanumeric() || b"_-".contains(&rest[0]);
        let hex = |digit: u8| digit.is_ascii_digit() || (b'A'..=b'F').contains(&digit);
        if kept {
            name.push(rest[0]);
            rest = &rest[1..];
        } else if rest.len() >= 3 && rest[0] == b'=' && hex(rest[1]) && hex(rest[2]) {
            let digits = std::str::from_utf8(&rest[1..3]).unwrap();
            let byte = u8::from_str_radix(digits, 16).unwrap();
            if byte.is_ascii_alphanumeric() || b"_-".contains(&byte) {
                return false;
            }
            name.push(byte);
            rest = &rest[3..];
        } else {
            return false;
        }
    }
    !name.is_empty() && std::str::from_utf8(&name).is_ok()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1500, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_name_comes_back(name in name()) {
        let text = encode_part(&name);
        prop_assert_eq!(decode_part(&text), Some(name));
        prop_assert!(is_encoded_part(text.as_bytes()));
    }

    #[test]
    fn every_key_comes_back(parts in parts()) {
        let key = key_of(&parts);
        prop_assert_eq!(&key.parts(), &parts);
        prop_assert_eq!(&Key::parse(key.as_str()).unwrap(), &key);
    }

    #[test]
    fn keys_are_equal_only_if_their_parts_are(a in parts(), b in parts()) {
        prop_assert_eq!(key_of(&a) == key_of(&b), a == b);
        // Nearly the same: the parts joined, cut elsewhere, or one less.
        let joined = vec![a.join(".")];
        prop_assert_eq!(key_of(&a) == key_of(&joined), a == joined);
        if a.len() > 1 {
            prop_assert_ne!(key_of(&a), key_of(&a[1..]));
        }
    }

    #[test]
    fn keys_are_written_in_the_safe_alphabet_only(parts in parts()) {
        let key = key_of(&parts);
        let safe = |byte: u8| byte.is_ascii_alphanumeric() || b"_-=.".contains(&byte);
        prop_assert!(key.as_str().bytes().all(safe), "{}", key);
        let dots = key.as_str().bytes().filter(|byte| *byte == b'.').count();
        prop_assert_eq!(dots, parts.len() - 1);
        prop_assert!(!key.as_str().split('.').any(str::is_empty));
    }

    #[test]
    fn a_prefix_holds_exactly_what_goes_on_after_its_parts(a in parts(), b in parts()) {
        let prefix = Prefix::below(key_of(&a));
        let holds = b.len() > a.len() && b[..a.len()] == a;
        prop_assert_eq!(prefix.holds(&key_of(&b)), holds);
        let longer: Vec<String> = a.iter().chain(&b).cloned().collect();
        if let Ok(key) = Key::new(longer.iter().map(String::as_str)) {
            prop_assert!(prefix.holds(&key));
            prop_assert!(key.as_str().starts_with(&prefix.text()));
        }
        prop_assert!(!prefix.holds(&key_of(&a)));
        prop_assert!(Prefix::ALL.holds(&key_of(&a)) && Prefix::ALL.text().is_empty());
    }

    #[test]
    fn a_prefix_and_its_text_agree(a in "[ab.=2E]{1,6}", b in "[ab.=2E]{1,12}") {
        // The text is enough for a server that only compares beginnings.
        let (Ok(a), Ok(b)) = (Key::parse(&a), Key::parse(&b)) else { return Ok(()) };
        let prefix = Prefix::below(a);
        prop_assert_eq!(prefix.holds(&b), b.as_str().starts_with(&prefix.text()));
    }

    #[test]
    fn whatever_the_encoder_does_not_write_is_refused(text in "[a-cA-F0-9=._ *>é-]{0,12}") {
        let encoded = text.split('.').all(|part| is_encoded_part(part.as_bytes()))
            && text.split('.').count() <= KEY_PARTS_MAX;
        prop_assert_eq!(Key::parse(&text).is_ok(), encoded, "{}", text);
    }

    #[test]
    fn bytes_at_random_are_refused_or_are_a_key(bytes in vec(any::<u8>(), 0..40)) {
        let text = String::from_utf8_lossy(&bytes);
        if let Ok(key) = Key::parse(&text) {
            prop_assert_eq!(key.as_str(), &*text);
            prop_assert_eq!(&key_of(&key.parts()), &key);
        }
        prop_assert_eq!(decode_part(&text).is_some(), is_encoded_part(text.as_bytes()));
    }
}

#[test]
fn every_text_of_up_to_three_bytes_decodes_only_if_the_encoder_wrote_it() {
    let bytes: Vec<u8> = (0..128).collect();
    let mut decoded = 0;
    for first in &bytes {
        for second in &bytes {
            for third in &bytes {
                let text = [*first, *second, *third];
                let text = std::str::from_utf8(&text).unwrap();
                let name = decode_part(text);
                assert_eq!(name.is_some(), is_encoded_part(text.as_bytes()), "{text:?}");
                if let Some(name) = name {
                    assert_eq!(encode_part(&name), text);
                    decoded += 1;
                }
            }
        }
    }
    // 64 kept characters, and `=XX` for the 64 other ASCII bytes; a byte above
    // needs company to be a character.
    assert_eq!(decoded, 64 * 64 * 64 + 64);
}

#[test]
fn keys_out_of_bounds_are_refused_with_their_bound() {
    let longest = "x".repeat(KEY_BYTES_MAX);
    assert!(Key::new([longest.as_str()]).is_ok());
    assert!(Key::parse(&longest).is_ok());
    let longer = format!("{longest}x");
    for error in [
        Key::new([longer.as_str()]).unwrap_err(),
        Key::parse(&longer).unwrap_err(),
        // Three bytes for each that is not kept.
        Key::new(["*".repeat(KEY_BYTES_MAX / 3 + 1).as_str()]).unwrap_err(),
    ] {
        assert!(error.to_string().contains("over 1024 bytes"), "{error}");
        assert!(error.to_string().len() < 500, "{error}");
    }
    assert!(Key::new(["p"; KEY_PARTS_MAX]).is_ok());
    let error = Key::new(["p"; KEY_PARTS_MAX + 1]).unwrap_err();
    assert!(error.to_string().contains("over 8 parts"), "{error}");
    assert!(Key::new([]).is_err());
    assert!(Key::new(["a", "", "b"]).is_err());
    for text in [
        "", ".", "a.", ".a", "a..b", "a.b.", "=", "=2", "=2a", "=41", "=FF", "=C3",
    ] {
        assert!(Key::parse(text).is_err(), "{text}");
    }
}
