//! What a program consists of, as a CycloneDX document.

use super::REPOSITORY;
use super::build::CLibrary;
use super::commit::Commit;
use super::target::Target;
use super::{output, target};
use crate::steps::root;
use anyhow::{Context, Result, ensure};
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;
use std::{env, fs};

/// What is known of a program's parts.
pub(crate) struct Parts {
    /// The packages that cargo compiles for it, as `name version`; build scripts and tests are not part of it.
    compiled: BTreeSet<String>,
    /// `cargo metadata`: licences and edges.
    metadata: Value,
    /// The checksums of `Cargo.lock`, by `name version`.
    checksums: BTreeMap<String, String>,
    /// What is linked to it and is no package of cargo.
    libraries: Vec<Library>,
}

/// Something that is no package of cargo.
struct Library {
    name: &'static str,
    version: String,
    licence: &'static str,
}

impl Parts {
    /// The parts of the program for a target.
    pub(crate) fn of(target: &Target, c_library: CLibrary) -> Result<Self> {
        let tree =
            ["tree", "--quiet", "--locked", "--package", "portolan", "--edges", "normal", "--prefix", "none"];
        let mut tree = cargo(&tree);
        let tree = output(tree.args(["--format", "{p}", "--target", target.triple]))?;
        let mut metadata = cargo(&["metadata", "--format-version", "1", "--locked"]);
        let metadata = output(metadata.args(["--filter-platform", target.triple]))?;
        let lock = fs::read_to_string(root().join("Cargo.lock")).context("cannot read Cargo.lock")?;
        let mut libraries = vec![standard_library()?];
        if target.triple.ends_with("-linux-gnu") && c_library == CLibrary::Inside {
            libraries.push(glibc()?);
        }
        Ok(Self {
            compiled: compiled(&tree),
            metadata: serde_json::from_str(&metadata)?,
            checksums: checksums(&lock),
            libraries,
        })
    }

    /// Fails if a program names a crate (`name-version`) that is no part.
    pub(crate) fn check(&self, named: &BTreeSet<String>) -> Result<()> {
        let parts: BTreeSet<String> = self.compiled.iter().map(|part| part.replacen(' ', "-", 1)).collect();
        let missing: Vec<_> = named.difference(&parts).collect();
        ensure!(missing.is_empty(), "the program holds crates that are not in its SBOM: {missing:?}");
        Ok(())
    }

    /// The document.
    pub(crate) fn render(&self, commit: &Commit) -> Result<String> {
        Ok(serde_json::to_string_pretty(&self.document(commit)?)? + "\n")
    }

    fn document(&self, commit: &Commit) -> Result<Value> {
        let all = self.metadata["packages"].as_array().into_iter().flatten();
        let packages: BTreeMap<&str, &Value> =
            all.filter_map(|package| Some((package["id"].as_str()?, package))).collect();
        let mut ids: BTreeMap<&str, String> = BTreeMap::new();
        for (id, package) in &packages {
            let name = key(package);
            if self.compiled.contains(&name) {
                ids.insert(id, reference(package));
            }
        }
        ensure!(
            ids.len() == self.compiled.len(),
            "cargo tree names {} packages and cargo metadata knows {} of them",
            self.compiled.len(),
            ids.len()
        );
        let is_program = |id: &str| packages[id]["name"] == "portolan";
        let program = ids.keys().find(|id| is_program(id)).context("portolan is no package")?;
        let others = ids.keys().filter(|id| !is_program(id));
        let mut components: Vec<Value> = others.map(|id| self.component(packages[id], "library")).collect();
        components.extend(self.libraries.iter().map(Library::component));
        components.sort_by_key(|component| component["bom-ref"].to_string());
        let mut application = self.component(packages[program], "application");
        application["externalReferences"] = json!([{
            "type": "vcs", "url": REPOSITORY, "comment": format!("commit {}", commit.id),
        }]);
        Ok(json!({
            "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
            "bomFormat": "CycloneDX",
            "specVersion": "1.6",
            "version": 1,
            "metadata": {
                "timestamp": commit.time,
                "component": application,
                "lifecycles": [{"phase": "build"}],
            },
            "components": components,
            "dependencies": self.dependencies(&ids),
        }))
    }

    /// The edges between the parts.
    fn dependencies(&self, ids: &BTreeMap<&str, String>) -> Vec<Value> {
        let linked: Vec<String> = self.libraries.iter().map(Library::reference).collect();
        let nodes = self.metadata["resolve"]["nodes"].as_array().into_iter().flatten();
        let mut edges: BTreeMap<&str, BTreeSet<&str>> =
            linked.iter().map(|id| (&**id, BTreeSet::new())).collect();
        for node in nodes {
            let Some(from) = node["id"].as_str().and_then(|id| ids.get(id)) else { continue };
            let compiled = node["deps"].as_array().into_iter().flatten().filter(|edge| {
                edge["dep_kinds"].as_array().into_iter().flatten().any(|kind| kind["kind"].is_null())
            });
            let to = compiled.filter_map(|edge| edge["pkg"].as_str()).filter_map(|id| ids.get(id));
            let mut to: BTreeSet<&str> = to.map(String::as_str).collect();
            if from.starts_with("portolan@") {
                to.extend(linked.iter().map(String::as_str));
            }
            edges.insert(from, to);
        }
        edges.into_iter().map(|(from, to)| json!({"ref": from, "dependsOn": to})).collect()
    }

    fn component(&self, package: &Value, kind: &str) -> Value {
        let (name, version) = (text(package, "name"), text(package, "version"));
        let mut component = Map::new();
        let mut set = |key: &str, value: Value| component.insert(key.to_owned(), value);
        set("type", json!(kind));
        set("bom-ref", json!(reference(package)));
        set("name", json!(name));
        set("version", json!(version));
        if let Some(licence) = package["license"].as_str() {
            // An old way to write the same.
            let expression = licence.replace(" / ", "/").replace('/', " OR ");
            set("licenses", json!([{"expression": expression}]));
        }
        // Packages of this workspace are in no registry.
        if package["source"].is_string() {
            set("purl", json!(format!("pkg:cargo/{name}@{}", version.replace('+', "%2B"))));
        }
        if let Some(checksum) = self.checksums.get(&key(package)) {
            set("hashes", json!([{"alg": "SHA-256", "content": checksum}]));
        }
        Value::Object(component)
    }
}

impl Library {
    fn reference(&self) -> String {
        format!("{}@{}", self.name, self.version)
    }

    fn component(&self) -> Value {
        json!({
            "type": "library",
            "bom-ref": self.reference(),
            "name": self.name,
            "version": self.version,
            "licenses": [{"expression": self.licence}],
        })
    }
}

fn cargo(arguments: &[&str]) -> Command {
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(arguments).current_dir(root());
    cargo
}

/// Rust's standard library, which is in every program.
fn standard_library() -> Result<Library> {
    let version = output(target::rustc().arg("-vV"))?;
    let release = version.lines().find_map(|line| line.strip_prefix("release: "));
    let version = release.context("rustc -vV names no release")?.to_owned();
    Ok(Library { name: "rust-std", version, licence: "MIT OR Apache-2.0" })
}

/// The C library of this machine.
fn glibc() -> Result<Library> {
    let named = output(Command::new("getconf").arg("GNU_LIBC_VERSION"))?;
    let version = named.trim().strip_prefix("glibc ").context("getconf GNU_LIBC_VERSION names no glibc")?;
    Ok(Library { name: "glibc", version: version.to_owned(), licence: "LGPL-2.1-or-later" })
}

fn key(package: &Value) -> String {
    format!("{} {}", text(package, "name"), text(package, "version"))
}

fn reference(package: &Value) -> String {
    format!("{}@{}", text(package, "name"), text(package, "version"))
}

fn text<'a>(package: &'a Value, field: &str) -> &'a str {
    package[field].as_str().unwrap_or_default()
}

/// The packages in the output of `cargo tree`, as `name version`.
fn compiled(tree: &str) -> BTreeSet<String> {
    let packages = tree.lines().filter_map(|line| {
        let mut words = line.split_whitespace();
        Some(format!("{} {}", words.next()?, words.next()?.strip_prefix('v')?))
    });
    packages.collect()
}

/// The checksums in a `Cargo.lock`, by `name version`.
fn checksums(lock: &str) -> BTreeMap<String, String> {
    let packages = lock.split("[[package]]").skip(1).filter_map(|package| {
        let field = |name: &str| {
            let lines = package.lines().filter_map(|line| line.split_once(" = "));
            lines.clone().find(|(key, _)| *key == name).map(|(_, value)| value.trim_matches('"'))
        };
        Some((format!("{} {}", field("name")?, field("version")?), field("checksum")?.to_owned()))
    });
    packages.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn commit() -> Commit {
        Commit { id: "4be7d12".to_owned(), seconds: 0, time: "1970-01-01T00:00:00Z".to_owned() }
    }

    fn small() -> Parts {
        let edge = |package: &str, kind: Value| json!({"pkg": package, "dep_kinds": [{"kind": kind}]});
        let registry = "registry+https://github.com/rust-lang/crates.io-index";
        let metadata = json!({
            "packages": [
                {"id": "p", "name": "portolan", "version": "0.1.0", "license": "Apache-2.0", "source": null},
                {"id": "a", "name": "a", "version": "1.0.0+x", "license": "MIT/Apache-2.0", "source": registry},
                {"id": "b", "name": "b", "version": "2.0.0", "license": "ISC", "source": registry},
                {"id": "t", "name": "only-in-tests", "version": "1.0.0", "license": "MIT", "source": registry},
            ],
            "resolve": {"nodes": [
                {"id": "p", "deps": [edge("a", Value::Null), edge("t", json!("dev"))]},
                {"id": "a", "deps": [edge("b", Value::Null)]},
                {"id": "b", "deps": []},
                {"id": "t", "deps": []},
            ]},
        });
        Parts {
            compiled: compiled(
                "portolan v0.1.0 (/here)\na v1.0.0+x\nb v2.0.0 (proc-macro)\nb v2.0.0 (*)\n\n",
            ),
            metadata,
            checksums: checksums("[[package]]\nname = \"a\"\nversion = \"1.0.0+x\"\nchecksum = \"abc\"\n"),
            libraries: vec![Library { name: "rust-std", version: "1.95.0".to_owned(), licence: "MIT" }],
        }
    }

    #[test]
    fn parts_come_with_licence_checksum_and_what_they_depend_on() {
        let document = small().document(&commit()).unwrap();
        let a = json!({
            "type": "library", "bom-ref": "a@1.0.0+x", "name": "a", "version": "1.0.0+x",
            "purl": "pkg:cargo/a@1.0.0%2Bx", "licenses": [{"expression": "MIT OR Apache-2.0"}],
            "hashes": [{"alg": "SHA-256", "content": "abc"}],
        });
        assert_eq!(document["components"][0], a);
        assert_eq!(document["metadata"]["component"]["bom-ref"], "portolan@0.1.0");
        assert_eq!(document["metadata"]["component"].get("purl"), None);
        let edges = json!([
            {"ref": "a@1.0.0+x", "dependsOn": ["b@2.0.0"]},
            {"ref": "b@2.0.0", "dependsOn": []},
            {"ref": "portolan@0.1.0", "dependsOn": ["a@1.0.0+x", "rust-std@1.95.0"]},
            {"ref": "rust-std@1.95.0", "dependsOn": []},
        ]);
        assert_eq!(document["dependencies"], edges);
    }

    #[test]
    fn crates_that_a_program_names_must_be_parts() {
        small().check(&["a-1.0.0+x".to_owned(), "b-2.0.0".to_owned()].into()).unwrap();
        let error = small().check(&["c-1.0.0".to_owned()].into()).unwrap_err().to_string();
        assert!(error.contains("c-1.0.0"), "{error}");
    }

    #[test]
    fn packages_that_metadata_does_not_know_are_an_error() {
        let mut parts = small();
        parts.compiled.insert("c 1.0.0".to_owned());
        assert!(parts.document(&commit()).unwrap_err().to_string().contains("knows 3 of them"));
    }

    /// The document of this workspace, held against its manifests and what CycloneDX 1.6 requires.
    #[test]
    fn every_dependency_of_the_binary_is_in_its_document() {
        let parts = Parts::of(Target::host().unwrap(), CLibrary::OfMachine).unwrap();
        let document = parts.document(&commit()).unwrap();
        assert_eq!((&document["bomFormat"], &document["specVersion"]), (&json!("CycloneDX"), &json!("1.6")));
        let components = document["components"].as_array().unwrap();
        let known: BTreeSet<&str> = components.iter().map(|each| each["bom-ref"].as_str().unwrap()).collect();
        assert_eq!(known.len(), components.len(), "a reference is given once");
        for component in components {
            assert!(component["name"].is_string() && component["version"].is_string(), "{component}");
            assert!(component["licenses"][0]["expression"].is_string(), "{component}");
            let of_a_registry = component["purl"].is_string();
            assert_eq!(of_a_registry, component["hashes"][0]["content"].is_string(), "{component}");
        }
        let names: BTreeSet<&str> = components.iter().map(|each| each["name"].as_str().unwrap()).collect();
        // The crates of this workspace, through which everything else comes, and what each of them asks for everywhere.
        let packages = parts.metadata["packages"].as_array().unwrap();
        let ours = packages.iter().filter(|package| {
            package["source"].is_null()
                && (package["name"] == "portolan" || names.contains(text(package, "name")))
        });
        let mut asked = 0;
        for package in ours {
            for dependency in package["dependencies"].as_array().unwrap() {
                let everywhere = dependency["kind"].is_null() && dependency["target"].is_null();
                if everywhere && dependency["optional"] == false {
                    asked += 1;
                    assert!(
                        names.contains(text(dependency, "name")),
                        "{} of {}",
                        dependency["name"],
                        package["name"]
                    );
                }
            }
        }
        assert!(asked > 100, "{asked}");
        assert!(
            names.contains("rust-std") && !names.contains("glibc"),
            "the C library is that of the machine"
        );
        assert!(!names.contains("proptest") && !names.contains("portolan-lab"), "tests are no part of it");
        let edges = document["dependencies"].as_array().unwrap();
        assert_eq!(edges.len(), components.len() + 1);
        for edge in edges {
            let mut to = edge["dependsOn"].as_array().unwrap().iter();
            assert!(to.all(|to| known.contains(to.as_str().unwrap())), "{edge}");
        }
    }
}
