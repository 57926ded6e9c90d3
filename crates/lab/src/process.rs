//! What `/proc` says about the processes of a lab.
//!
//! Every process the lab starts carries [`MARKER`] in its environment, so that a lab can be cleared away even when
//! whoever made it died before writing anything down.

use std::fs;
use std::path::Path;

/// Environment variable of all processes of a lab; its value is the directory of the lab.
pub(crate) const MARKER: &str = "PORTOLAN_LAB_STATE";

/// Host process ids of all living processes that were started for the lab in `dir`.
pub(crate) fn of_lab(dir: &Path) -> Vec<u32> {
    all().filter(|pid| carries_marker(*pid, dir) == Some(true)).collect()
}

/// Whether the process lives and, as far as one can tell, belongs to the lab in `dir`.
pub(crate) fn may_be_of_lab(pid: u32, dir: &Path) -> bool {
    carries_marker(pid, dir).unwrap_or_else(|| is_running(pid))
}

/// None if the process shows no environment: it has ended, or is just replacing its program by another.
fn carries_marker(pid: u32, dir: &Path) -> Option<bool> {
    let environ = fs::read(format!("/proc/{pid}/environ")).ok().filter(|environ| !environ.is_empty())?;
    let wanted = format!("{MARKER}={}", dir.display());
    Some(environ.split(|byte| *byte == 0).any(|entry| entry == wanted.as_bytes()))
}

/// Host process id of the process that is `inner` in the pid namespace whose init is `init`.
pub(crate) fn host_pid(init: u32, inner: u32) -> Option<u32> {
    let namespace = fs::read_link(format!("/proc/{init}/ns/pid")).ok()?;
    all().find(|pid| {
        fs::read_link(format!("/proc/{pid}/ns/pid")).is_ok_and(|found| found == namespace)
            && innermost_pid(*pid) == Some(inner)
            && state(*pid).is_some_and(|state| state != 'Z')
    })
}

/// When the process started, in clock ticks since boot: with its pid it names a process for good.
pub(crate) fn start_time(pid: u32) -> Option<u64> {
    stat_field(pid, 22)?.parse().ok()
}

/// Whether a process runs (a zombie does not).
pub(crate) fn is_running(pid: u32) -> bool {
    state(pid).is_some_and(|state| state != 'Z')
}

/// Resident memory in bytes.
pub(crate) fn resident_bytes(pid: u32) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kilobytes: u64 = line.trim().trim_end_matches("kB").trim().parse().ok()?;
    Some(kilobytes * 1024)
}

/// Host process ids of all living descendants of a process.
pub(crate) fn descendants(of: u32) -> Vec<u32> {
    let parents: Vec<(u32, u32)> =
        all().filter_map(|pid| Some((pid, stat_field(pid, 4)?.parse().ok()?))).collect();
    let mut found = vec![of];
    let mut next = 0;
    while next < found.len() {
        let parent = found[next];
        found.extend(parents.iter().filter(|(_, ppid)| *ppid == parent).map(|(pid, _)| *pid));
        next += 1;
    }
    found.split_off(1)
}

fn all() -> impl Iterator<Item = u32> {
    fs::read_dir("/proc")
        .into_iter()
        .flatten()
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
}

fn innermost_pid(pid: u32) -> Option<u32> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("NSpid:"))?;
    line.split_whitespace().last()?.parse().ok()
}

fn state(pid: u32) -> Option<char> {
    stat_field(pid, 3)?.chars().next()
}

/// A field of `/proc/PID/stat`, counted from one as in proc(5).
fn stat_field(pid: u32, number: usize) -> Option<String> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The second field is the program's name in brackets and may itself hold spaces and brackets.
    let after_name = stat.rsplit_once(')')?.1;
    after_name.split_whitespace().nth(number.checked_sub(3)?).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_process_is_seen() {
        let me = std::process::id();
        assert!(is_running(me));
        assert!(start_time(me).is_some());
        assert!(resident_bytes(me).is_some_and(|bytes| bytes > 100_000));
        assert!(!is_running(u32::MAX));
    }

    #[test]
    fn marker_finds_a_child_and_only_by_the_whole_value() {
        let dir = tempfile::tempdir().unwrap();
        let mut child =
            std::process::Command::new("sleep").arg("60").env(MARKER, dir.path()).spawn().unwrap();
        // What `spawn` waits for happens a moment before the new environment can be read.
        let deadline = std::time::Instant::now() + std::time::Duration::from_secs(10);
        while of_lab(dir.path()).is_empty() && std::time::Instant::now() < deadline {
            std::thread::yield_now();
        }
        let found = of_lab(dir.path());
        let parent = of_lab(dir.path().parent().unwrap());
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(found, [child.id()]);
        assert!(!parent.contains(&child.id()));
        assert!(of_lab(dir.path()).is_empty());
    }
}
