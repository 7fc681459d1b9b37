//! What a plan could not reach, in sentences.

use divvy::StrategyName;

use crate::preview::Preview;
use crate::table::counted;

/// What the certificate has to say beyond numbers.
pub(crate) fn sentences(preview: &Preview<'_>) -> Vec<String> {
    let certificate = preview.certificate();
    let mut sentences = Vec::new();
    if certificate.giants > 0 {
        sentences.push(giants(preview));
    }
    if let Some(edges) = preview.edges().filter(|_| certificate.outside > 0) {
        let (workers, verb) = noun(certificate.outside, "worker");
        sentences.push(format!(
            "{workers} {verb} outside of the band, {:.2} to {:.2} times the share: no moves \
             were found that change that. A wider --band allows for coarse partitions.",
            edges.low, edges.high
        ));
    }
    if certificate.zones_outside > 0 {
        let (zones, verb) = noun(certificate.zones_outside, "zone");
        sentences.push(format!(
            "{zones} {verb} outside of the band of zones, which is a third of that of workers."
        ));
    }
    sentences.extend(fast_path(preview));
    sentences
}

/// That some partitions are heavier than the band allows for.
fn giants(preview: &Preview<'_>) -> String {
    let certificate = preview.certificate();
    let (giants, verb) = noun(certificate.giants, "partition");
    let each = if certificate.giants == 1 {
        "it"
    } else {
        "each"
    };
    let target = match certificate.target_over_mean {
        0.0 => "nothing is left for the others".to_owned(),
        target => {
            format!("the band is around what the others average, {target:.3} times the mean")
        }
    };
    format!(
        "{giants} {verb} too heavy for the band of any worker: {each} has a worker of its own, and \
         {target}."
    )
}

/// That no band was kept, where that shows.
fn fast_path(preview: &Preview<'_>) -> Option<String> {
    let width = preview.band.filter(|_| !preview.is_banded())?;
    let balance = preview.after().balance();
    let inside = balance.max_over_mean <= 1.0 + width && balance.min_over_mean >= 1.0 - width;
    let name = StrategyName::WeightedConsistentHash.as_str();
    (preview.strategy == name && !inside).then(|| {
        "All partitions weigh the same, so the ring alone places them and no band is kept: \
         --no-fast-path keeps it, and the strategy balanced is even to 1."
            .to_owned()
    })
}

/// A count with its noun, and the verb that goes with it.
fn noun(count: u32, noun: &str) -> (String, &'static str) {
    let verb = if count == 1 { "is" } else { "are" };
    (counted(count as usize, noun), verb)
}
