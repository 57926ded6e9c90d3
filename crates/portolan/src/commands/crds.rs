//! `portolan crds`

use crate::cli::{CrdsArgs, Format};
use crate::failure::Failure;
use crate::output;
use portolan_control::peering::hub_roles;
use serde_json::json;

pub(super) fn run(args: &CrdsArgs) -> Result<(), Failure> {
    let crds = if args.experimental { portolan_api::all_crds() } else { portolan_api::hub_crds() };
    let crds = crds.map_err(Failure::other)?;
    let roles = if args.roles { hub_roles() } else { Vec::new() };
    let text = match args.output {
        Format::Yaml => {
            let files = portolan_api::render(&crds).map_err(Failure::other)?;
            let mut text: String = files.into_iter().map(|(_, text)| format!("---\n{text}")).collect();
            for role in &roles {
                text.push_str("---\n");
                text.push_str(&serde_saphyr::to_string(role).map_err(Failure::other)?);
            }
            text
        }
        Format::Json => {
            let crds = crds.iter().map(serde_json::to_value).collect::<Result<Vec<_>, _>>();
            let items = [crds.map_err(Failure::other)?, roles].concat();
            let list = json!({ "apiVersion": "v1", "kind": "List", "items": items });
            serde_json::to_string_pretty(&list).map_err(Failure::other)? + "\n"
        }
    };
    output::data(&text)
}
