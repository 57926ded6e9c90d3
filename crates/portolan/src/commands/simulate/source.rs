//! Where a scenario comes from: the program itself, a file, or standard input.

use crate::failure::Failure;
use portolan_simulator::shipped;
use std::io::Read;
use std::path::{Path, PathBuf};

/// A scenario as text.
#[derive(Default)]
pub(super) struct Source {
    /// Its name in messages.
    pub(super) name: String,
    /// The name of its record: without folder and ending.
    pub(super) label: String,
    /// Its text.
    pub(super) text: String,
    /// Where the files are that it names.
    pub(super) folder: PathBuf,
}

impl Source {
    /// A shipped scenario of that name, or a file.
    pub(super) fn find(scenario: &str) -> Result<Self, Failure> {
        let here = PathBuf::from(".");
        if let Some(found) = shipped().iter().find(|each| each.name == scenario) {
            let (name, text) = (found.name.to_owned(), found.text.to_owned());
            return Ok(Self { label: name.clone(), name, text, folder: here });
        }
        let path = Path::new(scenario);
        let (name, text, folder) = if scenario == "-" {
            let mut text = String::new();
            let read = std::io::stdin().read_to_string(&mut text).map(|_| text);
            ("standard input".to_owned(), read, here)
        } else {
            let folder = path.parent().map_or(here, Path::to_owned);
            (scenario.to_owned(), std::fs::read_to_string(path), folder)
        };
        let names: Vec<&str> = shipped().iter().map(|each| each.name).collect();
        let text = text.map_err(|error| {
            Failure::input(format!("cannot read the scenario {name}: {error}"))
                .hint(format!("give a file, or one of the shipped scenarios: {}", names.join(", ")))
        })?;
        let stem = Path::new(&name).file_stem().and_then(|stem| stem.to_str());
        let label = stem.unwrap_or(&name).to_owned();
        Ok(Self { name, label, text, folder })
    }
}
