//! `divvy playground --store`: a cluster of real workers, each this program
//! again.

use std::time::Duration;

use anyhow::anyhow;
use divvy_playground::{Crew, Ground, Playground, Setup, be_member};

use crate::args::{MemberArgs, PlaygroundArgs, STORE_VARIABLE};
use crate::commands::live;
use crate::commands::worker::store_of;
use crate::exec::{end_with, ourselves};
use crate::failure::Failure;
use crate::runtime;

/// Time between two looks at the cluster.
const LOOK_EVERY: Duration = Duration::from_millis(200);

/// Starts workers on the store that was typed.
pub(super) async fn opened(args: &PlaygroundArgs, setup: Setup) -> Result<Playground, Failure> {
    let url = store_of(args.store.as_ref())?;
    let mut settings = args.reach.settings()?;
    if settings.cluster == "default" {
        // Nobody else's, and empty.
        settings.cluster = format!("playground-{:08x}", fastrand::u32(..));
    }
    let (flags, address) = (args.reach.flags(&settings.cluster), url.to_string());
    let crew = Crew::new(move || {
        let mut command = ourselves()?;
        command
            .arg("play-member")
            .arg("--parent")
            .arg(std::process::id().to_string())
            .args(&flags)
            .env(STORE_VARIABLE, &address);
        Ok(command)
    });
    let ground = Ground { url, settings };
    let every = args.interval.unwrap_or(LOOK_EVERY);
    let playground = Playground::perform(ground, setup, crew, every).await;
    playground.map_err(live::refused)
}

/// Ends what was started. What is left in the store is told.
pub(super) async fn ended(playground: &Playground) -> Result<(), Failure> {
    let ended = playground.end().await;
    ended.map_err(|error| {
        Failure::Failed(anyhow!(
            "keys of this playground are left in the store: {error}"
        ))
    })
}

/// Is a worker, until the playground has no more to say.
pub(crate) fn play(args: &MemberArgs) -> Result<(), Failure> {
    end_with(args.parent)?;
    let url = store_of(None)?;
    let settings = args.reach.settings()?;
    let runtime = runtime::with_threads(2).map_err(Failure::Failed)?;
    let played = runtime.block_on(be_member(url, settings));
    // Whoever still reads what it hears does not keep it.
    runtime.shutdown_background();
    played.map_err(|why| Failure::Failed(anyhow!(why)))
}
