//! `portolan get --watch`: one row per change.

use super::Listing;
use crate::cli::GetFormat;
use crate::failure::Failure;
use crate::{output, signals};
use futures::StreamExt;
use kube::Client;
use kube::runtime::{WatchStreamExt, watcher};
use serde_json::Value;
use std::pin::pin;
use std::time::Duration;

/// How often a watch may fail in a row before the command does.
const FAILURES: u32 = 5;

/// Prints all objects and then every change, until Ctrl-C.
pub(super) async fn follow(hub: &Client, listing: &Listing<'_>) -> Result<(), Failure> {
    let api = listing.kind.api(hub, listing.namespace.as_deref());
    let mut config = watcher::Config::default();
    if let Some(selector) = &listing.args.selector {
        config = config.labels(selector);
    }
    // The first list fails with a clear message; the watch would only try again.
    listing.kind.list(hub, listing.namespace.as_deref(), &kube::api::ListParams::default().limit(1)).await?;
    let mut changes = pin!(watcher(api, config).applied_objects());
    let mut stopped = pin!(signals::stopped());
    let mut rows = Rows { widths: Vec::new(), headed: listing.args.no_headers };
    let mut failures = 0;
    loop {
        let change = tokio::select! {
            stopped = &mut stopped => return stopped,
            change = changes.next() => change,
        };
        match change {
            None => return Ok(()),
            Some(Ok(object)) => {
                failures = 0;
                let object = listing.kind.shown(object)?;
                if listing.shows(&object) {
                    print(listing, object, &mut rows)?;
                }
            }
            Some(Err(error)) => {
                failures += 1;
                if failures >= FAILURES {
                    return Err(Failure::other(format!(
                        "the watch broke: {}",
                        portolan_runtime::chain(&error)
                    )));
                }
                tokio::time::sleep(Duration::from_secs(1)).await;
            }
        }
    }
}

fn print(listing: &Listing<'_>, object: Value, rows: &mut Rows) -> Result<(), Failure> {
    match listing.args.output {
        Some(GetFormat::Json) => output::json(&[object], false),
        Some(GetFormat::Yaml) => output::yaml(&[object]),
        Some(GetFormat::Name) => output::data(&listing.full_name(&object)),
        None | Some(GetFormat::Wide) => {
            let table = listing.table(vec![object], true)?;
            let header = table.header().map(|row| row.cell_iter().map(|cell| cell.content()).collect());
            let text = rows.add(header.unwrap_or_default(), false)
                + &table
                    .row_iter()
                    .map(|row| rows.add(row.cell_iter().map(|cell| cell.content()).collect(), true))
                    .collect::<String>();
            output::data(&text)
        }
    }
}

/// Rows that come one at a time, with columns as wide as the widest cell so far.
struct Rows {
    widths: Vec<usize>,
    headed: bool,
}

impl Rows {
    /// One more row as a line; headings are printed once.
    fn add(&mut self, cells: Vec<String>, is_row: bool) -> String {
        if !is_row && std::mem::replace(&mut self.headed, true) {
            return String::new();
        }
        self.widths.resize(cells.len(), 0);
        let mut line = String::new();
        for (cell, width) in cells.iter().zip(&mut self.widths) {
            *width = (*width).max(cell.chars().count());
            line.push_str(&format!("{cell:width$}   "));
        }
        format!("{}\n", line.trim_end())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_aligned_and_headed_once() {
        let mut rows = Rows { widths: Vec::new(), headed: false };
        let cells = |one: &str, two: &str| vec![one.to_owned(), two.to_owned()];
        assert_eq!(rows.add(cells("NAME", "READY"), false), "NAME   READY\n");
        assert_eq!(rows.add(cells("web", "2/2"), true), "web    2/2\n");
        assert_eq!(rows.add(cells("NAME", "READY"), false), "");
        assert_eq!(rows.add(cells("longer", "1"), true), "longer   1\n");
    }
}
