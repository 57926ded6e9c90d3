//! The parts of a checkpoint, as they are sent.

use super::NodeError;
use portolan_node::Name;
use portolan_node::archive::Kind;
use std::fmt;

/// A part. Names of containers and volumes have no dots, so every part has a name of its own.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Part {
    /// The images of CRIU of a container.
    Images(Name),
    /// What a container changed in its root file system.
    Rootfs(Name),
    /// The contents of an emptyDir.
    Volume(Name),
}

impl Part {
    /// All parts of a pod.
    pub(super) fn all(containers: &[Name], volumes: &[Name]) -> Vec<Self> {
        let of_containers =
            containers.iter().cloned().flat_map(|name| [Self::Images(name.clone()), Self::Rootfs(name)]);
        of_containers.chain(volumes.iter().cloned().map(Self::Volume)).collect()
    }

    /// What it is called.
    pub(super) fn name(&self) -> Result<Name, NodeError> {
        Ok(Name::new("part", &self.to_string())?)
    }

    pub(super) fn kind(&self) -> Kind {
        match self {
            Self::Images(_) => Kind::Images,
            Self::Rootfs(_) => Kind::RootfsDiff,
            Self::Volume(_) => Kind::Volume,
        }
    }
}

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Images(name) => write!(f, "images.{name}"),
            Self::Rootfs(name) => write!(f, "rootfs.{name}"),
            Self::Volume(name) => write!(f, "volume.{name}"),
        }
    }
}
