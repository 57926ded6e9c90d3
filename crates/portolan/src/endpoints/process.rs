//! What the system knows of this process. Where there is no /proc, it is left out.

use jiff::Timestamp;
use portolan_control::monitor as family;
use portolan_runtime::metrics::Samples;
use std::fs;

/// In how many parts of a second Linux tells the times of a process, on every architecture (USER_HZ).
const TICKS: f64 = 100.0;

/// Adds what is known of this process, which began then.
pub(super) fn collect(started: Timestamp, samples: &mut Samples) {
    let began = started.as_millisecond() as f64 / 1000.0;
    samples.number(&family::STARTED, &[], began);
    if let Some(seconds) = fs::read_to_string("/proc/self/stat").ok().and_then(|stat| cpu(&stat)) {
        samples.seconds(&family::CPU, &[], seconds);
    }
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    for (family, name, unit) in [
        (&family::RESIDENT, "VmRSS:", 1024.0),
        (&family::VIRTUAL, "VmSize:", 1024.0),
        (&family::THREADS, "Threads:", 1.0),
    ] {
        if let Some(number) = field(&status, name) {
            samples.number(family, &[], number * unit);
        }
    }
    let limits = fs::read_to_string("/proc/self/limits").unwrap_or_default();
    if let Some(most) = field(&limits, "Max open files") {
        samples.number(&family::MAX_FDS, &[], most);
    }
    if let Ok(open) = fs::read_dir("/proc/self/fd") {
        // One of them is the folder that is being read.
        samples.number(&family::OPEN_FDS, &[], open.count().saturating_sub(1) as f64);
    }
}

/// The first number after a name at the beginning of a line.
fn field(text: &str, name: &str) -> Option<f64> {
    let rest = text.lines().find_map(|line| line.strip_prefix(name))?;
    rest.split_whitespace().next()?.parse().ok()
}

/// CPU time in seconds: the fields 14 and 15, counted from behind the name of the program, which may hold anything.
fn cpu(stat: &str) -> Option<f64> {
    let (_, fields) = stat.rsplit_once(')')?;
    let mut fields = fields.split_whitespace().skip(11);
    let (user, system): (f64, f64) = (fields.next()?.parse().ok()?, fields.next()?.parse().ok()?);
    Some((user + system) / TICKS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_found_whatever_the_program_is_called() {
        let stat = "7 (a) b) c) S 1 7 7 0 -1 4194560 100 0 0 0 250 50 0 0 20 0 5 0 100 1 2";
        assert_eq!(cpu(stat), Some(3.0));
        assert_eq!(cpu("7 (a"), None);
        let status = "VmPeak:\t 9 kB\nVmRSS:\t  1234 kB\nThreads:\t3\n";
        assert_eq!((field(status, "VmRSS:"), field(status, "VmSize:")), (Some(1234.0), None));
        assert_eq!(
            field("Max open files            unlimited            524288   files\n", "Max open files"),
            None
        );
    }
}
