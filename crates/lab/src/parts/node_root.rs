//! The Debian root of every node: runc, CRIU, etcd and the network tools.
//!
//! It is Debian sid because checkpoints need CRIU 4, which the stable release does not have. Sid moves: two roots made on two
//! days differ although their key is the same. So the versions that came are written into the root ([`RECORD`]), those that
//! matter are checked, and a root is kept until its list of packages changes. Removing the directory is the way to newer
//! packages; `PORTOLAN_DEBIAN_SUITE` and `PORTOLAN_DEBIAN_MIRROR` (a snapshot of a day, say) are the way around a day on which
//! sid is broken.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::cache::{Key, Part, clear};
use super::version::leading_numbers;
use super::{PartsError, Step, debootstrap, process};

/// File in the root with one line `package version` for each package.
const RECORD: &str = "etc/portolan-packages";

const SUITE: &str = "sid";
const MIRROR: &str = "http://deb.debian.org/debian";

/// What a node needs beyond Debian's minimum.
const PACKAGES: &[&str] = &[
    "busybox-static",
    "ca-certificates",
    "conntrack",
    "containernetworking-plugins",
    "criu",
    "etcd-server",
    "ethtool",
    "iproute2",
    "iptables",
    "kmod",
    "nftables",
    "procps",
    "runc",
    "util-linux",
];

/// The oldest versions that do.
const OLDEST: &[(&str, &[u32])] = &[("criu", &[4]), ("runc", &[1, 2]), ("etcd-server", &[3, 5])];

/// What is read at build time or never.
const REMOVED: &[&str] = &[
    "usr/share/doc",
    "usr/share/info",
    "usr/share/lintian",
    "usr/share/locale",
    "usr/share/man",
    "var/cache/apt",
    "var/lib/apt/lists",
    "var/log",
];

/// The root as it is to be made.
#[derive(Debug, Clone)]
pub(super) struct NodeRoot {
    suite: String,
    mirror: String,
}

impl NodeRoot {
    /// Sid from Debian's mirror, or what the environment asks for.
    pub(super) fn from_environment() -> Self {
        let variable = |name, default: &str| {
            std::env::var(name).ok().filter(|value| !value.is_empty()).unwrap_or_else(|| default.to_owned())
        };
        Self {
            suite: variable("PORTOLAN_DEBIAN_SUITE", SUITE),
            mirror: variable("PORTOLAN_DEBIAN_MIRROR", MIRROR),
        }
    }

    /// Debootstrap in a mount namespace of its own: what it mounts is gone when it ends, however it ends.
    fn bootstrap(&self, tools: &debootstrap::Tools, partial: &Path) -> Result<(), PartsError> {
        let mut command = Command::new("unshare");
        command.args(["--mount", "--propagation", "private"]).arg(&tools.program);
        command.args(["--variant=minbase", "--force-check-gpg"]);
        command.arg(format!("--include={}", PACKAGES.join(",")));
        command.arg(format!("--keyring={}", tools.keyring.display()));
        command.args([&self.suite]).arg(partial).arg(&self.mirror).arg(&tools.script);
        command.env("DEBIAN_FRONTEND", "noninteractive").env("LC_ALL", "C");
        let help = format!(
            "Debian {} changes daily and can be inconsistent for some hours. Try again later, or take another suite \
             (PORTOLAN_DEBIAN_SUITE) or the mirror of another day \
             (PORTOLAN_DEBIAN_MIRROR=http://snapshot.debian.org/archive/debian/YYYYMMDDT000000Z). If the signature is \
             refused, debian-archive-keyring is too old: upgrade it.",
            self.suite
        );
        process::run("node root", &mut command, &help).map(drop)
    }

    fn trim(&self, root: &Path) -> Result<(), PartsError> {
        for path in REMOVED {
            let path = root.join(path);
            clear(&path)?;
            fs::create_dir_all(&path).map_err(PartsError::io("create", &path))?;
        }
        // Debootstrap copies these from the machine; a node has its own.
        for path in ["etc/resolv.conf", "etc/hostname"] {
            let path = root.join(path);
            fs::write(&path, "").map_err(PartsError::io("write", &path))?;
        }
        Ok(())
    }

    /// Writes down which packages came, and refuses those that are too old.
    fn check(&self, root: &Path) -> Result<(), PartsError> {
        let path = root.join("var/lib/dpkg/status");
        let status = fs::read_to_string(&path).map_err(PartsError::io("read", &path))?;
        let installed = installed(&status);
        if let Some(problem) = problem(&installed) {
            return Err(PartsError::Package { suite: self.suite.clone(), problem });
        }
        let record: String = installed.iter().map(|(name, version)| format!("{name} {version}\n")).collect();
        let path = root.join(RECORD);
        fs::write(&path, record).map_err(PartsError::io("write", &path))
    }
}

impl Part for NodeRoot {
    fn directory(&self) -> String {
        let mut key = Key::new().with("mirror", self.mirror.as_bytes());
        key = key.with("machine", std::env::consts::ARCH.as_bytes());
        for package in PACKAGES {
            key = key.with("package", package.as_bytes());
        }
        for path in REMOVED {
            key = key.with("removed", path.as_bytes());
        }
        format!("root-{}-{}", self.suite, key.finish())
    }

    fn title(&self) -> Option<String> {
        Some(format!("node root (Debian {})", self.suite))
    }

    fn make(&self, partial: &Path, _: &mut dyn FnMut(Step)) -> Result<(), PartsError> {
        let tools = debootstrap::ensure()?;
        clear(partial)?;
        self.bootstrap(&tools, partial)?;
        self.check(partial)?;
        self.trim(partial)
    }
}

/// The packages that a root holds, from what was written down when it was made.
pub fn packages(root: &Path) -> Result<BTreeMap<String, String>, PartsError> {
    let path: PathBuf = root.join(RECORD);
    let record = fs::read_to_string(&path).map_err(PartsError::io("read", &path))?;
    let pairs = record.lines().filter_map(|line| line.split_once(' '));
    Ok(pairs.map(|(name, version)| (name.to_owned(), version.to_owned())).collect())
}

/// Name and version of each installed package of dpkg's status file.
fn installed(status: &str) -> BTreeMap<String, String> {
    let field = |stanza: &str, name: &str| {
        stanza.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": ")).map(str::to_owned)
    };
    status
        .split("\n\n")
        .filter(|stanza| field(stanza, "Status").is_some_and(|status| status.ends_with(" installed")))
        .filter_map(|stanza| Some((field(stanza, "Package")?, field(stanza, "Version")?)))
        .collect()
}

fn problem(installed: &BTreeMap<String, String>) -> Option<String> {
    for package in PACKAGES {
        if !installed.contains_key(*package) {
            return Some(format!(
                "package {package} was not installed; remove the root from the cache and try again"
            ));
        }
    }
    for (package, oldest) in OLDEST {
        let version = installed.get(*package).map_or("", String::as_str);
        if leading_numbers(version) < oldest.to_vec() {
            let oldest: Vec<String> = oldest.iter().map(ToString::to_string).collect();
            return Some(format!(
                "{package} is {version}, but the lab needs {} or newer: take a suite that has it \
                 (PORTOLAN_DEBIAN_SUITE=sid)",
                oldest.join(".")
            ));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(changed: &[(&str, &str)]) -> BTreeMap<String, String> {
        let whole = PACKAGES.iter().map(|package| (*package, "9.0-1")).chain(changed.iter().copied());
        whole.map(|(name, version)| (name.to_owned(), version.to_owned())).collect()
    }

    #[test]
    fn installed_packages_are_read_from_dpkg() {
        let status = "Package: criu\nStatus: install ok installed\nDepends: libc6\nVersion: 4.2.1-1\n\n\
                      Package: gone\nStatus: deinstall ok config-files\nVersion: 1\n\n\
                      Package: busybox-static\nStatus: install ok installed\nVersion: 1:1.38.0-3+b1\n";
        let found: Vec<_> = installed(status).into_iter().collect();
        let pair = |name: &str, version: &str| (name.to_owned(), version.to_owned());
        assert_eq!(found, [pair("busybox-static", "1:1.38.0-3+b1"), pair("criu", "4.2.1-1")]);
    }

    #[test]
    fn an_old_or_absent_package_is_named_with_the_version_that_is_needed() {
        assert_eq!(problem(&all(&[("criu", "4.2.1-1"), ("runc", "1.3.6+ds1-1")])), None);
        let old = problem(&all(&[("criu", "3.17.1-2")])).unwrap();
        assert!(old.contains("criu is 3.17.1-2") && old.contains("4 or newer"), "{old}");
        let mut none = all(&[]);
        none.remove("runc");
        assert!(problem(&none).unwrap().contains("runc was not installed"));
    }

    #[test]
    fn suite_and_mirror_are_in_the_name() {
        let root = |suite: &str, mirror: &str| {
            NodeRoot { suite: suite.to_owned(), mirror: mirror.to_owned() }.directory()
        };
        assert!(root("sid", "a").starts_with("root-sid-"));
        assert_ne!(root("sid", "a"), root("sid", "b"));
        assert_ne!(root("sid", "a"), root("forky", "a"));
    }
}
