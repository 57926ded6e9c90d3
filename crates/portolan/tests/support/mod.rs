//! Sandbox clusters on loopback and the controller, as processes of the binary itself.

#![allow(clippy::unwrap_used, dead_code)]

use k8s_openapi::api::core::v1::ServiceAccount;
use kube::api::{Api, DynamicObject, Patch, PatchParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::core::GroupVersionKind;
use kube::discovery::ApiResource;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

/// How long anything may take on a busy machine.
const LONG: Duration = Duration::from_secs(120);

/// Clusters c1 (the hub), c2 and so on, with the controller at work on the hub.
pub(crate) struct World {
    folder: PathBuf,
    file: PathBuf,
    processes: Vec<Child>,
}

impl World {
    /// Starts them; each test has a name of its own.
    pub(crate) fn start(name: &str, clusters: u16) -> Self {
        let folder = std::env::temp_dir().join(format!("portolan-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let file = folder.join("kubeconfig");
        let mut world = Self { folder, file, processes: Vec::new() };
        let (count, file) = (clusters.to_string(), world.file.to_str().unwrap().to_owned());
        let mut sandbox = Command::new(env!("CARGO_BIN_EXE_portolan"))
            .args([
                "sandbox",
                "up",
                "--clusters",
                &count,
                "--nodes",
                "2",
                "--cpu",
                "2",
                "--kubeconfig",
                &file,
            ])
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(sandbox.stdout.take().unwrap()).read_line(&mut line).unwrap();
        world.processes.push(sandbox);
        assert!(line.contains("KUBECONFIG"), "{line}");
        world
    }

    /// Runs the controller for the hub.
    pub(crate) fn control(&mut self) {
        let controller = Command::new(env!("CARGO_BIN_EXE_portolan"))
            .args(["controller", "--context", "c1", "--kubeconfig"])
            .arg(&self.file)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        self.processes.push(controller);
    }

    /// Kills the controller, which was started last.
    pub(crate) fn kill_controller(&mut self) {
        let mut controller = self.processes.pop().unwrap();
        controller.kill().unwrap();
        controller.wait().unwrap();
    }

    /// The kubeconfig of all clusters.
    pub(crate) fn file(&self) -> &str {
        self.file.to_str().unwrap()
    }

    /// Runs a command on the hub.
    pub(crate) fn portolan(&self, arguments: &[&str]) -> Output {
        Command::new(env!("CARGO_BIN_EXE_portolan"))
            .args(arguments)
            .args(["--context", "c1", "--kubeconfig"])
            .arg(&self.file)
            .stdin(Stdio::null())
            .output()
            .unwrap()
    }

    /// Runs a command that must succeed; what it prints.
    pub(crate) fn succeeds(&self, arguments: &[&str]) -> String {
        let output = self.portolan(arguments);
        assert!(output.status.success(), "{arguments:?}: {}{}", text(&output.stdout), text(&output.stderr));
        text(&output.stdout)
    }

    /// Runs a command again and again until its output has all of the words, whatever its exit code.
    pub(crate) fn until(&self, arguments: &[&str], words: &[&str]) -> Output {
        let start = Instant::now();
        loop {
            let output = self.portolan(arguments);
            let told = text(&output.stdout);
            if words.iter().all(|word| told.contains(word)) {
                return output;
            }
            assert!(
                start.elapsed() < LONG,
                "{arguments:?} never told {words:?}: {told}{}",
                text(&output.stderr)
            );
            std::thread::sleep(Duration::from_millis(200));
        }
    }

    /// Writes the status of an object of the hub, as a controller does.
    pub(crate) fn set_status(&self, plural: &str, namespace: Option<&str>, name: &str, status: &Value) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let kind = match plural {
                "foreignclusters" => "ForeignCluster",
                "multiclusterhorizontalpodautoscalers" => "MultiClusterHorizontalPodAutoscaler",
                "cloudprovisioners" => "CloudProvisioner",
                "multiclusterreschedulers" => "MultiClusterRescheduler",
                _ => "MultiClusterDeployment",
            };
            let gvk = GroupVersionKind::gvk("portolan.dev", "v1alpha1", kind);
            let resource = ApiResource::from_gvk_with_plural(&gvk, plural);
            let client = self.client("c1").await;
            let api: Api<DynamicObject> = match namespace {
                Some(namespace) => Api::namespaced_with(client, namespace, &resource),
                None => Api::all_with(client, &resource),
            };
            let patch = Patch::Merge(json!({"status": status}));
            api.patch_status(name, &PatchParams::default(), &patch).await.unwrap();
        });
    }

    /// Does something with a cluster as its administrator.
    pub(crate) fn with<T>(&self, context: &str, work: impl AsyncFnOnce(kube::Client) -> T) -> T {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async { work(self.client(context).await).await })
    }

    /// Runs a command; its exit code and what it prints.
    pub(crate) fn outcome(&self, arguments: &[&str]) -> (i32, String) {
        let output = self.portolan(arguments);
        (output.status.code().unwrap(), text(&output.stdout) + &text(&output.stderr))
    }

    async fn client(&self, context: &str) -> kube::Client {
        let options = KubeConfigOptions { context: Some(context.to_owned()), ..Default::default() };
        let kubeconfig = Kubeconfig::read_from(&self.file).unwrap();
        let config = kube::Config::from_custom_kubeconfig(kubeconfig, &options).await.unwrap();
        kube::Client::try_from(config).unwrap()
    }

    /// Applies an object in a cluster as its administrator.
    pub(crate) fn apply(&self, context: &str, object: &Value) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let client = self.client(context).await;
            let text = |field: &str| object[field].as_str().unwrap();
            let (group, version) = text("apiVersion").split_once('/').unwrap_or(("", text("apiVersion")));
            let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, text("kind")));
            let api: Api<DynamicObject> = match object["metadata"]["namespace"].as_str() {
                Some(namespace) => Api::namespaced_with(client, namespace, &resource),
                None => Api::all_with(client, &resource),
            };
            let name = object["metadata"]["name"].as_str().unwrap();
            api.patch(name, &PatchParams::apply("user").force(), &Patch::Apply(object)).await.unwrap();
        });
    }

    /// Runs a command with the kubeconfig of all clusters, and nothing more.
    pub(crate) fn run(&self, arguments: &[&str]) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_portolan"));
        command.args(arguments).arg("--kubeconfig").arg(&self.file).stdin(Stdio::null()).output().unwrap()
    }

    /// A token of a service account of the hub, which is created.
    pub(crate) fn account(&self, namespace: &str, name: &str) -> String {
        let meta = json!({"name": name, "namespace": namespace});
        self.apply("c1", &json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": meta}));
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let api: Api<ServiceAccount> = Api::namespaced(self.client("c1").await, namespace);
            let request = serde_json::from_value(json!({"spec": {"audiences": []}})).unwrap();
            let made = api.create_token_request(name, &Default::default(), &request).await.unwrap();
            made.status.unwrap().token.unwrap()
        })
    }

    /// Runs a command on the hub as somebody who has this token.
    pub(crate) fn as_token(&self, token: &str, arguments: &[&str]) -> Output {
        self.run_with_token("c1", token, arguments)
    }

    /// What `get clusters` says to somebody who has this token.
    pub(crate) fn with_token(&self, context: &str, token: &str) -> String {
        text(&self.run_with_token(context, token, &["get", "clusters"]).stderr)
    }

    fn run_with_token(&self, context: &str, token: &str, arguments: &[&str]) -> Output {
        let mut config: Value = serde_json::from_slice(&std::fs::read(&self.file).unwrap()).unwrap();
        for user in config["users"].as_array_mut().unwrap() {
            user["user"] = json!({ "token": token });
        }
        let file = self.write_text("other-token.yaml", &config.to_string());
        let mut command = Command::new(env!("CARGO_BIN_EXE_portolan"));
        command.args(arguments).args(["--context", context, "--kubeconfig", &file]).output().unwrap()
    }

    /// Writes a text for a command to read.
    pub(crate) fn write_text(&self, name: &str, text: &str) -> String {
        let path = self.folder.join(name);
        std::fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    }

    /// Writes a file for a command to read.
    pub(crate) fn write(&self, name: &str, object: &Value) -> String {
        let path = self.folder.join(name);
        std::fs::write(&path, object.to_string()).unwrap();
        path.to_str().unwrap().to_owned()
    }
}

impl Drop for World {
    fn drop(&mut self) {
        for process in self.processes.iter_mut().rev() {
            let _ = process.kill();
            let _ = process.wait();
        }
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

/// What a command printed.
pub(crate) fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// A namespace, as a user makes it in the hub.
pub(crate) fn namespace(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
}

/// A workload whose replicas ask for so much CPU, with more fields of its spec.
pub(crate) fn workload(name: &str, replicas: i32, cpu: &str, more: &Value) -> Value {
    let object = json!({
        "apiVersion": "portolan.dev/v1alpha1",
        "kind": "MultiClusterDeployment",
        "metadata": {"name": name, "namespace": "shop"},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": name}},
            "template": {
                "metadata": {"labels": {"app": name}},
                "spec": {"containers": [
                    {"name": "main", "image": "app:1", "resources": {"requests": {"cpu": cpu}}},
                ]},
            },
        },
    });
    with(object, more)
}

/// A job whose pods ask for so much CPU, with more fields of its spec.
pub(crate) fn job(name: &str, completions: i32, cpu: &str, more: &Value) -> Value {
    let object = json!({
        "apiVersion": "portolan.dev/v1alpha1",
        "kind": "MultiClusterJob",
        "metadata": {"name": name, "namespace": "shop"},
        "spec": {
            "completions": completions,
            "template": {"spec": {
                "restartPolicy": "Never",
                "containers": [{"name": "main", "image": "app:1", "resources": {"requests": {"cpu": cpu}}}],
            }},
        },
    });
    with(object, more)
}

fn with(mut object: Value, more: &Value) -> Value {
    object["spec"].as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    object
}
