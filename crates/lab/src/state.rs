//! What is written down about a lab, so that any process can use it and clear it away.
//!
//! A lab lives in `${PORTOLAN_LAB_DIR:-${XDG_CACHE_HOME:-$HOME/.cache}/portolan/lab}/NAME`: `lab.json`, the
//! kubeconfig of all clusters, and a directory for each cluster and node with configuration, logs and the files of
//! etcd, containerd and the kubelet. It is on disk rather than in `/run` because containerd's images do not belong in
//! memory, and overlay mounts refuse to stand on one another.

use std::fs;
use std::io::ErrorKind;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};
use serde::{Deserialize, Serialize};

use crate::cidr::Cidr;
use crate::process;

const FILE: &str = "lab.json";

/// A lab as written down.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LabState {
    /// Name of the lab, unique on the machine.
    pub name: String,
    /// Number of the lab: names its link on the host and its share of the lab network.
    pub slot: u32,
    /// Addresses of the lab's nodes and of the host's end of the link.
    pub subnet: Cidr,
    /// Version of Kubernetes.
    pub kubernetes: String,
    /// Seconds since 1970 at which it was made.
    pub created: u64,
    /// The process at whose end the lab may be cleared away; none for a lab that is up and stays until `lab down`.
    pub owner: Option<Owner>,
    /// Whether it has come up.
    pub ready: bool,
    /// Where the binaries lie.
    pub bin: PathBuf,
    /// The node's root file system.
    pub root: PathBuf,
    /// Where the image archives lie.
    pub images: PathBuf,
    /// The clusters, in the order of their numbers.
    pub clusters: Vec<ClusterState>,
}

/// A cluster as written down.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ClusterState {
    /// Name of the cluster, `c1` and so on.
    pub name: String,
    /// Addresses of pods.
    pub pods: Cidr,
    /// Addresses of services.
    pub services: Cidr,
    /// Number of simulated nodes.
    pub kwok: u32,
    /// Whether pods run on simulated nodes alone.
    #[serde(default)]
    pub only_simulated: bool,
    /// Whether the API server keeps an audit log.
    #[serde(default)]
    pub audit: bool,
    /// Seconds of silence after which a node counts as lost, if not Kubernetes' own.
    #[serde(default)]
    pub silence: Option<u32>,
    /// Whether the first node runs the control plane and no pods.
    #[serde(default)]
    pub dedicated_control_plane: bool,
    /// The nodes; the first one runs the control plane.
    pub nodes: Vec<NodeState>,
}

impl ClusterState {
    /// How many of the first nodes run no pods.
    pub(crate) fn nodes_without_pods(&self) -> usize {
        if self.only_simulated { self.nodes.len() } else { usize::from(self.dedicated_control_plane) }
    }
}

/// A node as written down.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct NodeState {
    /// Name of the node, `c1-n1` and so on.
    pub name: String,
    /// Name of its port at the switch.
    pub port: String,
    /// Its address in the lab network.
    pub address: Ipv4Addr,
    /// Addresses of its pods.
    pub pods: Cidr,
    /// What it is for a cloud, if it is a machine of one.
    #[serde(default)]
    pub machine: Option<MachineState>,
}

/// A machine of a cloud as written down.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MachineState {
    /// The name by which Cluster API knows it.
    pub provider_id: String,
    /// What it has for pods.
    pub size: MachineSize,
}

/// What a machine has for pods.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MachineSize {
    /// CPU, in thousandths.
    pub millicpus: u64,
    /// Memory, in bytes.
    pub memory: u64,
}

/// A process, named so that a later one with the same number is not taken for it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Owner {
    pid: u32,
    start_time: u64,
    boot: String,
}

impl Owner {
    /// This process.
    pub(crate) fn this_process() -> Result<Self> {
        let pid = std::process::id();
        let start_time =
            process::start_time(pid).context("/proc/self/stat cannot be read: is /proc mounted?")?;
        Ok(Owner { pid, start_time, boot: boot_id()? })
    }

    /// Whether the process still runs.
    pub fn is_alive(&self) -> bool {
        boot_id().is_ok_and(|boot| boot == self.boot)
            && process::is_running(self.pid)
            && process::start_time(self.pid) == Some(self.start_time)
    }
}

impl LabState {
    /// Directory of the lab.
    pub fn dir(&self) -> Result<PathBuf> {
        dir_of(&self.name)
    }

    /// The names of what the lab adds to the host.
    pub(crate) fn traces(&self) -> Traces {
        Traces { name: self.name.clone(), slot: self.slot }
    }

    /// The host's address in the lab network.
    pub fn host_address(&self) -> Result<Ipv4Addr> {
        self.subnet.address(1)
    }

    pub(crate) fn write(&self) -> Result<()> {
        let dir = self.dir()?;
        let text = serde_json::to_string_pretty(self)?;
        let new = dir.join("lab.json.new");
        fs::write(&new, text).with_context(|| format!("cannot write {}", new.display()))?;
        fs::rename(&new, dir.join(FILE)).with_context(|| format!("cannot write {}", dir.join(FILE).display()))
    }
}

/// What must be known of a lab to clear it away. It is read by itself, so that a lab of an older or newer version of this
/// program can be cleared away too.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub(crate) struct Traces {
    name: String,
    pub(crate) slot: u32,
}

impl Traces {
    /// Reads them; none if the lab's making was interrupted before it had any.
    pub(crate) fn read(name: &str) -> Result<Option<Self>> {
        read_file(&dir_of(name)?.join(FILE))
    }

    /// Name of the host's end of the link to the lab.
    pub(crate) fn host_link(&self) -> String {
        format!("plab{}", self.slot)
    }

    /// Name of the lab's directory in each cgroup hierarchy.
    pub(crate) fn cgroup(&self) -> String {
        format!("portolan-lab-{}-{}", self.slot, self.name)
    }
}

/// Directory that holds all labs of this user.
pub fn root() -> Result<PathBuf> {
    let set = |name| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let root = match (set("PORTOLAN_LAB_DIR"), set("XDG_CACHE_HOME"), set("HOME")) {
        (Some(dir), _, _) => dir,
        (None, Some(cache), _) => cache.join("portolan/lab"),
        (None, None, Some(home)) => home.join(".cache/portolan/lab"),
        (None, None, None) => bail!("no directory for labs: set PORTOLAN_LAB_DIR, XDG_CACHE_HOME or HOME"),
    };
    ensure!(root.is_absolute(), "the directory for labs must be an absolute path, not {}", root.display());
    Ok(root)
}

/// Directory of the lab `name`.
pub(crate) fn dir_of(name: &str) -> Result<PathBuf> {
    check_name(name)?;
    Ok(root()?.join(name))
}

/// A name is a short DNS label: it becomes part of host names, cgroup and file names.
pub(crate) fn check_name(name: &str) -> Result<()> {
    let fits = (1..=32).contains(&name.len())
        && name.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-')
        && !name.starts_with('-')
        && !name.ends_with('-');
    ensure!(fits, "{name:?} is not a name for a lab: 1 to 32 of a-z, 0-9 and -, not at the ends");
    Ok(())
}

/// Names of all labs, also of those whose making was interrupted.
pub fn names() -> Result<Vec<String>> {
    let root = root()?;
    let entries = match fs::read_dir(&root) {
        Ok(entries) => entries,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error).with_context(|| format!("cannot read {}", root.display())),
    };
    let mut names = Vec::new();
    for entry in entries {
        let entry = entry?;
        if entry.file_type()?.is_dir()
            && let Ok(name) = entry.file_name().into_string()
            && check_name(&name).is_ok()
        {
            names.push(name);
        }
    }
    names.sort();
    Ok(names)
}

/// Reads the lab `name`; none if its making was interrupted before anything but its directory existed.
pub fn read(name: &str) -> Result<Option<LabState>> {
    read_file(&dir_of(name)?.join(FILE)).with_context(|| {
        format!("lab {name} is of another version; `cargo xtask lab down {name}` clears it away")
    })
}

/// Reads who owns the lab `name`, if anybody does.
pub(crate) fn owner(name: &str) -> Result<Option<Owner>> {
    #[derive(Deserialize)]
    struct Owned {
        owner: Option<Owner>,
    }
    Ok(read_file::<Owned>(&dir_of(name)?.join(FILE))?.and_then(|owned| owned.owner))
}

fn read_file<T: serde::de::DeserializeOwned>(file: &Path) -> Result<Option<T>> {
    match fs::read_to_string(file) {
        Ok(text) => {
            serde_json::from_str(&text).map(Some).with_context(|| format!("cannot read {}", file.display()))
        }
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error).with_context(|| format!("cannot read {}", file.display())),
    }
}

/// Holds off other processes while a lab chooses its number and its addresses.
pub(crate) fn lock() -> Result<fs::File> {
    let root = root()?;
    fs::create_dir_all(&root).with_context(|| format!("cannot make {}", root.display()))?;
    let path = root.join(".lock");
    let file = fs::File::create(&path).with_context(|| format!("cannot make {}", path.display()))?;
    file.lock().with_context(|| format!("cannot lock {}", path.display()))?;
    Ok(file)
}

fn boot_id() -> Result<String> {
    let path = "/proc/sys/kernel/random/boot_id";
    Ok(fs::read_to_string(path).with_context(|| format!("cannot read {path}"))?.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_do_not_fit_are_refused() {
        for bad in ["", "A", "a/b", "..", "-a", "a-", "a b", &"x".repeat(33)] {
            assert!(check_name(bad).is_err(), "{bad:?}");
        }
        for good in ["lab", "t-1", "0"] {
            check_name(good).unwrap();
        }
    }

    #[test]
    fn an_owner_is_told_from_a_later_process_of_the_same_number() {
        let owner = Owner::this_process().unwrap();
        assert!(owner.is_alive());
        assert!(!Owner { start_time: owner.start_time + 1, ..owner.clone() }.is_alive());
        assert!(!Owner { boot: "another".into(), ..owner }.is_alive());
    }
}
