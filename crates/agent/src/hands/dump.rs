//! The dump of one container by runc.

use super::command::run;
use super::error::blocking;
use super::intent::{Intent, VARIABLE};
use super::process::Started;
use super::source_files::SourceFiles;
use super::{NodeError, Settings, mark};
use crate::session::Pod;
use portolan_node::Name;
use tokio::process::Command;

/// Writes a frozen container down; it stays frozen. When this is dropped, runc and CRIU end.
pub(super) async fn dump(
    pod: &Pod,
    container: &Name,
    id: &str,
    files: &SourceFiles,
    settings: &Settings,
) -> Result<(), NodeError> {
    let work = files.dump(container);
    let mut command = Command::new(&settings.runc);
    command.arg("--root").arg(&settings.runc_root).args(["checkpoint", "--leave-running"]);
    command.arg("--image-path").arg(files.images(container)).arg("--work-path").arg(&work);
    command.args(&settings.runc_options).arg(id).env(VARIABLE, &work);
    // An agent that starts after this one has died ends what is written down here. First that it may be there, then what it is.
    let (intent, path) = (files.intent(container), work.clone());
    blocking(move || {
        let written = Intent::of(&path).and_then(|begun| mark::write(&intent, &begun));
        written.map_err(NodeError::io("write", &intent))
    })
    .await?;
    let record = files.process(container);
    let started = |process| mark::write(&record, &Started::of(process)?);
    let ended = run(command, settings.dump, started).await;
    ended.map_err(|source| NodeError::Dump {
        pod: pod.to_string(),
        container: container.to_string(),
        command: format!("{} checkpoint {id}", settings.runc.display()),
        source: Box::new(source),
        log: work.join("dump.log"),
    })
}
