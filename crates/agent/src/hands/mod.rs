//! What an agent does on a node with containerd and runc.
//!
//! [`SourceNode`] and [`DestinationNode`] are the hands that sessions move. What they need of the clusters is given by the
//! caller: the pods of the API server ([`Pods`]) and what the two agents were told about each other ([`SourceTickets`],
//! [`DestinationTickets`]).
//!
//! The agent must see the node's processes, its cgroups, the folders of containerd and of the kubelet, all under the paths that
//! they have on the node.
//!
//! # What the source keeps
//! ```text
//! WORK/source/MIGRATION/SESSION/dumps/CONTAINER/            CRIU's log; checkpoint/ has its images
//! WORK/source/MIGRATION/SESSION/intents/CONTAINER           that they are to be written, before anything writes them
//! WORK/source/MIGRATION/SESSION/processes/CONTAINER         the process that writes them
//! WORK/source/MIGRATION/SESSION/parts/PART                  what is sent
//! WORK/source/MIGRATION/SESSION/complete                    written last: the parts of a complete checkpoint
//! ```
//!
//! # What the destination keeps
//! ```text
//! WORK/destination/MIGRATION/parts/PART                     what has arrived
//! WORK/destination/MIGRATION/complete, refused, filled      marks
//! ```
//! The checkpoints that are ready to be restored lie in the [`Store`](portolan_node::store::Store), where `portolan-runc` takes
//! them. A container's checkpoint is put there only after it was checked against the container's own `config.json`.

mod archives;
mod asked;
mod budget;
mod bundles;
mod cgroups;
mod command;
mod destination;
mod destination_files;
mod destination_look;
mod dump;
mod error;
mod gate;
mod hostname;
mod intent;
mod kubernetes;
mod mark;
mod memory;
mod overlay;
mod parts;
mod process;
mod source;
mod source_files;
mod source_node;
mod volumes;
mod write;

#[cfg(test)]
mod tests;

pub use command::CommandError;
pub use destination::DestinationNode;
pub use error::NodeError;
pub use kubernetes::{DestinationTickets, Expected, PodState, Pods, Route, SourceTickets};
pub use source::SourceNode;

use portolan_node::archive::Limits;
use std::path::PathBuf;
use std::time::Duration;

/// Where things are on the node, and how long they may take.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The hierarchy of cgroups that has the freezer: `/sys/fs/cgroup/freezer`, or `/sys/fs/cgroup` of cgroup v2.
    pub cgroups: PathBuf,
    /// The processes of the node, to look up the mounts of a container.
    pub proc: PathBuf,
    /// The real runc.
    pub runc: PathBuf,
    /// Where runc keeps the state of Kubernetes' containers.
    pub runc_root: PathBuf,
    /// More options of `runc checkpoint`.
    pub runc_options: Vec<String>,
    /// The bundles of Kubernetes' containers.
    pub bundles: PathBuf,
    /// The folder in which `portolan-runc` notes which containers it has restored.
    pub wrapper: PathBuf,
    /// The folder of the kubelet.
    pub kubelet: PathBuf,
    /// The store from which `portolan-runc` restores.
    pub store: PathBuf,
    /// The folder for what this agent keeps.
    pub work: PathBuf,
    /// How long one dump of a container may take.
    pub dump: Duration,
    /// How old an answer of the API server about a pod may be that is not asked for again.
    pub fresh: Duration,
    /// How much one part of a checkpoint may hold.
    pub limits: Limits,
    /// How many bytes all parts of one session may hold together once they are unpacked.
    pub session_bytes: u64,
    /// How many bytes have to stay free on the disk of the destination.
    pub stays_free: u64,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            cgroups: PathBuf::from("/sys/fs/cgroup/freezer"),
            proc: PathBuf::from("/proc"),
            runc: PathBuf::from("runc"),
            runc_root: PathBuf::from("/run/containerd/runc/k8s.io"),
            runc_options: Vec::new(),
            bundles: PathBuf::from("/run/containerd/io.containerd.runtime.v2.task/k8s.io"),
            wrapper: PathBuf::from("/run/portolan/runc"),
            kubelet: PathBuf::from("/var/lib/kubelet"),
            store: PathBuf::from(portolan_node::store::DEFAULT_ROOT),
            work: PathBuf::from("/var/lib/portolan/agent"),
            dump: Duration::from_secs(60),
            fresh: Duration::from_millis(100),
            limits: Limits::default(),
            session_bytes: 16 << 30,
            stays_free: 1 << 30,
        }
    }
}
