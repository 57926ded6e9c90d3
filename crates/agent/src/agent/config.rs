//! Where an agent runs, and what it keeps.

use crate::transfer::ReceiverLimits;
use crate::{hands, session};
use std::net::IpAddr;
use std::path::{Path, PathBuf};

/// The port at which peers reach an agent if nothing else is said.
pub const DEFAULT_PORT: u16 = 9445;

/// Where an agent runs, and what it keeps.
#[derive(Clone, Debug)]
pub struct Config {
    /// The name of its Node.
    pub node: String,
    /// The address at which the agents of peers reach it.
    pub address: IpAddr,
    /// The port at which all of them reach it.
    pub port: u16,
    /// The folder of its journal.
    pub journal: PathBuf,
    /// Where things are on the node.
    pub hands: hands::Settings,
    /// How patient its sessions are.
    pub sessions: session::Settings,
    /// How much peers may cost it.
    pub receiver: ReceiverLimits,
}

impl Config {
    /// The usual folders, with the hierarchy of cgroups that this node has.
    #[must_use]
    pub fn on_node(name: impl Into<String>, address: IpAddr) -> Self {
        let mut hands = hands::Settings::default();
        if !hands.cgroups.is_dir() {
            hands.cgroups = unified(&hands.cgroups);
        }
        Self {
            node: name.into(),
            address,
            port: DEFAULT_PORT,
            journal: PathBuf::from("/var/lib/portolan/journal"),
            hands,
            sessions: session::Settings::default(),
            receiver: ReceiverLimits::default(),
        }
    }
}

/// Without a hierarchy of its own, the freezer is in the one hierarchy of cgroup v2.
fn unified(freezer: &Path) -> PathBuf {
    freezer.parent().unwrap_or(freezer).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cgroup_v2_is_above_the_freezer_of_v1() {
        assert_eq!(unified(Path::new("/sys/fs/cgroup/freezer")), Path::new("/sys/fs/cgroup"));
    }
}
