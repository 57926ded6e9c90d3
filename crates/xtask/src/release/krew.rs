//! The manifest by which Krew installs the kubectl plugin.

use super::REPOSITORY;
use super::target::Target;
use anyhow::Result;
use serde_json::{Value, json};

/// The name of the plugin's program.
pub(crate) const PLUGIN: &str = "kubectl-portolan";

/// An archive of the plugin.
pub(crate) struct PluginArchive {
    pub(crate) target: &'static Target,
    /// The name of the file.
    pub(crate) file: String,
    pub(crate) sha256: String,
}

/// The manifest, as YAML.
pub(crate) fn render(version: &str, archives: &[PluginArchive]) -> Result<String> {
    Ok(serde_saphyr::to_string(&manifest(version, archives))?)
}

fn manifest(version: &str, archives: &[PluginArchive]) -> Value {
    let platforms = archives.iter().map(|archive| {
        let program = archive.target.program(PLUGIN);
        json!({
            "selector": {"matchLabels": {"os": archive.target.os, "arch": archive.target.arch}},
            "uri": format!("{REPOSITORY}/releases/download/v{version}/{}", archive.file),
            "sha256": archive.sha256,
            "bin": program,
            "files": [{"from": program, "to": "."}, {"from": "LICENSE", "to": "."}],
        })
    });
    json!({
        "apiVersion": "krew.googlecontainertools.github.com/v1alpha2",
        "kind": "Plugin",
        "metadata": {"name": "portolan"},
        "spec": {
            "version": format!("v{version}"),
            "homepage": REPOSITORY,
            "shortDescription": "Run many Kubernetes clusters as one.",
            "description": "Portolan peers clusters, places workloads over them by policy and keeps them as placed.\n\
                It runs on stock Kubernetes. See what it does without any cluster:\n\n    kubectl portolan demo\n",
            "caveats": "A hub needs Portolan's controller:\n\n    kubectl portolan install\n",
            "platforms": platforms.collect::<Vec<_>>(),
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn archives() -> Vec<PluginArchive> {
        ["x86_64-unknown-linux-gnu", "x86_64-pc-windows-msvc"]
            .into_iter()
            .map(|triple| {
                let target = Target::named(triple).unwrap();
                let file = format!("kubectl-portolan-{}.tar.gz", target.platform());
                PluginArchive { target, file, sha256: "ab".repeat(32) }
            })
            .collect()
    }

    /// What Krew's own validation asks for, in `internal/index/validation`.
    #[test]
    fn manifest_has_what_krew_requires() {
        let text = render("0.1.0", &archives()).unwrap();
        let manifest: Value = serde_saphyr::from_str(&text).unwrap();
        assert_eq!(manifest["apiVersion"], "krew.googlecontainertools.github.com/v1alpha2");
        assert_eq!(manifest["kind"], "Plugin");
        assert_eq!(manifest["metadata"]["name"], "portolan");
        let spec = &manifest["spec"];
        assert_eq!(spec["version"], "v0.1.0");
        let short = spec["shortDescription"].as_str().unwrap();
        assert!(!short.is_empty() && !short.contains(['\r', '\n']));
        let platforms = spec["platforms"].as_array().unwrap();
        assert_eq!(platforms.len(), 2);
        for (platform, (os, bin)) in
            platforms.iter().zip([("linux", "kubectl-portolan"), ("windows", "kubectl-portolan.exe")])
        {
            let labels = &platform["selector"]["matchLabels"];
            assert_eq!((&labels["os"], &labels["arch"]), (&json!(os), &json!("amd64")));
            let uri = platform["uri"].as_str().unwrap();
            assert!(
                uri.starts_with("https://")
                    && uri.ends_with(&format!("v0.1.0/kubectl-portolan-{os}-amd64.tar.gz"))
            );
            let sha256 = platform["sha256"].as_str().unwrap();
            assert!(sha256.len() == 64 && sha256.chars().all(|c| c.is_ascii_hexdigit()));
            assert_eq!(platform["bin"], bin);
            let files = platform["files"].as_array().unwrap();
            assert!(files.iter().all(|file| file["from"].is_string() && file["to"] == "."));
            assert!(files.iter().any(|file| file["from"] == bin), "the program is among the files");
        }
    }
}
