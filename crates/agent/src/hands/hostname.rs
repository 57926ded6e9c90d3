//! The hostname of a restored pod.
//!
//! CRIU brings back the one of the pod that was written down, and all containers of a pod share it. It blocks.

use nix::sched::{CloneFlags, setns};
use nix::unistd::sethostname;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::thread;

/// Sets the hostname where a process is, which may stand still. Never that of the node.
pub(super) fn set(proc: &Path, process: i32, hostname: &str) -> io::Result<()> {
    let namespace = File::open(proc.join(process.to_string()).join("ns/uts"))?;
    let identity = |found: fs::Metadata| (found.dev(), found.ino());
    let found = identity(namespace.metadata()?);
    for own in [proc.join("1/ns/uts"), "/proc/thread-self/ns/uts".into()] {
        if fs::metadata(own).is_ok_and(|own| identity(own) == found) {
            return Err(io::Error::other("the process has the hostname of the node"));
        }
    }
    let hostname = hostname.to_owned();
    // A thread of its own, which ends there.
    let set = thread::spawn(move || {
        setns(&namespace, CloneFlags::CLONE_NEWUTS)?;
        sethostname(&hostname)
    });
    let set = set.join().map_err(|_| io::Error::other("the thread ended in the middle"))?;
    set.map_err(io::Error::from)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{BufRead, BufReader, Write};
    use std::process::{Command, Stdio, id};

    #[test]
    fn the_hostname_of_the_node_is_never_changed() {
        let before = fs::read_to_string("/proc/sys/kernel/hostname").unwrap();
        let own = i32::try_from(id()).unwrap();
        assert!(set(Path::new("/proc"), own, "elsewhere").unwrap_err().to_string().contains("of the node"));
        assert_eq!(fs::read_to_string("/proc/sys/kernel/hostname").unwrap(), before);
        assert!(set(Path::new("/nowhere"), own, "elsewhere").is_err());
    }

    #[test]
    fn a_hostname_is_set_where_the_process_is() {
        let script = "echo ready; read go; cat /proc/sys/kernel/hostname";
        let mut unshare = Command::new("unshare");
        unshare.args(["--uts", "sh", "-c", script]).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = unshare.stderr(Stdio::null()).spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        // Where no namespace can be made, which takes root, nothing can be set either.
        if let Some(ready) = lines.next() {
            assert_eq!(ready.unwrap(), "ready");
            set(Path::new("/proc"), i32::try_from(child.id()).unwrap(), "web-0").unwrap();
            child.stdin.take().unwrap().write_all(b"go\n").unwrap();
            assert_eq!(lines.next().unwrap().unwrap(), "web-0");
        }
        child.wait().unwrap();
    }
}
