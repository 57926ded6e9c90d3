//! What Cluster API has its API server know, taken out of its module: the definitions of its kinds, in the version that its
//! controllers store, without the descriptions, which are nine tenths of them; and its admission webhooks.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};

use super::cache::{Key, Part};
use super::go_module::GoModule;
use super::{PartsError, Step, process};

/// The name of the file of definitions in the part.
pub(super) const FILE: &str = "definitions.json";

/// The name of the file of webhooks in the part: two configurations, whose webhooks name a Service that the lab does not have.
pub(super) const WEBHOOKS: &str = "webhooks.json";

/// Where the module has the definitions.
const FOLDER: &str = "core/config/crd/bases";

/// Where the module has the webhooks.
const WEBHOOK_MANIFESTS: &str = "core/config/webhook/manifests.yaml";

/// The only version that is kept: nothing converts between versions where there is no webhook.
const VERSION: &str = "v1beta2";

/// The kinds of this group are for providers that hand out addresses.
const NOT_NEEDED: &str = "ipam.cluster.x-k8s.io_";

/// The definitions of one module.
#[derive(Debug, Clone)]
pub(super) struct Definitions {
    module: &'static str,
    version: String,
    directory: PathBuf,
    sums: Vec<u8>,
}

impl Definitions {
    /// Those of `module`, at the version that this build module requires.
    pub(super) fn of(build: &GoModule, module: &'static str) -> Result<Self, PartsError> {
        let directory = build.source().to_path_buf();
        let path = directory.join("go.sum");
        let sums = fs::read(&path).map_err(PartsError::io("read", &path))?;
        Ok(Self { module, version: build.version().to_owned(), directory, sums })
    }

    /// Where Go keeps the files of the module.
    fn files(&self) -> Result<PathBuf, PartsError> {
        let mut command = Command::new("go");
        command.args(["mod", "download", "-json", self.module]).current_dir(&self.directory);
        command.envs([("GOFLAGS", ""), ("GOWORK", "off")]);
        let help = "Modules come from the Go module proxy: without a network they must already be in Go's module cache.";
        let answer = process::run("definitions of Cluster API", &mut command, help)?;
        let answer: Value = serde_json::from_str(&answer).unwrap_or_default();
        Ok(PathBuf::from(answer["Dir"].as_str().unwrap_or_default()))
    }
}

impl Part for Definitions {
    fn directory(&self) -> String {
        let key = Key::new().with("sums", &self.sums).with("recipe", include_bytes!("definitions.rs"));
        format!("cluster-api-definitions-{}-{}", self.version, key.finish())
    }

    fn title(&self) -> Option<String> {
        Some(format!("definitions of Cluster API {}", self.version))
    }

    fn make(&self, partial: &Path, _: &mut dyn FnMut(Step)) -> Result<(), PartsError> {
        let module = self.files()?;
        let folder = module.join(FOLDER);
        let failed = || PartsError::io("read", &folder);
        let mut files = Vec::new();
        for entry in fs::read_dir(&folder).map_err(failed())? {
            files.push(entry.map_err(failed())?.path());
        }
        files.sort();
        let mut items = Vec::new();
        for path in files {
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            if name.ends_with(".yaml") && !name.starts_with(NOT_NEEDED) {
                let text = fs::read_to_string(&path).map_err(PartsError::io("read", &path))?;
                let problem = |problem: String| PartsError::GoModule { path: path.clone(), problem };
                let definition = serde_saphyr::from_str(&text).map_err(|error| problem(error.to_string()))?;
                let reduced =
                    reduce(definition).ok_or_else(|| problem(format!("it has no version {VERSION}")))?;
                items.push(reduced);
            }
        }
        let list = json!({"apiVersion": "v1", "kind": "List", "items": items});
        let to = partial.join(FILE);
        fs::write(&to, list.to_string()).map_err(PartsError::io("write", &to))?;
        let path = module.join(WEBHOOK_MANIFESTS);
        let text = fs::read_to_string(&path).map_err(PartsError::io("read", &path))?;
        let manifests: Vec<Value> = serde_saphyr::from_multiple(&text)
            .map_err(|error| PartsError::GoModule { path: path.clone(), problem: error.to_string() })?;
        let to = partial.join(WEBHOOKS);
        let list = json!({"apiVersion": "v1", "kind": "List", "items": manifests});
        fs::write(&to, list.to_string()).map_err(PartsError::io("write", &to))
    }
}

/// The definition with the one version alone and without descriptions.
fn reduce(mut definition: Value) -> Option<Value> {
    let versions = definition.pointer_mut("/spec/versions")?.as_array_mut()?;
    versions.retain(|version| version["name"] == VERSION);
    let version = versions.first_mut()?;
    version["storage"] = json!(true);
    remove_descriptions(version);
    Some(definition)
}

/// A property may be called so too; then it is an object and stays.
fn remove_descriptions(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.retain(|name, value| name != "description" || !value.is_string());
            fields.values_mut().for_each(remove_descriptions);
        }
        Value::Array(all) => all.iter_mut().for_each(remove_descriptions),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_version_stays_and_properties_called_description_too() {
        let schema = json!({"description": "words", "properties": {
            "description": {"type": "string", "description": "words"},
        }});
        let version = |name: &str, storage: bool| json!({"name": name, "storage": storage, "schema": schema});
        let definition = json!({"spec": {"versions": [version("v1beta1", true), version("v1beta2", false)]}});
        let expected = json!({"properties": {"description": {"type": "string"}}});
        assert_eq!(
            reduce(definition).unwrap(),
            json!({"spec": {"versions": [{"name": "v1beta2", "storage": true, "schema": expected}]}})
        );
        assert_eq!(reduce(json!({"spec": {"versions": [version("v1alpha1", true)]}})), None);
    }
}
