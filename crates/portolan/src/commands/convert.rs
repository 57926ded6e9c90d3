//! `portolan convert`

use crate::cli::{ConvertArgs, Format};
use crate::failure::Failure;
use crate::output;
use portolan_api::convert::{convert, to_json, to_yaml};
use std::io::Read;
use std::path::Path;

/// Converts all files, or none: a mistake in one leaves nothing half done.
pub(super) fn run(args: &ConvertArgs) -> Result<(), Failure> {
    let mut documents = Vec::new();
    let mut warnings = Vec::new();
    for file in &args.filename {
        let name = if is_stdin(file) { "standard input".to_owned() } else { file.display().to_string() };
        let text = read(file).map_err(|error| Failure::input(format!("cannot read {name}: {error}")))?;
        let converted = convert(&text).map_err(|error| Failure::input(format!("{name}: {error}")))?;
        documents.extend(converted.documents);
        warnings.extend(converted.warnings.into_iter().map(|warning| format!("{name}: {warning}")));
    }
    let text = match args.output {
        Format::Yaml => to_yaml(&documents).map_err(Failure::other)?,
        Format::Json => to_json(&documents).map_err(Failure::other)?,
    };
    for warning in warnings {
        anstream::eprintln!("\u{1b}[1;33mwarning\u{1b}[0m: {warning}");
    }
    output::data(&text)
}

fn is_stdin(file: &Path) -> bool {
    file.as_os_str() == "-"
}

fn read(file: &Path) -> std::io::Result<String> {
    if is_stdin(file) {
        let mut text = String::new();
        std::io::stdin().read_to_string(&mut text)?;
        return Ok(text);
    }
    std::fs::read_to_string(file)
}
