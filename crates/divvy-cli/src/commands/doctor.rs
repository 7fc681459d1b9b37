//! `divvy doctor`: whether a store will do.

use std::io::{self, Write};

use anyhow::anyhow;
use divvy::doctor::{Finding, Verdict, examine_for};
use serde::Serialize;

use super::{live, write_json};
use crate::args::DoctorArgs;
use crate::commands::worker::store_of;
use crate::failure::Failure;
use crate::spinner::Spinner;
use crate::table::{Align, Table, Tone, counted};
use crate::terminal::Terminal;
use crate::wrap::wrap;

/// The columns that go on in further lines on a narrow terminal, and the
/// characters that they keep.
const LONG: [(&str, usize); 2] = [("found", 20), ("check", 9)];

#[derive(Serialize)]
struct Examined<'a> {
    format: u32,
    store: String,
    healthy: bool,
    findings: &'a [Finding],
}

pub(crate) fn run(args: &DoctorArgs, out: &mut dyn Write) -> Result<(), Failure> {
    let url = store_of(args.store.as_ref())?;
    let settings = args.reach.settings()?;
    let modes: Vec<_> = args.mode.into_iter().collect();
    let findings = live::block_on(async {
        let _spinner = Spinner::start("examining the store");
        let examined = examine_for(&url, &settings, &modes, args.lease).await;
        examined.map_err(|invalid| divvy::Error::from(invalid).into())
    })?;
    let bad: Vec<&Finding> = of(&findings, Verdict::Bad).collect();
    if args.json {
        let examined = Examined {
            format: 1,
            store: url.to_string(),
            healthy: bad.is_empty(),
            findings: &findings,
        };
        write_json(out, &examined)?;
    } else {
        write_findings(&findings, out).map_err(Failure::output)?;
    }
    if bad.is_empty() {
        return Ok(());
    }
    out.flush().map_err(Failure::output)?;
    let checks: Vec<&str> = bad.iter().map(|finding| finding.check).collect();
    let text = format!("{url} will not do: {}", checks.join(", "));
    Err(Failure::Failed(anyhow!(text)))
}

fn of(findings: &[Finding], verdict: Verdict) -> impl Iterator<Item = &Finding> {
    findings
        .iter()
        .filter(move |finding| finding.verdict == verdict)
}

fn write_findings(findings: &[Finding], out: &mut dyn Write) -> io::Result<()> {
    let terminal = Terminal::of_stdout();
    let headings = ["check", "verdict", "found"];
    let mut table = Table::new(headings.map(|heading| (heading.to_owned(), Align::Left)));
    for finding in findings {
        let tone = match finding.verdict {
            Verdict::Good => Tone::Plain,
            Verdict::Note => Tone::LastLow,
            Verdict::Bad => Tone::LastHigh,
        };
        let verdict = finding.verdict.as_str().to_owned();
        let found = finding.found.clone();
        table.push(tone, vec![finding.check.to_owned(), verdict, found]);
    }
    table
        .folded(&terminal, &LONG, &[])
        .write(out, terminal.colour)?;
    for verdict in [Verdict::Bad, Verdict::Note] {
        for finding in of(findings, verdict) {
            let advice = finding.advice.as_deref().unwrap_or_default();
            let text = format!("{} ({}): {advice}", finding.check, verdict.as_str());
            writeln!(out)?;
            for line in wrap(text.split(' '), "", terminal.width) {
                writeln!(out, "{line}")?;
            }
        }
    }
    let (bad, notes) = (of(findings, Verdict::Bad), of(findings, Verdict::Note));
    writeln!(out)?;
    writeln!(
        out,
        "{} bad, {} worth a note",
        counted(bad.count(), "finding"),
        notes.count()
    )
}
