//! Manifests of users, in YAML or JSON.

use crate::failure::Failure;
use serde_json::Value;
use std::io::Read;
use std::path::{Path, PathBuf};

/// All objects of all files; `-` is standard input. The items of a List are objects of their own.
pub(crate) fn read(files: &[PathBuf]) -> Result<Vec<Value>, Failure> {
    let mut objects = Vec::new();
    for file in files {
        let stdin = file.as_os_str() == "-";
        let name = if stdin { "standard input".to_owned() } else { file.display().to_string() };
        let text =
            text(file, stdin).map_err(|error| Failure::input(format!("cannot read {name}: {error}")))?;
        let documents: Vec<Value> = serde_saphyr::from_multiple(&text)
            .map_err(|error| Failure::input(format!("{name}: it is not YAML: {error}")))?;
        for document in documents.into_iter().filter(|each| !each.is_null()) {
            match document["items"].as_array().filter(|_| document["kind"] == "List") {
                Some(items) => objects.extend(items.iter().cloned()),
                None => objects.push(document),
            }
        }
    }
    Ok(objects)
}

fn text(file: &Path, stdin: bool) -> std::io::Result<String> {
    if stdin {
        let mut text = String::new();
        std::io::stdin().read_to_string(&mut text)?;
        return Ok(text);
    }
    std::fs::read_to_string(file)
}
