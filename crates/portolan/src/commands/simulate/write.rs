//! The records of runs as files.

use crate::failure::Failure;
use portolan_simulator::Record;
use std::path::Path;

/// Writes the series and the summary of each run.
pub(super) fn write(folder: &Path, records: &[Record]) -> Result<(), Failure> {
    let failed = |path: &Path, error: std::io::Error| {
        Failure::other(format!("cannot write {}: {error}", path.display()))
            .hint("give a directory that you may write to by --output-dir")
    };
    std::fs::create_dir_all(folder).map_err(|error| failed(folder, error))?;
    for record in records {
        for (kind, text) in [("series", record.series_csv()), ("summary", record.summary_csv())] {
            let path = folder.join(format!("{}-{kind}.csv", record.label));
            std::fs::write(&path, text).map_err(|error| failed(&path, error))?;
        }
    }
    Ok(())
}
