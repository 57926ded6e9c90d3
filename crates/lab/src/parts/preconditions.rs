//! What the lab needs of a machine.

use std::fs;
use std::path::Path;

use super::cache::Cache;
use super::go_module::GoModule;
use super::images::Images;
use super::modules::Modules;
use super::node_root::NodeRoot;
use super::version::{KubernetesVersion, leading_numbers};
use super::{DEFAULT_KUBERNETES, Missing, debootstrap, go_toolchain, process};

/// Room for a node root and the images, also while they are made.
const ROOM_FOR_ROOT: u64 = 2 << 30;
/// Room for the programs of one version of Kubernetes (1 GB) and Go's own caches, which are usually beside them (7 GB).
const ROOM_FOR_PROGRAMS: u64 = 8 << 30;

/// What kubelet, runc and CRIU use.
const CONTROLLERS: &[&str] = &["cpu", "cpuset", "memory", "pids"];
/// In the first version of cgroups these too are controllers.
const CONTROLLERS_V1: &[&str] = &["cpuacct", "devices", "freezer", "blkio"];

/// Checks all that the lab needs of this machine, and lists everything that is missing at once. Compilers, debootstrap and
/// room on the disk are asked for only while some part for [`DEFAULT_KUBERNETES`] is still to be made.
pub fn preconditions() -> Result<(), Vec<Missing>> {
    let mut missing = to_run();
    let version = DEFAULT_KUBERNETES.parse::<KubernetesVersion>();
    match version.and_then(Modules::read) {
        Ok(modules) => {
            for one in to_make(&Cache::of_user(), &modules) {
                if missing.iter().all(|told| told.what != one.what) {
                    missing.push(one);
                }
            }
        }
        Err(error) => {
            missing.push(Missing::new(error.to_string(), "the checkout is not complete: clone it again"));
        }
    }
    if missing.is_empty() { Ok(()) } else { Err(missing) }
}

/// What is missing to run clusters.
fn to_run() -> Vec<Missing> {
    let mut missing = Vec::new();
    if !cfg!(target_os = "linux") {
        missing.push(Missing::new("this is not Linux", "use a Linux machine or virtual machine"));
        return missing;
    }
    if !nix::unistd::geteuid().is_root() {
        missing
            .push(Missing::new("not root", "run it as root (sudo): it makes namespaces, mounts and cgroups"));
    }
    let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
    if !read("/proc/filesystems").lines().any(|line| line.split_whitespace().last() == Some("overlay")) {
        missing.push(Missing::new("the kernel has no overlay file system", "run `modprobe overlay`"));
    }
    missing.extend(cgroups(&read("/proc/self/mountinfo"), &read("/sys/fs/cgroup/cgroup.controllers")));
    missing
}

/// What is missing to make the parts that are not in the cache.
pub(super) fn to_make(cache: &Cache, modules: &Modules) -> Vec<Missing> {
    let root = NodeRoot::from_environment();
    let images = Images::new(&cache.path(&root), &cache.path(&modules.coredns));
    let programs = modules.all().into_iter().all(|module| cache.holds(module));
    if programs && cache.holds(&root) && cache.holds(&images) {
        return Vec::new();
    }
    let mut missing = Vec::new();
    if !programs {
        let newest = modules.all().into_iter().map(GoModule::go).max_by_key(|go| leading_numbers(go));
        missing.extend(newest.and_then(go_toolchain::missing));
    }
    if !cache.holds(&images) && process::find("gcc").is_none() {
        missing
            .push(Missing::new("no `gcc` in PATH", "install a C compiler (apt-get install gcc libc6-dev)"));
    }
    if !cache.holds(&root) {
        missing.extend(debootstrap::missing());
        if !nix::unistd::geteuid().is_root() {
            missing.push(Missing::new("not root", "run it as root (sudo): a node root has files of root"));
        }
    }
    missing.extend(room(cache.root(), if programs { ROOM_FOR_ROOT } else { ROOM_FOR_PROGRAMS }));
    missing
}

/// Either all of version 1, each mounted by itself, or version 2 alone.
fn cgroups(mountinfo: &str, unified: &str) -> Option<Missing> {
    let mut v1 = Vec::new();
    for line in mountinfo.lines() {
        let Some((_, tail)) = line.split_once(" - ") else { continue };
        let fields: Vec<&str> = tail.split(' ').collect();
        if let ["cgroup", _, options, ..] = fields[..] {
            v1.extend(options.split(','));
        }
    }
    let lacking = |wanted: &[&str], has: &[&str]| {
        let lacking: Vec<&str> = wanted.iter().filter(|name| !has.contains(name)).copied().collect();
        lacking.join(", ")
    };
    let unified: Vec<&str> = unified.split_whitespace().collect();
    let (of_v1, of_v2) =
        (lacking(&[CONTROLLERS, CONTROLLERS_V1].concat(), &v1), lacking(CONTROLLERS, &unified));
    if of_v1.is_empty() || of_v2.is_empty() {
        return None;
    }
    let fix = "mount cgroup v2 on /sys/fs/cgroup, or each controller of v1 below it (as systemd or cgroupfs-mount do)";
    Some(Missing::new(format!("cgroup controllers are missing (v1: {of_v1}; v2: {of_v2})"), fix))
}

/// Looks at the file system on which the cache is or will be.
fn room(cache: &Path, needed: u64) -> Option<Missing> {
    let there = cache.ancestors().find(|path| path.is_dir())?;
    let fix =
        format!("make room, or put the cache elsewhere (XDG_CACHE_HOME; it is now {})", cache.display());
    match nix::sys::statvfs::statvfs(there) {
        Err(error) => {
            Some(Missing::new(format!("cannot measure the room on {}: {error}", there.display()), fix))
        }
        Ok(found) => {
            let free = found.blocks_available().saturating_mul(found.fragment_size());
            let gib = |bytes: u64| bytes as f64 / f64::from(1 << 30);
            (free < needed).then(|| {
                let what = format!(
                    "{} has {:.1} GiB free, {:.0} are needed",
                    there.display(),
                    gib(free),
                    gib(needed)
                );
                Missing::new(what, fix)
            })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mounted(controllers: &[&str]) -> String {
        let line = |name: &&str| {
            format!("32 31 0:29 / /sys/fs/cgroup/{name} rw,relatime - cgroup cgroup rw,{name}\n")
        };
        controllers.iter().map(line).collect()
    }

    #[test]
    fn either_version_of_cgroups_will_do() {
        let all = ["cpu,cpuacct", "cpuset", "memory", "pids", "devices", "freezer", "blkio"];
        assert_eq!(cgroups(&mounted(&all), ""), None);
        let v2 = "30 23 0:26 / /sys/fs/cgroup rw shared:4 - cgroup2 cgroup2 rw\n";
        assert_eq!(cgroups(v2, "cpuset cpu io memory hugetlb pids\n"), None);
    }

    #[test]
    fn missing_controllers_are_named() {
        let missing =
            cgroups(&mounted(&["cpu", "cpuacct", "cpuset", "memory", "devices", "freezer", "blkio"]), "cpu");
        let missing = missing.unwrap().to_string();
        assert!(missing.contains("v1: pids; v2: cpuset, memory, pids"), "{missing}");
        assert!(cgroups("", "").is_some());
        assert!(cgroups("garbage\n - \n - cgroup\n", "").is_some());
    }

    #[test]
    fn there_is_no_room_where_nothing_can_be_written() {
        assert!(
            room(Path::new("/proc/portolan/parts"), 1 << 30).unwrap().to_string().contains("0.0 GiB free")
        );
    }
}
