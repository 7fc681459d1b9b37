//! Addresses of webhooks: what of them is secret, and what may be shown.

use axum::http::Uri;
use axum::http::header::HeaderValue;
use axum::http::uri::Authority;
use data_encoding::BASE64;
use divvy::Invalid;
use percent_encoding::percent_decode_str;

/// Whether an address holds, or may hold, what others should not know: a name
/// and password, or parameters. In doubt it does.
pub(crate) fn has_secret(text: &str) -> bool {
    text.contains(['@', '?'])
}

/// The scheme, host and port of an address: what may be shown of it.
pub(crate) fn origin(text: &str) -> String {
    let shown = || {
        let uri: Uri = text.parse().ok()?;
        let (scheme, authority) = (uri.scheme_str()?, uri.authority()?);
        Some(format!("{scheme}://{}", place(authority)))
    };
    shown().unwrap_or_else(|| "***".to_owned())
}

/// An address that was typed. Arguments are there for every user of the
/// machine to read, so one with a secret in it is refused, and not repeated.
pub(crate) fn typed(text: &str) -> Result<String, Invalid> {
    if has_secret(text) {
        let rule = "holds a name, password or parameters, which everyone on this machine could \
                    read here; put the address into DIVVY_WEBHOOK, or into a file that --config \
                    reads";
        return Err(Invalid::new("webhook", origin(text), rule));
    }
    Ok(text.to_owned())
}

/// Host and port, without who is to log in there.
pub(super) fn place(authority: &Authority) -> &str {
    let text = authority.as_str();
    text.rsplit_once('@').map_or(text, |(_, place)| place)
}

/// What says who logs in, where an address has a name and password.
pub(super) fn authorization(authority: &Authority) -> Option<HeaderValue> {
    let (login, _) = authority.as_str().rsplit_once('@')?;
    let (user, password) = login.split_once(':').unwrap_or((login, ""));
    let mut bytes: Vec<u8> = percent_decode_str(user).collect();
    bytes.push(b':');
    bytes.extend(percent_decode_str(password));
    let value = format!("Basic {}", BASE64.encode(&bytes));
    let mut value = HeaderValue::from_str(&value).expect("base64 can stand in a header");
    value.set_sensitive(true);
    Some(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_login_is_sent_as_it_was_meant_and_shown_nowhere() {
        let uri: Uri = "http://ada:p%40ss%3a@h:1/x".parse().unwrap();
        let sent = authorization(uri.authority().unwrap()).unwrap();
        // RFC 7617: the base64 of `ada:p@ss:`.
        assert_eq!(sent.to_str().unwrap(), "Basic YWRhOnBAc3M6");
        assert!(!format!("{sent:?}").contains("YWRh"));
        assert_eq!(place(uri.authority().unwrap()), "h:1");
        let plain: Uri = "http://h/x".parse().unwrap();
        assert_eq!(authorization(plain.authority().unwrap()), None);
    }

    #[test]
    fn no_secret_is_shown_whatever_the_address_looks_like() {
        for text in [
            "http://ada:canary@h/x",
            "http://canary@h",
            "http://h/x?token=canary",
            "http://ada:12/canary@h",
            "ada:canary@h",
            "http:// ?canary",
        ] {
            assert!(
                has_secret(text) && !origin(text).contains("canary"),
                "{text}"
            );
            let told = typed(text).unwrap_err().to_string();
            assert!(!told.contains("canary"), "{told}");
        }
        assert_eq!(origin("https://ada:canary@h:7/x?y=canary"), "https://h:7");
        assert_eq!(typed("https://h/x").unwrap(), "https://h/x");
    }
}
