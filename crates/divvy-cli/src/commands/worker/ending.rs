//! When and how a worker ends.

use std::time::Duration;

use divvy::manager::{Settings, Shutdown};

use crate::args::{OnStop, WorkerArgs};
use crate::failure::Failure;

/// For how long partitions are kept unless another span is given.
const RETURN_WITHIN: Duration = Duration::from_secs(30);

/// What becomes of its partitions: a flag says, or else the settings.
pub(super) fn how(args: &WorkerArgs, settings: &Settings) -> Result<Shutdown, Failure> {
    match (args.on_stop, args.return_within) {
        (Some(OnStop::Return), within) => Ok(Shutdown::Return {
            within: within.unwrap_or(RETURN_WITHIN),
        }),
        (_, Some(_)) => Err(Failure::Usage(
            "--return-within needs --on-stop return beside it".to_owned(),
        )),
        (Some(OnStop::Leave), None) => Ok(Shutdown::Leave),
        (None, None) => Ok(settings.shutdown),
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;
    use crate::args::{Args, Command};

    #[test]
    fn a_flag_says_how_to_stop_or_else_the_settings_do() {
        let mut settings = Settings::fast();
        settings.shutdown = Shutdown::Return {
            within: Duration::from_secs(20),
        };
        let kept = |seconds| Shutdown::Return {
            within: Duration::from_secs(seconds),
        };
        for (flags, expected) in [
            ("", kept(20)),
            ("--on-stop leave", Shutdown::Leave),
            ("--on-stop return", kept(30)),
            ("--on-stop return --return-within 5s", kept(5)),
        ] {
            let line = format!("divvy worker {flags}");
            let args = Args::try_parse_from(line.split_whitespace()).expect("it is well-formed");
            let Command::Worker(args) = args.command else {
                panic!("another command");
            };
            assert_eq!(how(&args, &settings).ok(), Some(expected), "{flags}");
        }
    }
}
