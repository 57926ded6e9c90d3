//! Pinning another version of Kubernetes.
//!
//! Kubernetes is published as one module, `k8s.io/kubernetes`, whose own `go.mod` requires some thirty further modules at
//! v0.0.0 and takes them from a directory beside it (`staging`). Those are published too, as 0.MINOR.PATCH, and a module
//! that replaces each of them so can build the programs.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::version::KubernetesVersion;
use super::{PartsError, cache, go_mod, go_toolchain, kubernetes, process};

/// The version at which Kubernetes requires what it keeps in its own tree.
const STAGING: &str = "v0.0.0";

/// Writes the build module of this version, with all versions and sums, and gives its directory. A pin that is there is
/// written anew.
pub fn pin(version: &str) -> Result<PathBuf, PartsError> {
    let version: KubernetesVersion = version.parse()?;
    let upstream = upstream_go_mod(version)?;
    if let Some(missing) = go_toolchain::missing(go_mod::go(&upstream).unwrap_or_default()) {
        return Err(PartsError::Missing { missing: vec![missing] });
    }

    let directory = kubernetes::directory();
    let fresh = tempfile::Builder::new().prefix(".pin-").tempdir_in(&directory);
    let fresh = fresh.map_err(PartsError::io("create a directory in", &directory))?;
    write(&fresh.path().join("go.mod"), &go_mod_text(version, &upstream))?;
    write(&fresh.path().join("tools.go"), &tools_text())?;
    process::run(
        "pin",
        Command::new("go").args(["mod", "tidy"]).current_dir(fresh.path()).env("GOWORK", "off"),
        "",
    )?;

    let target = directory.join(version.to_string());
    cache::clear(&target)?;
    fs::create_dir(&target).map_err(PartsError::io("create", &target))?;
    for name in ["go.mod", "go.sum", "tools.go"] {
        let (from, to) = (fresh.path().join(name), target.join(name));
        fs::rename(&from, &to).map_err(PartsError::io("rename", &from))?;
    }
    Ok(target)
}

/// The `go.mod` of Kubernetes itself, fetched through Go.
fn upstream_go_mod(version: KubernetesVersion) -> Result<String, PartsError> {
    // Any Go will do to ask for a file.
    if let Some(missing) = go_toolchain::missing("1.21") {
        return Err(PartsError::Missing { missing: vec![missing] });
    }
    let elsewhere =
        tempfile::tempdir().map_err(PartsError::io("create a directory in", &std::env::temp_dir()))?;
    let module = format!("k8s.io/kubernetes@v{version}");
    let mut command = Command::new("go");
    command.args(["mod", "download", "-json", &module]).current_dir(elsewhere.path()).env("GOWORK", "off");
    let help = format!("Is {version} published? See https://kubernetes.io/releases");
    let answer = process::run("pin", &mut command, &help)?;
    let answer: serde_json::Value = serde_json::from_str(&answer).unwrap_or_default();
    let path = PathBuf::from(answer["GoMod"].as_str().unwrap_or_default());
    fs::read_to_string(&path).map_err(PartsError::io("read", &path))
}

fn go_mod_text(version: KubernetesVersion, upstream: &str) -> String {
    let mut text = "module portolan.dev/lab/kubernetes\n".to_owned();
    if let Some(go) = go_mod::go(upstream) {
        text.push_str(&format!("\ngo {go}\n"));
    }
    if let Some(default) = go_mod::godebug(upstream, "default") {
        text.push_str(&format!("\ngodebug default={default}\n"));
    }
    text.push_str(&format!("\nrequire k8s.io/kubernetes v{version}\n\nreplace (\n"));
    let KubernetesVersion { minor, patch, .. } = version;
    for module in go_mod::required_at(upstream, STAGING) {
        text.push_str(&format!("\t{module} => {module} v0.{minor}.{patch}\n"));
    }
    text.push_str(")\n");
    text
}

/// Names the programs as imports, so that `go mod tidy` keeps what they need.
fn tools_text() -> String {
    let mut packages: Vec<&str> = kubernetes::PROGRAMS.iter().map(|(_, package)| *package).collect();
    packages.sort_unstable();
    let imports: String = packages.iter().map(|package| format!("\t_ \"{package}\"\n")).collect();
    format!("//go:build tools\n\npackage tools\n\nimport (\n{imports})\n")
}

fn write(path: &Path, text: &str) -> Result<(), PartsError> {
    fs::write(path, text).map_err(PartsError::io("write", path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn staging_modules_are_replaced_by_their_published_version() {
        let upstream = "module k8s.io/kubernetes\ngo 1.25.0\ngodebug default=go1.25\nrequire (\n\
                        k8s.io/api v0.0.0\nk8s.io/kubelet v0.0.0 // indirect\nk8s.io/klog/v2 v2.1.0\n)\n";
        assert_eq!(
            go_mod_text("1.35.4".parse().unwrap(), upstream),
            "module portolan.dev/lab/kubernetes\n\ngo 1.25.0\n\ngodebug default=go1.25\n\n\
             require k8s.io/kubernetes v1.35.4\n\nreplace (\n\tk8s.io/api => k8s.io/api v0.35.4\n\
             \tk8s.io/kubelet => k8s.io/kubelet v0.35.4\n)\n"
        );
    }

    #[test]
    fn tools_of_every_pin_are_those_that_would_be_written_today() {
        for version in kubernetes::pinned().unwrap() {
            let path = kubernetes::directory().join(version.to_string()).join("tools.go");
            assert_eq!(fs::read_to_string(&path).unwrap(), tools_text(), "{}", path.display());
        }
    }
}
