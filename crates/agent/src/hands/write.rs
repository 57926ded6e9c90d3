//! Writing the checkpoint of a whole pod.

use super::archives::{Stop, pack_part};
use super::cgroups::processes;
use super::dump::dump;
use super::error::blocking;
use super::parts::Part;
use super::source_files::SourceFiles;
use super::source_node::Baseline;
use super::{NodeError, Settings, overlay, volumes};
use crate::session::{Pod, SessionInfo};
use portolan_node::Name;
use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use tokio::task::JoinSet;

/// What writes the parts of one checkpoint.
#[derive(Clone)]
struct Writer {
    pod: Pod,
    files: SourceFiles,
    settings: Arc<Settings>,
    stop: Arc<Stop>,
}

/// Dumps all containers at the same time, packs what belongs to them, and says that it is complete. Its own threads and commands
/// end when it is dropped.
pub(super) async fn write_checkpoint(settings: &Arc<Settings>, info: &SessionInfo) -> Result<(), NodeError> {
    let baseline = Baseline::of(info)?;
    let files = SourceFiles::new(settings, info)?;
    let mut containers = Vec::new();
    for (name, id) in &baseline.containers {
        containers.push((Name::new("container", name)?, id.clone()));
    }
    let (begun, names) = (files.clone(), containers.iter().map(|(name, _)| name.clone()).collect::<Vec<_>>());
    let (settings_there, uid) = (Arc::clone(settings), info.pod.uid().to_owned());
    let volumes = blocking(move || {
        begun.kill_dumps().finish()?;
        begun.begin(&names)?;
        volumes::list(&settings_there, &uid)
    })
    .await?;
    let stop = Arc::new(Stop::default());
    let writer = Writer { pod: info.pod.clone(), files: files.clone(), settings: Arc::clone(settings), stop };
    let names: Vec<Name> = containers.iter().map(|(name, _)| name.clone()).collect();
    let parts = Part::all(&names, &volumes).iter().map(Part::name).collect::<Result<Vec<_>, _>>()?;
    let mut work = JoinSet::new();
    for (name, id) in containers {
        let cgroup = settings.cgroups.join(&baseline.cgroup).join(&id);
        work.spawn(writer.clone().images(name.clone(), id));
        work.spawn(writer.clone().rootfs(name, cgroup));
    }
    for volume in volumes {
        work.spawn(writer.clone().volume(volume));
    }
    drop(writer);
    // One that fails does not end the others: a dump that is killed may harm the container, which is to run on.
    let mut outcome = Ok(());
    while let Some(done) = work.join_next().await {
        outcome = outcome.and(done.unwrap_or(Err(NodeError::Stopping)));
    }
    outcome?;
    blocking(move || files.finish(&parts)).await
}

impl Writer {
    async fn images(self, container: Name, id: String) -> Result<(), NodeError> {
        dump(&self.pod, &container, &id, &self.files, &self.settings).await?;
        let folder = self.files.images(&container);
        self.pack(Part::Images(container), move |_| Ok(folder)).await
    }

    async fn rootfs(self, container: Name, cgroup: PathBuf) -> Result<(), NodeError> {
        let name = container.clone();
        self.pack(Part::Rootfs(container), move |writer| writer.upper(&name, &cgroup)).await
    }

    async fn volume(self, volume: Name) -> Result<(), NodeError> {
        let name = volume.clone();
        self.pack(Part::Volume(volume), move |writer| {
            Ok(volumes::folder(&writer.settings, writer.pod.uid())?.join(name.as_str()))
        })
        .await
    }

    /// Where a container's changes of its root file system are.
    fn upper(&self, container: &Name, cgroup: &std::path::Path) -> Result<PathBuf, NodeError> {
        let mut found = BTreeSet::new();
        processes(cgroup, &mut found)?;
        let (pod, container) = (self.pod.to_string(), container.to_string());
        let Some(process) = found.first() else { return Err(NodeError::NoProcess { pod, container }) };
        let path = self.settings.proc.join(process.to_string()).join("mountinfo");
        let text = fs::read_to_string(&path).map_err(NodeError::io("read", &path))?;
        overlay::upper(&text).ok_or(NodeError::NoOverlay { pod, container, path })
    }

    async fn pack(
        self,
        part: Part,
        folder: impl FnOnce(&Self) -> Result<PathBuf, NodeError> + Send + 'static,
    ) -> Result<(), NodeError> {
        // The thread must not keep the stop itself, which stops it when everybody else is gone.
        let stopped = self.stop.flag();
        let Self { pod, files, settings, stop } = self;
        let inner = Self { pod, files, settings, stop: Arc::default() };
        let packed = blocking(move || {
            let (folder, to) = (folder(&inner)?, inner.files.part(&part.name()?));
            pack_part(&inner.pod, &part, &folder, &to, &inner.settings, stopped)
        });
        let packed = packed.await;
        drop(stop);
        packed
    }
}
