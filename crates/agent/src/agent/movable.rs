//! Which pods can be moved while they run.

use k8s_openapi::api::core::v1::{Pod, PodSpec, Volume};

/// The RuntimeClass whose handler is `portolan-runc`.
pub const RUNTIME_CLASS: &str = "portolan-restore";

/// Why a pod cannot be moved while it runs, if it cannot: a sentence with what would help.
pub(super) fn why_not(pod: &Pod) -> Option<String> {
    let Some(spec) = &pod.spec else { return Some("it has no spec".to_owned()) };
    if spec.init_containers.as_ref().is_some_and(|all| !all.is_empty()) {
        // They would wait for checkpoints that nobody writes.
        return Some("it has init containers, which are not moved: do their work in the image".to_owned());
    }
    let class = spec.runtime_class_name.as_deref().filter(|class| *class != RUNTIME_CLASS);
    if let Some(class) = class {
        return Some(format!(
            "its spec.runtimeClassName is {class}, and the restored pod needs {RUNTIME_CLASS}: remove it from the pod"
        ));
    }
    if let Some(field) = of_the_node(spec) {
        return Some(format!(
            "its spec.{field} is true, and what it shares with its node stays there: set it to false"
        ));
    }
    let mut volumes = spec.volumes.as_ref().into_iter().flatten();
    volumes.find(|volume| !comes_along(volume)).map(|volume| {
        format!(
            "its volume {} stays where it is: only emptyDir, configMap, secret, downwardAPI and projected volumes are moved",
            volume.name
        )
    })
}

/// The namespace of the node that it shares.
fn of_the_node(spec: &PodSpec) -> Option<&'static str> {
    let shared = [("hostNetwork", spec.host_network), ("hostPID", spec.host_pid), ("hostIPC", spec.host_ipc)];
    shared.into_iter().find(|(_, shared)| *shared == Some(true)).map(|(field, _)| field)
}

/// Whether the destination has the volume as well, or gets its contents.
fn comes_along(volume: &Volume) -> bool {
    volume.empty_dir.is_some()
        || volume.config_map.is_some()
        || volume.secret.is_some()
        || volume.downward_api.is_some()
        || volume.projected.is_some()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn why(spec: Value) -> Option<String> {
        let mut all = json!({ "containers": [{ "name": "a", "image": "web:1" }] });
        all.as_object_mut().unwrap().extend(spec.as_object().unwrap().clone());
        why_not(&serde_json::from_value(json!({ "metadata": {}, "spec": all })).unwrap())
    }

    #[test]
    fn what_a_node_has_is_not_moved() {
        for (spec, expected) in [
            (
                json!({ "runtimeClassName": "gvisor" }),
                ["spec.runtimeClassName is gvisor", "portolan-restore"],
            ),
            (json!({ "hostNetwork": true }), ["spec.hostNetwork", "set it to false"]),
            (json!({ "hostPID": true }), ["spec.hostPID", "set it to false"]),
            (json!({ "hostIPC": true }), ["spec.hostIPC", "set it to false"]),
            (json!({ "initContainers": [{ "name": "first" }] }), ["init containers", "image"]),
            (
                json!({ "volumes": [
                    { "name": "scratch", "emptyDir": {} },
                    { "name": "node", "hostPath": { "path": "/var" } },
                ] }),
                ["volume node", "only emptyDir"],
            ),
            (
                json!({ "volumes": [{ "name": "disk", "persistentVolumeClaim": { "claimName": "disk" } }] }),
                ["volume disk", "only emptyDir"],
            ),
            (
                json!({ "volumes": [{ "name": "nfs", "nfs": { "server": "s", "path": "/" } }] }),
                ["volume nfs", ""],
            ),
        ] {
            let why = why(spec.clone()).unwrap();
            assert!(expected.iter().all(|part| why.contains(part)), "{spec}: {why}");
        }
        assert!(why_not(&Pod::default()).is_some());
    }

    #[test]
    fn what_every_cluster_has_is_no_obstacle() {
        for spec in [
            json!({}),
            json!({ "runtimeClassName": "portolan-restore", "hostNetwork": false }),
            json!({ "volumes": [
                { "name": "a", "emptyDir": { "medium": "Memory" } },
                { "name": "b", "configMap": { "name": "b" } },
                { "name": "c", "secret": { "secretName": "c" } },
                { "name": "d", "downwardAPI": {} },
                { "name": "e", "projected": { "sources": [] } },
            ] }),
        ] {
            assert_eq!(why(spec), None);
        }
    }
}
