//! The name of a worker that was given none.

/// Longest part that comes from the platform, in characters.
const PLATFORM_CHARS_MAX: usize = 200;

/// A name for this process: the pod's id or name where there is one, which a
/// restart keeps; otherwise the host's with a random end, so that several
/// processes of one host differ.
pub fn default_worker_name() -> String {
    let named = |variable: &str| {
        let name = std::env::var(variable).ok()?;
        let name = sanitised(&name);
        (!name.is_empty()).then_some(name)
    };
    if let Some(pod) = named("POD_UID").or_else(|| named("POD_NAME")) {
        return pod;
    }
    let host = named("HOSTNAME").unwrap_or_else(|| {
        let system = rustix::system::uname();
        let host = sanitised(&system.nodename().to_string_lossy());
        match host.is_empty() {
            true => "worker".to_owned(),
            false => host,
        }
    });
    format!("{host}-{:08x}", fastrand::u32(..))
}

/// What may be in a name of every store: letters, digits, `-`, `_` and `.`.
fn sanitised(name: &str) -> String {
    let kept = name.chars().map(|c| match c {
        c if c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.') => c,
        _ => '-',
    });
    let kept: String = kept.take(PLATFORM_CHARS_MAX).collect();
    kept.trim_matches('-').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use divvy_core::store::LeaseName;

    #[test]
    fn two_processes_of_one_host_get_different_names_that_stores_take() {
        let (one, two) = (default_worker_name(), default_worker_name());
        assert_ne!(one, two);
        LeaseName::new("worker", &one).unwrap();
    }

    #[test]
    fn what_would_part_a_key_is_replaced() {
        assert_eq!(sanitised("a:b|c{d}é\n.x_1"), "a-b-c-d---.x_1");
        assert_eq!(sanitised(":::"), "");
        assert!(sanitised(&"x".repeat(1000)).len() <= PLATFORM_CHARS_MAX);
    }
}
