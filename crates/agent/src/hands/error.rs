//! Why something cannot be done on the node.

use super::command::CommandError;
use crate::images::{Refusal, SpecError};
use crate::lane::{Lane, LaneError};
use crate::session::{HandsError, Pod};
use crate::transfer::{CredentialsError, SendError, SessionError};
use portolan_node::NameError;
use portolan_node::archive::ArchiveError;
use portolan_node::freezer::FreezerError;
use portolan_node::store::StoreError;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Why something cannot be done on the node.
#[derive(Debug, thiserror::Error)]
pub enum NodeError {
    /// A name leads elsewhere.
    #[error(transparent)]
    Name(#[from] NameError),
    /// There are no cgroups of pods.
    #[error(
        "{path:?} does not exist: mount the node's cgroups into the agent, and set the kubelet's cgroupDriver to cgroupfs"
    )]
    NoPods {
        /// Where they should be.
        path: PathBuf,
    },
    /// The pod has no cgroup.
    #[error("pod {pod} with UID {uid} has no cgroup in {root:?}: it does not run on this node")]
    NoCgroup {
        /// The pod.
        pod: String,
        /// The UID of the pod on this node.
        uid: String,
        /// Where it was looked for.
        root: PathBuf,
    },
    /// The pod has no running container.
    #[error("pod {pod} has no running container on this node: wait until it runs")]
    NoContainers {
        /// The pod.
        pod: String,
    },
    /// It is not known which container a cgroup belongs to.
    #[error(
        "container {id} of pod {pod} cannot be told from others ({why}): see `crictl inspect {id}` on the node"
    )]
    Unknown {
        /// The pod.
        pod: String,
        /// The ID of the container.
        id: String,
        /// Why not.
        why: String,
    },
    /// A container has no process that can be seen.
    #[error("no process of container {container} of pod {pod} can be seen: give the agent hostPID")]
    NoProcess {
        /// The pod.
        pod: String,
        /// The container.
        container: String,
    },
    /// The root file system of a container is not known.
    #[error(
        "the root file system of container {container} of pod {pod} is no overlay in {path:?}: set containerd's snapshotter to \
         overlayfs"
    )]
    NoOverlay {
        /// The pod.
        pod: String,
        /// The container.
        container: String,
        /// The file that lists its mounts.
        path: PathBuf,
    },
    /// The freezer fails.
    #[error("pod {pod} cannot be {what}: {source}")]
    Freezer {
        /// The pod.
        pod: String,
        /// What was to become of it.
        what: &'static str,
        /// Why not.
        source: FreezerError,
    },
    /// A process cannot be ended.
    #[error(
        "process {process} of pod {pod} cannot be ended ({kind:?}): end it by hand with `kill -9 {process}`"
    )]
    Kill {
        /// The pod.
        pod: String,
        /// The process.
        process: i32,
        /// Why not.
        kind: io::ErrorKind,
    },
    /// A command fails.
    #[error("container {container} of pod {pod} cannot be dumped: `{command}` {source}; see {log:?}")]
    Dump {
        /// The pod.
        pod: String,
        /// The container.
        container: String,
        /// The command.
        command: String,
        /// How it fails.
        source: Box<CommandError>,
        /// Where CRIU says more.
        log: PathBuf,
    },
    /// A part cannot be packed or unpacked.
    #[error("{part} of pod {pod}: {source}")]
    Archive {
        /// The pod.
        pod: String,
        /// The part.
        part: String,
        /// Why not.
        source: Box<ArchiveError>,
    },
    /// All parts together are too large.
    #[error(
        "with {part} the checkpoint of pod {pod} has {bytes} bytes once it is unpacked, and all parts of a session may have {limit} \
         together: raise limits.maxCheckpointSize, or make the checkpoint smaller"
    )]
    Budget {
        /// The pod.
        pod: String,
        /// The part.
        part: String,
        /// How many bytes all parts have up to this one, at least.
        bytes: u64,
        /// How many they may have.
        limit: u64,
    },
    /// The checkpoint would give a container more than its pod has.
    #[error("the checkpoint of container {container} of pod {pod} is refused: {source}")]
    Refused {
        /// The pod.
        pod: String,
        /// The container.
        container: String,
        /// Why.
        source: Box<Refusal>,
    },
    /// It is not known what a container may have.
    #[error("the rights of container {container} of pod {pod} are not known: {source}")]
    Spec {
        /// The pod.
        pod: String,
        /// The container.
        container: String,
        /// Why not.
        source: SpecError,
    },
    /// Something else is not as it has to be.
    #[error("pod {pod}: {why}")]
    State {
        /// The pod.
        pod: String,
        /// What.
        why: String,
    },
    /// The store fails.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The certificates cannot be used.
    #[error(transparent)]
    Credentials(#[from] CredentialsError),
    /// The parts cannot be sent.
    #[error(transparent)]
    Send(#[from] SendError),
    /// The parts cannot be received.
    #[error(transparent)]
    Session(#[from] SessionError),
    /// What the caller gives fails.
    #[error(transparent)]
    Caller(#[from] HandsError),
    /// A file cannot be read or written.
    #[error("cannot {what} {path:?} ({}): check the permissions of the agent and the space on the disk", .source.kind())]
    Io {
        /// What was to be done.
        what: &'static str,
        /// With which file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The node hangs.
    #[error(transparent)]
    Lane(#[from] LaneError),
    /// The process ends.
    #[error("the agent is stopping: it goes on when it runs again")]
    Stopping,
}

impl NodeError {
    pub(super) fn io(what: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::Io { what, path: path.to_owned(), source }
    }

    pub(super) fn state(pod: &Pod, why: impl Into<String>) -> Self {
        Self::State { pod: pod.to_string(), why: why.into() }
    }

    /// Whether another try with the same checkpoint would fail as well.
    pub(super) fn is_refusal(&self) -> bool {
        match self {
            Self::Refused { source, .. } => !matches!(**source, Refusal::Io { .. }),
            Self::Budget { .. } => true,
            Self::Archive { source, .. } => {
                !matches!(**source, ArchiveError::Io { .. } | ArchiveError::Remove(_))
            }
            _ => false,
        }
    }
}

impl From<NodeError> for HandsError {
    fn from(error: NodeError) -> Self {
        match error {
            NodeError::Caller(error) => error,
            error @ (NodeError::NoPods { .. }
            | NodeError::NoCgroup { .. }
            | NodeError::NoContainers { .. }
            | NodeError::Unknown { .. }) => Self::refusal(error),
            error => Self::new(error),
        }
    }
}

/// Does what blocks on a thread for that.
pub(super) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, NodeError> + Send + 'static,
) -> Result<T, NodeError> {
    tokio::task::spawn_blocking(work).await.map_err(|_| NodeError::Stopping)?
}

/// How many pods are looked at at once.
const MOST_LOOKS: usize = 32;
/// How long a look may take.
const LOOK_PATIENCE: Duration = Duration::from_secs(5);

/// The looks of one role at its pods. They are repeated while one hangs, and must not take all threads.
#[derive(Clone)]
pub(super) struct Looks(Lane);

impl Looks {
    pub(super) fn new() -> Self {
        Self(Lane::new("look at the pod", MOST_LOOKS, LOOK_PATIENCE))
    }

    /// As [`blocking`], and once at a time for each pod.
    pub(super) async fn at<T: Send + 'static>(
        &self,
        pod: &Pod,
        look: impl FnOnce() -> Result<T, NodeError> + Send + 'static,
    ) -> Result<T, NodeError> {
        self.0.run(pod.uid(), look).await?
    }
}
