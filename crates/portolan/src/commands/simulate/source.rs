//! Where a scenario comes from: the program itself, a file, or standard input.

use crate::failure::Failure;
use portolan_simulator::shipped;
use std::io::Read;
use std::path::{Path, PathBuf};

/// A scenario as text.
pub(super) struct Source {
    /// Its name in messages.
    pub(super) name: String,
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
            return Ok(Self { name: found.name.to_owned(), text: found.text.to_owned(), folder: here });
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
        Ok(Self { name, text, folder })
    }

    /// The name without folder and ending.
    pub(super) fn stem(&self) -> String {
        let stem = Path::new(&self.name).file_stem().and_then(|stem| stem.to_str());
        stem.unwrap_or(&self.name).to_owned()
    }
}
