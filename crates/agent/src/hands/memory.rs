//! File systems in memory, as CRIU brings them along: archives that GNU tar unpacks as root. All functions block.

use super::NodeError;
use crate::images::Archive;
use portolan_node::archive::{ArchiveError, Device, Limits, inspect_memory};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::BufReader;
use std::path::Path;

/// Where devices are.
const DEVICES: &str = "/dev";

/// The character devices that runc gives every container: null, zero, full, random, urandom and tty.
const OF_ALL: [(u32, u32); 6] = [(1, 3), (1, 5), (1, 7), (1, 8), (1, 9), (5, 0)];

/// What the archives of one container hold.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct InMemory {
    pub(super) bytes: u64,
    /// The symbolic links, by their paths in the container.
    pub(super) links: BTreeMap<String, String>,
}

/// Why an archive is not used.
#[derive(Debug)]
pub(super) enum Unusable {
    Archive { name: String, source: Box<ArchiveError> },
    Node(NodeError),
}

/// Inspects the archives among the images of a container that has these devices.
pub(super) fn inspect(
    images: &Path,
    archives: &[Archive],
    devices: &BTreeSet<Device>,
    limits: &Limits,
) -> Result<InMemory, Unusable> {
    let mut all = InMemory::default();
    for archive in archives {
        let path = images.join(&archive.name);
        let file = File::open(&path).map_err(NodeError::io("open", &path)).map_err(Unusable::Node)?;
        let whole = archive.mounts.iter().find(|(_, root)| root == "/").or(archive.mounts.first());
        let at = whole.map_or("/", |(at, _)| at.as_str());
        let none = BTreeSet::new();
        let devices = if at == DEVICES { devices } else { &none };
        let within = Limits { total_bytes: limits.total_bytes.saturating_sub(all.bytes), ..*limits };
        let memory = inspect_memory(BufReader::new(file), at, devices, &within)
            .map_err(|source| Unusable::Archive { name: archive.name.clone(), source: Box::new(source) })?;
        all.bytes = all.bytes.saturating_add(memory.bytes);
        for (link, target) in memory.links {
            all.links.extend(places(archive, &link).map(|place| (place, target.clone())));
        }
    }
    Ok(all)
}

/// Where a path of the file system is seen in the container.
fn places(archive: &Archive, path: &str) -> impl Iterator<Item = String> {
    archive.mounts.iter().filter_map(move |(at, root)| {
        let below = Path::new(path).strip_prefix(root).ok()?;
        Path::new(at).join(below).to_str().map(str::to_owned)
    })
}

/// The devices of a container, by its `config.json`.
pub(super) fn devices(config: &Value) -> BTreeSet<Device> {
    let of_all = OF_ALL.map(|(major, minor)| Device { block: false, major, minor });
    let listed = config.pointer("/linux/devices").and_then(Value::as_array).into_iter().flatten();
    let number = |device: &Value, name: &str| u32::try_from(device.get(name)?.as_u64()?).ok();
    let own = listed.filter_map(|device| {
        let block = match device.get("type")?.as_str()? {
            "b" => true,
            "c" | "u" => false,
            _ => return None,
        };
        Some(Device { block, major: number(device, "major")?, minor: number(device, "minor")? })
    });
    own.chain(of_all).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use portolan_node::archive::Refusal;
    use serde_json::json;
    use std::path::PathBuf;

    fn images() -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("src/images/real/user/checkpoint")
    }

    fn archive(number: u32, mounts: &[(&str, &str)]) -> Archive {
        let mounts = mounts.iter().map(|(at, root)| ((*at).to_owned(), (*root).to_owned())).collect();
        Archive { name: format!("tmpfs-dev-{number}.tar.gz.img"), mounts }
    }

    #[test]
    fn what_criu_writes_of_a_container_is_accepted() {
        let all = [
            archive(117, &[("/dev", "/")]),
            archive(119, &[("/sys/fs/cgroup", "/")]),
            archive(141, &[("/proc/acpi", "/")]),
        ];
        let found = inspect(&images(), &all, &devices(&json!({})), &Limits::default()).unwrap();
        assert_eq!((found.bytes, found.links.len()), (0, 5));
        assert_eq!(found.links.get("/dev/fd").map(String::as_str), Some("/proc/self/fd"));
    }

    #[test]
    fn devices_are_those_of_the_container_and_in_its_folder_for_devices() {
        let refused = |archive: Archive, devices: &BTreeSet<Device>| {
            let found = inspect(&images(), &[archive], devices, &Limits::default());
            let Err(Unusable::Archive { name, source }) = found else { panic!("{found:?}") };
            assert!(name.contains("117"));
            matches!(*source, ArchiveError::Refused { refusal: Refusal::DeviceNumber { .. }, .. })
        };
        assert!(refused(archive(117, &[("/dev", "/")]), &BTreeSet::new()));
        assert!(refused(archive(117, &[("/data", "/")]), &devices(&json!({}))));
    }

    #[test]
    fn devices_of_the_spec_are_those_of_all_and_its_own() {
        let config = json!({ "linux": { "devices": [
            { "type": "c", "major": 195, "minor": 0 },
            { "type": "b", "major": 8, "minor": 16 },
            { "type": "p", "major": 1, "minor": 1 },
            { "type": "c", "major": -1, "minor": 1 },
        ] } });
        let found = devices(&config);
        assert_eq!(found.len(), OF_ALL.len() + 2);
        for (block, major, minor) in [(false, 195, 0), (true, 8, 16), (false, 1, 3)] {
            assert!(found.contains(&Device { block, major, minor }), "{major}:{minor}");
        }
    }

    #[test]
    fn a_link_is_where_its_folder_is_seen() {
        let seen = archive(1, &[("/a", "/"), ("/b", "/x"), ("/c", "/y")]);
        let places: Vec<_> = places(&seen, "/x/l").collect();
        assert_eq!(places, ["/a/x/l", "/b/l"]);
    }
}
