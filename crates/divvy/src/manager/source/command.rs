//! Partitions from what a command prints.

use std::process::Stdio;

use async_trait::async_trait;
use divvy_core::Partitions;
use tokio::io::{AsyncRead, AsyncReadExt as _};
use tokio::process::Command;

use super::PartitionSource;
use crate::listing::{Form, LIST_BYTES_MAX, partitions, text_of};
use crate::manager::hooks::HookError;

/// How much of what a failed command says is repeated.
const SAID_BYTES_MAX: u64 = 1000;

/// Partitions that a command prints, as JSON unless another form is chosen. A
/// command that fails leaves the last list in force.
///
/// ```
/// use divvy::listing::Form;
/// use divvy::manager::CommandSource;
///
/// let json = CommandSource::new("list-shards", ["--all"]);
/// let csv = CommandSource::new("psql", ["--csv", "-c", "select key, weight from shard"])
///     .with_form(Form::Csv);
/// ```
#[derive(Debug, Clone)]
pub struct CommandSource {
    program: String,
    arguments: Vec<String>,
    form: Form,
}

impl CommandSource {
    /// A program with its arguments; no shell is between.
    pub fn new<S: Into<String>>(
        program: impl Into<String>,
        arguments: impl IntoIterator<Item = S>,
    ) -> Self {
        Self {
            program: program.into(),
            arguments: arguments.into_iter().map(Into::into).collect(),
            form: Form::Json,
        }
    }

    /// The same, printing another form.
    #[must_use]
    pub fn with_form(self, form: Form) -> Self {
        Self { form, ..self }
    }
}

#[async_trait]
impl PartitionSource for CommandSource {
    async fn list_partitions(&self) -> Result<Partitions, HookError> {
        let mut child = Command::new(&self.program)
            .args(&self.arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .map_err(|error| format!("command '{}': {error}", self.program))?;
        let (out, err) = (child.stdout.take(), child.stderr.take());
        let (printed, said) = tokio::try_join!(
            up_to(out, LIST_BYTES_MAX + 1),
            // What is beyond is read too, or the command would wait for ever.
            up_to(err, LIST_BYTES_MAX),
        )?;
        if printed.len() as u64 > LIST_BYTES_MAX {
            let text = format!(
                "command '{}': prints more than {LIST_BYTES_MAX} bytes",
                self.program
            );
            return Err(text.into());
        }
        let status = child.wait().await?;
        if !status.success() {
            let said = &said[..said.len().min(SAID_BYTES_MAX as usize)];
            let said = String::from_utf8_lossy(said);
            return Err(format!("command '{}': {status}: {}", self.program, said.trim()).into());
        }
        let read = text_of(printed).and_then(|text| partitions(self.form, &text));
        Ok(read.map_err(|fault| format!("command '{}': {fault}", self.program))?)
    }
}

async fn up_to(stream: Option<impl AsyncRead + Unpin>, bytes_max: u64) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    if let Some(stream) = stream {
        stream.take(bytes_max).read_to_end(&mut bytes).await?;
    }
    Ok(bytes)
}
