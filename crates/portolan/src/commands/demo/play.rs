//! What the demo leaves behind for its reader: a workload that runs, its manifest, and commands to try.

use super::fleet::{Fleet, apply};
use super::{show, story};
use crate::failure::Failure;
use crate::place::Place;
use portolan_api::convert::to_yaml;
use serde_json::json;

/// The workload that stays.
const NAME: &str = "hello";

/// Places a workload and says what to try with it.
pub(super) async fn leave(fleet: &Fleet, place: &Place) -> Result<(), Failure> {
    let placement = json!({"placementPolicy": "worst-fit", "numberOfLocations": 2});
    let manifest = story::workload(NAME, 2, "500m", placement);
    apply(&fleet.hub, &manifest).await?;
    let file = place.file().with_file_name("hello.yaml");
    std::fs::write(&file, to_yaml(&[manifest]).map_err(Failure::other)?)
        .map_err(|error| Failure::other(format!("cannot write {}: {error}", file.display())))?;
    let program = std::env::current_exe().ok();
    let program = program.as_deref().and_then(|path| path.to_str()).unwrap_or("portolan");
    show::say(&format!(
        "\n   The clusters stay until Ctrl-C, with a workload {NAME}. Try it in another terminal:\n\n   \
         export KUBECONFIG={}\n   \
         alias portolan={program}\n\n   \
         portolan --context hub status\n   \
         kubectl --context hub -n demo scale mcd/{NAME} --replicas 30 && portolan --context hub -n demo get mcd --watch\n   \
         portolan --context hub -n demo logs mcd/{NAME}\n\n   \
         Its manifest, to edit and apply: {}",
        place.file().display(),
        file.display()
    ));
    Ok(())
}
