//! What is there for people: what operators wish, and the log of moves.

use ::redis::Value;
use divvy_core::store::{LeaseName, MOVE_LINES_MAX, StoreError, StoreErrorKind};
use divvy_core::{CONTROL_BYTES_MAX, MOVES_BYTES_MAX};

use super::failure::Nature;
use super::link::Link;
use super::script::{self, Inputs};
use super::{layout, reply};

/// The notes of one cluster.
pub(super) struct Notes<'a> {
    pub(super) link: &'a Link,
    pub(super) cluster: &'a LeaseName,
}

impl Notes<'_> {
    /// What is too long to be ours comes cut, one byte over the bound, and so
    /// is known for it.
    pub(super) async fn wishes(&self) -> Result<Option<String>, StoreError> {
        let text = self.range(layout::wishes(self.cluster), CONTROL_BYTES_MAX);
        match text.await {
            // Who reads it says that it is not readable, and goes on.
            Err(error) if error.kind() == StoreErrorKind::Unfit => Ok(Some(error.to_string())),
            text => Ok(Some(text?).filter(|text| !text.is_empty())),
        }
    }

    pub(super) async fn set_wishes(
        &self,
        before: Option<&str>,
        wishes: &str,
    ) -> Result<bool, StoreError> {
        let channel = layout::member_channel(self.link.endpoint().database(), self.cluster);
        let inputs = Inputs::new()
            .key(layout::wishes(self.cluster))
            .argument(before.unwrap_or_default())
            .argument(wishes)
            .argument(channel)
            .argument(self.cluster.as_str());
        let call = self.link.call(Nature::Write)?;
        match script::SET_WISHES.run(&call, inputs).await? {
            Value::Int(written) => Ok(written == 1),
            _ => Err(reply::unexpected("a script")),
        }
    }

    pub(super) async fn log_moves(&self, moves: &[String]) -> Result<(), StoreError> {
        if moves.is_empty() {
            return Ok(());
        }
        let mut inputs = self.log();
        for line in moves {
            inputs = inputs.argument(line);
        }
        let call = self.link.call(Nature::Write)?;
        match script::LOG_MOVES.run(&call, inputs).await? {
            Value::Int(1) => Ok(()),
            Value::Int(0) => Err(self.no_log()),
            _ => Err(reply::unexpected("a script")),
        }
    }

    pub(super) async fn moves(&self) -> Result<Vec<String>, StoreError> {
        let call = self.link.call(Nature::Read)?;
        let lines = match script::MOVES.run(&call, self.log()).await? {
            Value::Int(0) => return Err(self.no_log()),
            lines => reply::array(lines).ok_or_else(|| reply::unexpected("a script"))?,
        };
        let lines = lines.iter().rev().filter_map(reply::text);
        Ok(lines.collect())
    }

    fn log(&self) -> Inputs {
        Inputs::new()
            .key(layout::move_log(self.cluster))
            .argument(MOVE_LINES_MAX)
            .argument(MOVES_BYTES_MAX)
    }

    fn no_log(&self) -> StoreError {
        StoreError::unfit(format_args!(
            "key '{}' holds no list of moves: somebody else wrote it, so remove it",
            layout::move_log(self.cluster)
        ))
    }

    async fn range(&self, key: String, bytes_max: usize) -> Result<String, StoreError> {
        let mut command = ::redis::cmd("GETRANGE");
        command.arg(key).arg(0).arg(bytes_max);
        let found = self.link.call(Nature::Read)?.ask(command).await?;
        reply::text(&found).ok_or_else(|| reply::unexpected("GETRANGE"))
    }
}
