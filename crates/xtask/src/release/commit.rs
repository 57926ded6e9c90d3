//! The commit that is built: the time of everything that is released, and its name.

use super::output;
use crate::steps::root;
use anyhow::{Context, Result};
use std::process::Command;

/// A commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Commit {
    /// Its hash; with `-dirty` if files differ from it.
    pub(crate) id: String,
    /// When it was made, in seconds since 1970.
    pub(crate) seconds: u64,
    /// The same as RFC 3339 has it.
    pub(crate) time: String,
}

impl Commit {
    /// The commit of the working tree.
    pub(crate) fn current() -> Result<Self> {
        let log = git(&["log", "-1", "--date=format-local:%Y-%m-%dT%H:%M:%SZ", "--format=%H %ct %cd"])
            .context("a release is made of a commit")?;
        let changes = git(&["status", "--porcelain", "--untracked-files=no"])?;
        read(&log, !changes.trim().is_empty())
            .with_context(|| format!("git log prints no commit: {}", log.trim()))
    }

    /// Whether files differ from the commit.
    pub(crate) fn is_dirty(&self) -> bool {
        self.id.ends_with("-dirty")
    }

    /// Says that the result belongs to no commit, if it is so.
    pub(crate) fn warn_if_dirty(&self) {
        if self.is_dirty() {
            eprintln!(
                "warning: files differ from the commit: what is made of them cannot be made again from it"
            );
        }
    }
}

fn read(log: &str, changed: bool) -> Option<Commit> {
    let mut words = log.split_whitespace();
    let (id, seconds, time) = (words.next()?, words.next()?.parse().ok()?, words.next()?.to_owned());
    let id = if changed { format!("{id}-dirty") } else { id.to_owned() };
    Some(Commit { id, seconds, time })
}

fn git(arguments: &[&str]) -> Result<String> {
    output(Command::new("git").args(arguments).current_dir(root()).env("TZ", "UTC"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_commit_is_read_and_changes_are_in_its_name() {
        let commit = read("4be7d12 1700000000 2023-11-14T22:13:20Z\n", false).unwrap();
        assert_eq!(commit.seconds, 1_700_000_000);
        assert_eq!(commit.time, "2023-11-14T22:13:20Z");
        assert!(!commit.is_dirty());
        assert_eq!(read("4be7d12 1700000000 2023-11-14T22:13:20Z", true).unwrap().id, "4be7d12-dirty");
        assert_eq!(read("nothing", false), None);
    }
}
