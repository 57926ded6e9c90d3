//! Which programs a cluster needs, and the modules of this crate from which they are built.

use super::go_module::{GoModule, Recipe, directory};
use super::version::KubernetesVersion;
use super::{PartsError, kubernetes};

/// All modules of a cluster with this version of Kubernetes.
#[derive(Debug, Clone)]
pub(super) struct Modules {
    pub(super) kubernetes: GoModule,
    pub(super) containerd: GoModule,
    pub(super) coredns: GoModule,
    pub(super) kwok: GoModule,
}

impl Modules {
    pub(super) fn read(version: KubernetesVersion) -> Result<Self, PartsError> {
        Ok(Self {
            kubernetes: kubernetes::module(version)?,
            containerd: containerd()?,
            coredns: coredns()?,
            kwok: kwok()?,
        })
    }

    pub(super) fn all(&self) -> [&GoModule; 4] {
        [&self.kubernetes, &self.containerd, &self.coredns, &self.kwok]
    }
}

/// 2.3: before it every restore of a checkpoint pulls the base image from a registry, after it the runtime interface has no
/// restore. Left out are snapshotters for file systems that no node has, and tracing.
fn containerd() -> Result<GoModule, PartsError> {
    let module = GoModule::read(Recipe {
        name: "containerd",
        requires: "github.com/containerd/containerd/v2",
        directory: directory().join("containerd"),
        tags: &["no_btrfs", "no_zfs", "no_devmapper", "no_tracing"],
        programs: &[
            ("containerd", "github.com/containerd/containerd/v2/cmd/containerd"),
            ("containerd-shim-runc-v2", "github.com/containerd/containerd/v2/cmd/containerd-shim-runc-v2"),
            ("ctr", "github.com/containerd/containerd/v2/cmd/ctr"),
        ],
    })?;
    let version = format!("v{}", module.version());
    Ok(module.set("github.com/containerd/containerd/v2/version.Version", version))
}

fn coredns() -> Result<GoModule, PartsError> {
    GoModule::read(Recipe {
        name: "coredns",
        requires: "github.com/coredns/coredns",
        directory: directory().join("coredns"),
        tags: &[],
        programs: &[("coredns", ".")],
    })
}

fn kwok() -> Result<GoModule, PartsError> {
    GoModule::read(Recipe {
        name: "kwok",
        requires: "sigs.k8s.io/kwok",
        directory: directory().join("kwok"),
        tags: &[],
        programs: &[("kwok", "sigs.k8s.io/kwok/cmd/kwok")],
    })
}

/// The core controllers of Cluster API.
pub(super) fn cluster_api() -> Result<GoModule, PartsError> {
    GoModule::read(Recipe {
        name: "cluster-api",
        requires: CLUSTER_API,
        directory: directory().join("cluster-api"),
        tags: &[],
        programs: &[("cluster-api", "sigs.k8s.io/cluster-api/core")],
    })
}

/// The module of Cluster API, which also has its definitions.
pub(super) const CLUSTER_API: &str = "sigs.k8s.io/cluster-api";

pub(super) fn metrics_server() -> Result<GoModule, PartsError> {
    GoModule::read(Recipe {
        name: "metrics-server",
        requires: "sigs.k8s.io/metrics-server",
        directory: directory().join("metrics-server"),
        tags: &[],
        programs: &[("metrics-server", "sigs.k8s.io/metrics-server/cmd/metrics-server")],
    })
}

/// The adapter of custom metrics that the library for adapters has for tests.
pub(super) fn custom_metrics() -> Result<GoModule, PartsError> {
    GoModule::read(Recipe {
        name: "custom-metrics",
        requires: "sigs.k8s.io/custom-metrics-apiserver",
        directory: directory().join("custom-metrics"),
        tags: &[],
        programs: &[("custom-metrics", "sigs.k8s.io/custom-metrics-apiserver/test-adapter")],
    })
}

pub(super) fn helm() -> Result<GoModule, PartsError> {
    GoModule::read(Recipe {
        name: "helm",
        requires: "helm.sh/helm/v4",
        directory: directory().join("helm"),
        tags: &[],
        programs: &[("helm", "helm.sh/helm/v4/cmd/helm")],
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::fs;

    use serde_json::Value;

    use super::*;

    #[test]
    fn modules_are_what_their_go_mod_requires() {
        let modules = Modules::read(crate::parts::DEFAULT_KUBERNETES.parse().unwrap()).unwrap();
        let versions = modules.all().map(|module| module.version().to_owned());
        assert_eq!(versions, [crate::parts::DEFAULT_KUBERNETES, "2.3.7", "1.15.0", "0.8.0"]);
    }

    #[test]
    fn parts_on_demand_are_pinned() {
        assert_eq!(cluster_api().unwrap().version(), "1.14.2");
        assert_eq!(metrics_server().unwrap().version(), "0.9.0");
        assert_eq!(custom_metrics().unwrap().version(), "1.36.0");
        assert_eq!(helm().unwrap().version(), "4.3.1");
    }

    #[test]
    fn kwok_has_stages_for_nodes_and_pods() {
        let mut names = BTreeSet::new();
        for entry in fs::read_dir(directory().join("kwok/stages")).unwrap() {
            let text = fs::read_to_string(entry.unwrap().path()).unwrap();
            for stage in serde_saphyr::from_multiple::<Value>(&text).unwrap() {
                assert_eq!(
                    (&stage["apiVersion"], &stage["kind"]),
                    (&"kwok.x-k8s.io/v1alpha1".into(), &"Stage".into())
                );
                let name = stage["metadata"]["name"].as_str().unwrap().to_owned();
                let kind = stage["spec"]["resourceRef"]["kind"].as_str().unwrap().to_lowercase();
                assert!(name.starts_with(&kind), "{name} is for {kind}");
                assert!(names.insert(name.clone()), "{name} is there twice");
            }
        }
        assert_eq!(
            names.into_iter().collect::<Vec<_>>(),
            ["node-ready", "pod-complete", "pod-delete", "pod-ready"]
        );
    }
}
