//! The records of runs as files.

use crate::failure::Failure;
use portolan_plots::Theme;
use portolan_simulator::{NamedPlot, Record, comparison, figures};
use std::path::Path;

/// Writes the series and the summary of each run, and the figures of each and of the first beside the others.
pub(super) fn write(folder: &Path, records: &[Record]) -> Result<(), Failure> {
    std::fs::create_dir_all(folder).map_err(|error| failed(folder, &error))?;
    for record in records {
        for (kind, text) in [("series", record.series_csv()), ("summary", record.summary_csv())] {
            file(folder, &format!("{}-{kind}.csv", record.label), text.as_bytes())?;
        }
        figures(record).iter().try_for_each(|figure| draw(folder, figure))?;
    }
    if let Some((first, others)) = records.split_first() {
        for other in others {
            comparison(first, other).iter().try_for_each(|figure| draw(folder, figure))?;
        }
    }
    Ok(())
}

/// A figure as SVG, which suits light and dark pages, and as PNG for each of them.
fn draw(folder: &Path, figure: &NamedPlot) -> Result<(), Failure> {
    file(folder, &format!("{}.svg", figure.name), figure.plot.svg().as_bytes())?;
    for (ending, theme) in [("png", Theme::Light), ("dark.png", Theme::Dark)] {
        let bytes = figure.plot.png(theme).map_err(Failure::other)?;
        file(folder, &format!("{}.{ending}", figure.name), &bytes)?;
    }
    Ok(())
}

fn file(folder: &Path, name: &str, bytes: &[u8]) -> Result<(), Failure> {
    let path = folder.join(name);
    std::fs::write(&path, bytes).map_err(|error| failed(&path, &error))
}

fn failed(path: &Path, error: &std::io::Error) -> Failure {
    Failure::other(format!("cannot write {}: {error}", path.display()))
        .hint("give a directory that you may write to by --output-dir")
}
