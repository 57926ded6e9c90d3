//! The versions of Kubernetes that are pinned: one directory with `go.mod`, `go.sum` and `tools.go` each.

use std::fs;
use std::path::PathBuf;

use super::PartsError;
use super::go_module::{self, GoModule, Recipe};
use super::version::KubernetesVersion;

/// The programs, those first that a user waits for least: each compiles what the later ones share with it.
pub(super) const PROGRAMS: &[(&str, &str)] = &[
    ("kubectl", "k8s.io/kubernetes/cmd/kubectl"),
    ("kube-apiserver", "k8s.io/kubernetes/cmd/kube-apiserver"),
    ("kube-controller-manager", "k8s.io/kubernetes/cmd/kube-controller-manager"),
    ("kubelet", "k8s.io/kubernetes/cmd/kubelet"),
    ("kube-scheduler", "k8s.io/kubernetes/cmd/kube-scheduler"),
    ("kube-proxy", "k8s.io/kubernetes/cmd/kube-proxy"),
];

/// All pinned versions, oldest first.
pub fn pinned() -> Result<Vec<KubernetesVersion>, PartsError> {
    let directory = directory();
    let failed = || PartsError::io("read", &directory);
    let mut versions = Vec::new();
    for entry in fs::read_dir(&directory).map_err(failed())? {
        let entry = entry.map_err(failed())?;
        let version = entry.file_name().to_str().and_then(|name| name.parse().ok());
        if let Some(version) = version.filter(|_| entry.path().join("go.sum").is_file()) {
            versions.push(version);
        }
    }
    versions.sort();
    Ok(versions)
}

/// The module of a pinned version.
pub(super) fn module(version: KubernetesVersion) -> Result<GoModule, PartsError> {
    let pinned = pinned()?;
    if !pinned.contains(&version) {
        return Err(PartsError::NotPinned {
            version: version.to_string(),
            pinned: pinned.iter().map(ToString::to_string).collect(),
        });
    }
    let module = GoModule::read(Recipe {
        name: "kubernetes",
        requires: "k8s.io/kubernetes",
        directory: directory().join(version.to_string()),
        tags: &[],
        programs: PROGRAMS,
    })?;
    Ok(module
        .set("k8s.io/component-base/version.gitVersion", format!("v{version}"))
        .set("k8s.io/component-base/version.gitMajor", version.major.to_string())
        .set("k8s.io/component-base/version.gitMinor", version.minor.to_string()))
}

pub(super) fn directory() -> PathBuf {
    go_module::directory().join("kubernetes")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parts::DEFAULT_KUBERNETES;

    #[test]
    fn the_default_is_pinned_and_requires_itself() {
        let version = DEFAULT_KUBERNETES.parse().unwrap();
        assert!(pinned().unwrap().contains(&version));
        assert_eq!(module(version).unwrap().version(), DEFAULT_KUBERNETES);
    }

    #[test]
    fn every_pin_requires_the_version_of_its_directory() {
        for version in pinned().unwrap() {
            assert_eq!(module(version).unwrap().version(), version.to_string());
        }
    }

    #[test]
    fn an_unpinned_version_names_those_that_are_and_the_command() {
        let error = module("1.2.3".parse().unwrap()).unwrap_err().to_string();
        assert!(error.contains("1.2.3 is not pinned"), "{error}");
        assert!(error.contains(DEFAULT_KUBERNETES), "{error}");
        assert!(error.contains("cargo xtask lab pin 1.2.3"), "{error}");
    }
}
