//! Reading the settings again: what counts at once, and what takes a restart.

use divvy::controller::{ControllerSettings, ControllerView};

use super::settings;
use crate::args::AgentArgs;

/// Settings in force, and how they change.
pub(super) struct Reloading {
    current: ControllerSettings,
}

impl Reloading {
    pub(super) fn new(current: ControllerSettings) -> Self {
        Self { current }
    }

    /// Takes what can be taken, and says what was and what was not.
    pub(super) async fn reload(
        &mut self,
        args: &AgentArgs,
        view: &ControllerView,
    ) -> Result<String, String> {
        if args.config.is_none() {
            return Err("there is no --config to read again".to_owned());
        }
        let read = settings(args).map_err(|failure| failure.to_string())?;
        let mut next = self.current.clone();
        next.groups.clone_from(&read.groups);
        next.weight = read.weight;
        next.lease = next.lease.tuned(&read.lease);
        let apply = async {
            next.lease.check()?;
            view.report_weight(next.weight)?;
            view.tune(next.lease.clone()).await?;
            view.regroup(next.groups.clone()).await
        };
        apply.await.map_err(|error| error.to_string())?;
        let taken = differing(&self.current, &next);
        let left = differing(&next, &read);
        self.current = next;
        let mut told = match taken.is_empty() {
            true => "nothing has changed that can be taken while it runs".to_owned(),
            false => taken.join(", "),
        };
        if !left.is_empty() {
            told += &format!("; these take a restart: {}", left.join(", "));
        }
        Ok(told)
    }
}

/// The names of settings that differ, as a file has them.
fn differing(one: &ControllerSettings, other: &ControllerSettings) -> Vec<String> {
    let shown = |settings: &ControllerSettings| {
        serde_json::to_value(settings).expect("settings have a JSON form")
    };
    let (one, other) = (shown(one), shown(other));
    let names = [&one, &other].into_iter().filter_map(|it| it.as_object());
    let names: std::collections::BTreeSet<&String> = names.flat_map(|it| it.keys()).collect();
    let differs = |name: &&&String| one.get(**name) != other.get(**name);
    names
        .iter()
        .filter(differs)
        .map(|it| (*it).clone())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_that_differ_are_named_as_a_file_has_them() {
        let one = ControllerSettings::default();
        assert!(differing(&one, &one).is_empty());
        let text = r#"{"worker": "a", "lease_ttl": "20s", "workloads": {"demo": 3}}"#;
        let other = ControllerSettings::from_json(text).unwrap();
        let expected = [
            "heartbeat_interval",
            "heartbeat_ttl",
            "lease_ttl",
            "renew_interval",
            "worker",
            "workloads",
        ];
        assert_eq!(differing(&one, &other), expected);
    }
}
