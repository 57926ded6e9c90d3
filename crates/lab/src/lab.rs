//! A lab: clusters that can reach one another.

use std::fs;
use std::io::ErrorKind;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use futures::future::try_join_all;

use crate::builder::LabBuilder;
use crate::cluster::Cluster;
use crate::cuts::Cuts;
use crate::parts::Parts;
use crate::pki::merge_kubeconfigs;
use crate::report::{self, Row, Timings};
use crate::state::{self, LabState};
use crate::{host, switch, teardown};

/// Set, it keeps labs that failed to start or whose test is over, for a look at what went wrong. They are still swept
/// away when the next lab starts.
const KEEP: &str = "PORTOLAN_LAB_KEEP";

/// Clusters of real Kubernetes on this machine, joined by a switch.
///
/// Dropping it clears everything away, also when a test panics; a lab that is [detached](LabBuilder::detached) or
/// [attached](Lab::attach) stays until `lab down`.
#[derive(Debug)]
pub struct Lab {
    state: LabState,
    clusters: Vec<Cluster>,
    timings: Timings,
    took: Duration,
    stays: bool,
}

impl LabBuilder {
    /// Starts the lab and waits until all nodes are Ready and DNS answers. What was started is cleared away on failure.
    pub async fn start(self) -> Result<Lab> {
        // Boxed because it is large, and callers' futures would be with it.
        Box::pin(Lab::start(self)).await
    }
}

impl Lab {
    /// Describes a lab to be started.
    pub fn builder() -> LabBuilder {
        LabBuilder::default()
    }

    /// A lab that runs already, made by this or another process. Dropping the value leaves it alone.
    pub fn attach(name: &str) -> Result<Self> {
        let state = state::read(name)?.with_context(|| {
            let known = state::names().unwrap_or_default();
            format!("there is no lab named {name:?}; there are [{}]", known.join(", "))
        })?;
        Lab::of(state, true)
    }

    pub(crate) async fn start(builder: LabBuilder) -> Result<Self> {
        host::check()?;
        for name in teardown::sweep()? {
            tracing::info!(lab = name, "cleared away an abandoned lab");
        }
        let parts = builder.find_parts().await?;
        let started = Instant::now();
        let mut lab = Lab::of(make_switch(&builder, &parts).await?, builder.is_detached())?;
        // Until it is up, failing clears it away, whether it is to stay or not.
        lab.stays = false;
        lab.provide_kwok_config(&parts)?;
        try_join_all(lab.clusters.iter().map(|cluster| cluster.bring_up(&lab.timings))).await?;
        lab.write_kubeconfig()?;
        lab.took = started.elapsed();
        lab.settle(builder.is_detached())?;
        Ok(lab)
    }

    /// The name of the lab.
    pub fn name(&self) -> &str {
        &self.state.name
    }

    /// Everything that is written down about the lab.
    pub fn state(&self) -> &LabState {
        &self.state
    }

    /// The clusters, `c1` first.
    pub fn clusters(&self) -> &[Cluster] {
        &self.clusters
    }

    /// A cluster by its name.
    pub fn cluster(&self, name: &str) -> Result<&Cluster> {
        self.clusters.iter().find(|cluster| cluster.name() == name).with_context(|| {
            let known: Vec<&str> = self.clusters.iter().map(Cluster::name).collect();
            format!("lab {} has no cluster {name:?}; it has {}", self.name(), known.join(", "))
        })
    }

    /// The host's address in the lab network: a server on the host is reached under it from nodes and pods.
    pub fn host_address(&self) -> Result<Ipv4Addr> {
        self.state.host_address()
    }

    /// File with the kubeconfig of all clusters, each in a context of its name.
    pub fn kubeconfig_path(&self) -> Result<PathBuf> {
        Ok(self.state.dir()?.join("kubeconfig"))
    }

    /// From the first namespace to the last Ready node; zero for an attached lab.
    pub fn took(&self) -> Duration {
        self.took
    }

    /// Times and memory of all parts; times are known only to the process that started the lab.
    pub fn report(&self) -> Vec<Row> {
        report::rows(&self.clusters, &self.timings)
    }

    /// Imports an image archive into every node of every cluster.
    pub async fn load_image(&self, archive: &Path) -> Result<()> {
        try_join_all(self.clusters.iter().map(|cluster| cluster.load_image(archive))).await?;
        Ok(())
    }

    /// The ports of the switch that a node is linked to, such as `c1n1`; a node that is gone has none.
    pub async fn ports(&self) -> Result<Vec<String>> {
        switch::ports(&self.state.dir()?).await
    }

    /// Drops all packets between two clusters, of nodes and pods, both ways. The host still reaches both.
    pub async fn cut(&self, a: &str, b: &str) -> Result<()> {
        let mut cuts = Cuts::read(&self.state.dir()?)?;
        cuts.cut(a, b)?;
        self.apply_cuts(&cuts).await
    }

    /// Undoes [`cut`](Self::cut).
    pub async fn heal(&self, a: &str, b: &str) -> Result<()> {
        let mut cuts = Cuts::read(&self.state.dir()?)?;
        cuts.heal(a, b)?;
        self.apply_cuts(&cuts).await
    }

    /// Clears the lab away now and says if that failed, unlike dropping it.
    pub fn down(mut self) -> Result<()> {
        self.stays = true;
        teardown::down(self.name())
    }

    fn of(state: LabState, stays: bool) -> Result<Self> {
        let clusters =
            state.clusters.iter().map(|cluster| Cluster::new(&state, cluster)).collect::<Result<_>>()?;
        Ok(Lab { state, clusters, timings: Timings::default(), took: Duration::ZERO, stays })
    }

    /// Writes down that the lab is up and, if it is to outlive this process, that nobody owns it.
    fn settle(&mut self, detached: bool) -> Result<()> {
        self.state.ready = true;
        if detached {
            self.state.owner = None;
        }
        self.state.write()?;
        self.stays = detached;
        Ok(())
    }

    async fn apply_cuts(&self, cuts: &Cuts) -> Result<()> {
        let mut ports = Vec::new();
        for (a, b) in cuts.pairs() {
            ports.push((self.ports_of(a)?, self.ports_of(b)?));
        }
        switch::set_cuts(&self.state, &ports).await?;
        cuts.write(&self.state.dir()?)
    }

    fn ports_of(&self, cluster: &str) -> Result<Vec<String>> {
        Ok(self.cluster(cluster)?.state().nodes.iter().map(|node| node.port.clone()).collect())
    }

    fn provide_kwok_config(&self, parts: &Parts) -> Result<()> {
        for cluster in self.clusters.iter().filter(|cluster| cluster.state().kwok > 0) {
            let target = cluster.control_plane().dir().join("etc/kwok");
            fs::create_dir_all(&target).with_context(|| format!("cannot make {}", target.display()))?;
            for entry in
                fs::read_dir(&parts.kwok).with_context(|| format!("cannot read {}", parts.kwok.display()))?
            {
                let entry = entry?;
                fs::copy(entry.path(), target.join(entry.file_name()))
                    .with_context(|| format!("cannot copy {}", entry.path().display()))?;
            }
        }
        Ok(())
    }

    fn write_kubeconfig(&self) -> Result<()> {
        let mut configs = Vec::new();
        for cluster in &self.clusters {
            let path = cluster.kubeconfig_path();
            configs
                .push(fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?);
        }
        let path = self.kubeconfig_path()?;
        fs::write(&path, merge_kubeconfigs(&configs)?)
            .with_context(|| format!("cannot write {}", path.display()))
    }
}

impl Drop for Lab {
    fn drop(&mut self) {
        if self.stays {
            return;
        }
        if std::env::var_os(KEEP).is_some_and(|value| !value.is_empty()) {
            eprintln!(
                "lab {0} is kept because {KEEP} is set; `cargo xtask lab down {0}` clears it away",
                self.name()
            );
        } else if let Err(error) = teardown::down(self.name()) {
            eprintln!("lab {} could not be cleared away: {error:#}", self.name());
        }
    }
}

/// Chooses number and addresses of a lab, writes them down, and makes its switch.
async fn make_switch(builder: &LabBuilder, parts: &Parts) -> Result<LabState> {
    let name = builder.lab_name();
    let lock = tokio::task::spawn_blocking(state::lock).await??;
    let (slot, subnet) = switch::choose_slot().await?;
    let lab = builder.plan(&name, slot, subnet, parts)?;
    let nodes: usize = lab.clusters.iter().map(|cluster| cluster.nodes.len()).sum();
    host::check_inotify(lab.clusters.len() as u32, nodes as u32)?;
    let dir = lab.dir()?;
    match fs::create_dir(&dir) {
        Ok(()) => {}
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {
            bail!("there is already a lab named {name:?}: use it, or `cargo xtask lab down {name}` first")
        }
        Err(error) => return Err(error).with_context(|| format!("cannot make {}", dir.display())),
    }
    let made = async {
        lab.write()?;
        switch::start(&lab).await
    };
    if let Err(error) = made.await {
        teardown::down(&name).context("cannot clear away what was made before a failure")?;
        return Err(error);
    }
    drop(lock);
    Ok(lab)
}
