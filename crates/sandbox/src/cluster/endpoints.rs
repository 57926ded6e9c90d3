//! Services get endpoint slices of the pods they select.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

use super::queue::{Item, Queue};
use super::view::View;
use super::{Controller, Seen, deleting, text};
use crate::api::{Api, Writer};
use crate::error::ApiError;
use crate::store::{EventKind, LabelSelector, ObjectKey, at};
use crate::verbs::{DeleteOptions, Part};

const SERVICES: &str = "/services";
const SERVICE_NAME: &str = "kubernetes.io/service-name";
const MANAGED_BY: &str = "endpointslice.kubernetes.io/managed-by";
const MANAGER: &str = "endpointslice-controller.k8s.io";
/// How many endpoints one slice holds.
const SLICE_SIZE: usize = 100;

/// Which pods each service selects.
#[derive(Default)]
pub(super) struct Endpoints {
    /// What of each service decides about its slices.
    services: BTreeMap<ObjectKey, [Value; 4]>,
    selectors: BTreeMap<Arc<str>, BTreeMap<Arc<str>, LabelSelector>>,
    services_of: BTreeMap<ObjectKey, BTreeSet<ObjectKey>>,
    pods_of: BTreeMap<ObjectKey, BTreeSet<ObjectKey>>,
    slices_of: BTreeMap<ObjectKey, BTreeSet<ObjectKey>>,
}

impl Controller for Endpoints {
    fn name(&self) -> &'static str {
        "kube-controller-manager"
    }

    fn observe(&mut self, seen: &Seen, view: &View, queue: &mut Queue) {
        let gone = seen.kind == EventKind::Deleted;
        match &*seen.table {
            SERVICES => self.service_changed(seen, view, queue),
            "/pods" => {
                let before = self.services_of.remove(&seen.key).unwrap_or_default();
                let after: BTreeSet<ObjectKey> = if gone { BTreeSet::new() } else { self.selecting(seen) };
                for service in before.union(&after) {
                    let pods = self.pods_of.entry(service.clone()).or_default();
                    if after.contains(service) {
                        pods.insert(seen.key.clone());
                    } else {
                        pods.remove(&seen.key);
                    }
                    queue.add(Item::new(SERVICES, service));
                }
                if !after.is_empty() {
                    self.services_of.insert(seen.key.clone(), after);
                }
            }
            "discovery.k8s.io/endpointslices" => {
                let labels = seen.object.pointer("/metadata/labels");
                let label = |key: &str| labels.and_then(|labels| labels.get(key)).and_then(Value::as_str);
                if let (Some(service), Some(MANAGER)) = (label(SERVICE_NAME), label(MANAGED_BY)) {
                    let service = ObjectKey::new(&seen.key.namespace, service);
                    let slices = self.slices_of.entry(service.clone()).or_default();
                    if gone {
                        slices.remove(&seen.key);
                        queue.add(Item::new(SERVICES, &service));
                    } else {
                        slices.insert(seen.key.clone());
                    }
                }
            }
            _ => {}
        }
    }

    fn reconcile(&mut self, item: &Item, api: &mut Api, view: &View) -> Result<Option<Duration>, ApiError> {
        let Some(found) = api.store.get(SERVICES, &item.key) else { return Ok(None) };
        let service = found.value();
        if deleting(&service) || at(&service, "/spec/selector").is_none() {
            return Ok(None);
        }
        let none = BTreeSet::new();
        let pods = self.pods_of.get(&item.key).unwrap_or(&none);
        let endpoints: Vec<Value> = pods.iter().filter_map(|key| endpoint(key, view)).collect();
        let ports = ports(api, &service, pods);
        self.write(api, &service, &endpoints, &ports)?;
        Ok(None)
    }
}

impl Endpoints {
    fn service_changed(&mut self, seen: &Seen, view: &View, queue: &mut Queue) {
        let decisive = ["/metadata/uid", "/metadata/labels", "/metadata/deletionTimestamp", "/spec"];
        let decisive = decisive.map(|pointer| at(&seen.object, pointer).cloned().unwrap_or_default());
        if seen.kind == EventKind::Deleted {
            self.services.remove(&seen.key);
        } else if self.services.get(&seen.key) == Some(&decisive) {
            return;
        } else {
            self.services.insert(seen.key.clone(), decisive);
        }
        let namespace = self.selectors.entry(seen.key.namespace.clone()).or_default();
        for pod in self.pods_of.remove(&seen.key).unwrap_or_default() {
            if let Some(services) = self.services_of.get_mut(&pod) {
                services.remove(&seen.key);
            }
        }
        let selector = seen.object.pointer("/spec/selector").filter(|_| seen.kind != EventKind::Deleted);
        let Some(selector) =
            selector.filter(|selector| selector.as_object().is_some_and(|map| !map.is_empty()))
        else {
            namespace.remove(&seen.key.name);
            return;
        };
        let selector = LabelSelector::from_map(selector);
        let mut members = BTreeSet::new();
        for (key, pod) in view.pods_in(&seen.key.namespace) {
            if selector.matches_labels(Some(&pod.labels)) {
                members.insert(key.clone());
                self.services_of.entry(key.clone()).or_default().insert(seen.key.clone());
            }
        }
        namespace.insert(seen.key.name.clone(), selector);
        self.pods_of.insert(seen.key.clone(), members);
        queue.add(Item::new(SERVICES, &seen.key));
    }

    fn selecting(&self, seen: &Seen) -> BTreeSet<ObjectKey> {
        let labels = seen.object.pointer("/metadata/labels");
        let selectors = self.selectors.get(&seen.key.namespace).into_iter().flatten();
        selectors
            .filter(|(_, selector)| selector.matches_labels(labels))
            .map(|(name, _)| ObjectKey { namespace: seen.key.namespace.clone(), name: name.clone() })
            .collect()
    }

    /// Makes the service's slices hold exactly these endpoints.
    fn write(
        &self,
        api: &mut Api,
        service: &Value,
        endpoints: &[Value],
        ports: &Value,
    ) -> Result<(), ApiError> {
        let row = api.row("discovery.k8s.io", "endpointslices")?;
        let (namespace, name) = (text(service, "/metadata/namespace"), text(service, "/metadata/name"));
        let key = ObjectKey::new(namespace, name);
        let existing: Vec<ObjectKey> = self.slices_of.get(&key).into_iter().flatten().cloned().collect();
        let mut chunks: Vec<Vec<Value>> = endpoints.chunks(SLICE_SIZE).map(<[Value]>::to_vec).collect();
        if chunks.is_empty() {
            chunks.push(Vec::new());
        }
        let labels = slice_labels(service, name);
        for (index, chunk) in chunks.iter().enumerate() {
            if let Some(slice) = existing.get(index) {
                api.modify(&row, slice, Part::Main, self.name(), |object| {
                    object["metadata"]["labels"] = labels.clone();
                    object["endpoints"] = json!(chunk);
                    object["ports"] = ports.clone();
                })?;
                continue;
            }
            let slice = json!({
                "metadata": {
                    "generateName": format!("{name}-"),
                    "labels": labels,
                    "ownerReferences": [super::control_reference(service)],
                },
                "addressType": "IPv4",
                "endpoints": chunk,
                "ports": ports,
            });
            match api.create(&row, namespace, slice, &Writer::named(self.name())) {
                Ok(_) => {}
                Err(error) if error.code == 403 => return Ok(()),
                Err(error) => return Err(error),
            }
        }
        for slice in existing.iter().skip(chunks.len()) {
            api.remove_object(&row, slice, &DeleteOptions::default())?;
        }
        Ok(())
    }
}

/// A slice has the labels of its service, and those that tell whose it is.
fn slice_labels(service: &Value, name: &str) -> Value {
    let mut labels = at(service, "/metadata/labels").cloned().unwrap_or_else(|| json!({}));
    labels[SERVICE_NAME] = json!(name);
    labels[MANAGED_BY] = json!(MANAGER);
    labels
}

fn endpoint(key: &ObjectKey, view: &View) -> Option<Value> {
    let pod = view.pods.get(key).filter(|pod| !pod.over && !pod.address.is_empty())?;
    Some(json!({
        "addresses": [&*pod.address],
        "conditions": {"ready": pod.ready && !pod.deleting, "serving": pod.ready, "terminating": pod.deleting},
        "nodeName": &*pod.node,
        "targetRef": {"kind": "Pod", "namespace": &*key.namespace, "name": &*key.name, "uid": &*pod.uid},
    }))
}

/// The ports of a service as its pods have them; named ones are looked up in the first pod.
fn ports(api: &Api, service: &Value, pods: &BTreeSet<ObjectKey>) -> Value {
    let listed = at(service, "/spec/ports").and_then(Value::as_array).into_iter().flatten();
    let resolved = listed.map(|port| {
        let target = match port.get("targetPort") {
            Some(Value::String(name)) => {
                let pod = pods.iter().find_map(|key| api.store.get("/pods", key)).map(|pod| pod.value());
                pod.as_ref().and_then(|pod| named_port(pod, name)).unwrap_or(Value::Null)
            }
            Some(number) => number.clone(),
            None => port.get("port").cloned().unwrap_or_default(),
        };
        let mut out = json!({"name": port.get("name").cloned().unwrap_or_else(|| json!("")), "protocol": port["protocol"], "port": target});
        if let Some(protocol) = port.get("appProtocol") {
            out["appProtocol"] = protocol.clone();
        }
        out
    });
    Value::Array(resolved.collect())
}

fn named_port(pod: &Value, name: &str) -> Option<Value> {
    let containers = at(pod, "/spec/containers").and_then(Value::as_array)?;
    let mut ports = containers.iter().filter_map(|container| container.get("ports")?.as_array()).flatten();
    ports.find(|port| text(port, "/name") == name).and_then(|port| port.get("containerPort")).cloned()
}
