//! The freezer on the kernel of this machine, where the test may make cgroups.

use super::{Held, PodFreezer};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use std::{fs, process, thread};

/// Cgroups of this test alone, and processes in them; all of it goes with it.
struct Pod {
    folder: PathBuf,
    children: Vec<Child>,
}

impl Pod {
    /// None where cgroups cannot be made: without root, or without such a freezer.
    fn new(hierarchy: &str, file: &str) -> Option<Self> {
        Path::new(hierarchy).join("cgroup.procs").exists().then_some(())?;
        let folder =
            Path::new(hierarchy).join(format!("portolan-test-{}-{}", process::id(), hierarchy.len()));
        fs::create_dir(&folder).ok()?;
        let mut pod = Self { folder, children: Vec::new() };
        if !pod.folder.join(file).exists() {
            return None;
        }
        for name in ["a", "b"] {
            let container = pod.folder.join(name);
            fs::create_dir(&container).ok()?;
            let child = Command::new("sh")
                .args(["-c", "while read -r line; do echo \"$line\"; done"])
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .spawn()
                .ok()?;
            let id = child.id().to_string();
            pod.children.push(child);
            fs::write(container.join("cgroup.procs"), id).ok()?;
        }
        Some(pod)
    }

    /// Asks each process for an answer, which it can give only while it runs.
    fn answers(&mut self) {
        for child in &mut self.children {
            let (Some(input), Some(output)) = (&mut child.stdin, &mut child.stdout) else { continue };
            input.write_all(b"x\n").unwrap();
            output.read_exact(&mut [0; 2]).unwrap();
        }
    }
}

impl Drop for Pod {
    fn drop(&mut self) {
        if let Ok(freezer) = PodFreezer::open(&self.folder, &["a", "b"]) {
            let _ = freezer.thaw();
        }
        for child in &mut self.children {
            let _ = child.kill();
            let _ = child.wait();
        }
        for _ in 0..100 {
            let gone = ["a", "b"].iter().all(|name| {
                let container = self.folder.join(name);
                !container.exists() || fs::remove_dir(&container).is_ok()
            });
            if gone && fs::remove_dir(&self.folder).is_ok() {
                return;
            }
            thread::sleep(Duration::from_millis(10));
        }
    }
}

fn holds(hierarchy: &str, file: &str) {
    let Some(mut pod) = Pod::new(hierarchy, file) else {
        eprintln!("not tried: cgroups cannot be made in {hierarchy}");
        return;
    };
    let freezer = PodFreezer::open(&pod.folder, &["a", "b"]).unwrap();
    assert_eq!(freezer.held().unwrap(), Held::None);
    for _ in 0..3 {
        freezer.freeze().unwrap();
        assert_eq!(freezer.held().unwrap(), Held::All);
        freezer.freeze().unwrap();
        assert_eq!(freezer.held().unwrap(), Held::All);
        freezer.thaw().unwrap();
        assert_eq!(freezer.held().unwrap(), Held::None);
        freezer.thaw().unwrap();
        pod.answers();
    }
}

#[test]
fn a_pod_is_held_by_the_freezer_of_cgroup_v1() {
    holds("/sys/fs/cgroup/freezer", "freezer.state");
}

#[test]
fn a_pod_is_held_by_the_freezer_of_cgroup_v2() {
    for hierarchy in ["/sys/fs/cgroup/unified", "/sys/fs/cgroup"] {
        holds(hierarchy, "cgroup.freeze");
    }
}
