//! File systems that several mounts show.
//!
//! CRIU binds a mount from any other one of the same device, type, source and options. All of them are given by the images: a
//! new file system that is said to have the device of a mount of the node would be that one, with the options of the new one.

use super::mounts::{Checker, Mount};
use super::refusal::Refusal;
use super::rule::Rule;
use std::collections::BTreeMap;

/// Whose file system a mount shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Origin {
    /// The empty one over masked folders: runc may mount one for all.
    Mask,
    /// That of the mount with this number.
    Mount(u32),
}

impl Checker<'_> {
    /// Mounts that are not given by the destination share no device with others, but those that runc binds from them.
    pub(super) fn origins(&self) -> Result<(), Refusal> {
        let mut by_device = BTreeMap::<u32, Vec<&Mount>>::new();
        for mount in self.mounts.values() {
            by_device.entry(mount.device).or_default().push(mount);
        }
        for mounts in by_device.values() {
            let Some(own) = mounts.iter().find(|mount| mount.external.is_none()) else { continue };
            let origin = self.origin(own);
            // The device of a masked file is that of /dev, and the destination gives /dev/null, whatever it is.
            let other = |mount: &&&Mount| !self.is_masked_file(mount) && self.origin(mount) != origin;
            if let Some(other) = mounts.iter().find(other) {
                let found = format!("device {:#x} of {:?} at {:?}", own.device, other.at, own.at);
                return Err(self.refused(Rule::MountSource, found, "a file system for each"));
            }
        }
        Ok(())
    }

    fn is_masked_file(&self, mount: &Mount) -> bool {
        mount.external.is_some() && !self.is_of_spec(mount) && self.allowed.masked.contains(&mount.at)
    }

    fn is_of_spec(&self, mount: &Mount) -> bool {
        self.allowed.mounts.iter().any(|spec| spec.is_at(&mount.at))
    }

    fn origin<'a>(&'a self, mut mount: &'a Mount) -> Origin {
        // What is bound read-only over itself, or a terminal: not of the spec, and its device is compared where it is checked.
        while mount.at != "/" && mount.external.is_none() && !self.is_of_spec(mount) {
            let from = if self.allowed.masked.contains(&mount.at) {
                return Origin::Mask;
            } else if self.allowed.readonly.contains(&mount.at) {
                self.around(&mount.at)
            } else if mount.at == "/dev/console" {
                self.mounts.get("/dev/pts").copied()
            } else {
                None
            };
            match from {
                Some(from) => mount = from,
                None => break,
            }
        }
        Origin::Mount(mount.id)
    }
}
