//! The summaries of runs, side by side.

use super::wrong;
use crate::failure::Failure;
use crate::table;
use portolan_simulator::{Record, load, shipped};

/// The figures of all runs: one row each, one column for each run.
pub(super) fn table(records: &[Record]) -> String {
    let labels = records.iter().map(|record| record.label.to_uppercase());
    let header: Vec<String> = std::iter::once("FIGURE".to_owned()).chain(labels).collect();
    let mut table = table::table(&header);
    let mut rows: Vec<(&str, &str)> = Vec::new();
    for figure in records.iter().flat_map(|record| &record.summary) {
        if !rows.iter().any(|(name, _)| *name == figure.name) {
            rows.push((&figure.name, &figure.label));
        }
    }
    for (name, label) in rows {
        let values = records.iter().map(|record| record.figure(name).unwrap_or("-").to_owned());
        table.add_row(std::iter::once(label.to_owned()).chain(values).collect::<Vec<_>>());
    }
    let head = records.first().map_or_else(String::new, |first| {
        format!("{}: {} (seed {})\n\n", first.scenario, first.title, first.seed)
    });
    head + &table::text(&table)
}

/// The shipped scenarios with their variants.
pub(super) fn list() -> Result<String, Failure> {
    let mut table = table::table(&["NAME", "TIME", "VARIANTS", "TITLE"]);
    for each in shipped() {
        let scenario = load(each.name, each.text, None).map_err(|error| wrong(&error))?;
        let variants: Vec<&str> = scenario.variants.keys().map(String::as_str).collect();
        let time = scenario.duration.to_string();
        table.add_row([each.name, &time, &variants.join(", "), &scenario.title].map(str::to_owned).to_vec());
    }
    Ok(table::text(&table))
}
