//! `portolan crds`

use crate::cli::{CrdsArgs, Format};
use crate::failure::Failure;
use crate::output;
use serde_json::json;

pub(super) fn run(args: &CrdsArgs) -> Result<(), Failure> {
    let crds = if args.experimental { portolan_api::all_crds() } else { portolan_api::hub_crds() };
    let crds = crds.map_err(Failure::other)?;
    let text = match args.output {
        Format::Yaml => {
            let files = portolan_api::render(&crds).map_err(Failure::other)?;
            files.into_iter().map(|(_, text)| format!("---\n{text}")).collect()
        }
        Format::Json => {
            let list = json!({ "apiVersion": "v1", "kind": "List", "items": crds });
            serde_json::to_string_pretty(&list).map_err(Failure::other)? + "\n"
        }
    };
    output::data(&text)
}
