//! What the API server sets itself when a built-in object is created.

use std::collections::BTreeSet;
use std::net::Ipv4Addr;

use serde_json::{Value, json};

use super::defaults::string_data;
use super::pod_defaults::ensure;
use crate::api::Api;
use crate::error::{ApiError, Cause};
use crate::registry::Resource;
use crate::store::at;

/// The first and the last cluster address of services (10.96.0.0/12).
const ADDRESSES: (u32, u32) = (0x0a60_0001, 0x0a6f_fffe);

/// Fills in what only the server can know.
pub(crate) fn prepare_create(
    api: &mut Api,
    row: &Resource,
    object: &mut Value,
    dry_run: bool,
) -> Result<(), ApiError> {
    if row.custom {
        return Ok(());
    }
    match (row.group.as_str(), row.kind.as_str()) {
        ("", "Namespace") => {
            object["spec"]["finalizers"] = json!(["kubernetes"]);
            object["status"] = json!({"phase": "Active"});
        }
        ("", "Pod") => pod(object),
        ("", "Service") => {
            service_address(api, object, dry_run)?;
            return node_ports(api, object, dry_run);
        }
        ("apps", "Deployment") => object["status"] = json!({}),
        ("autoscaling", "HorizontalPodAutoscaler") => {
            object["status"] = json!({"currentMetrics": null, "desiredReplicas": 0});
        }
        ("policy", "PodDisruptionBudget") => {
            object["status"] =
                json!({"currentHealthy": 0, "desiredHealthy": 0, "disruptionsAllowed": 0, "expectedPods": 0});
        }
        ("batch", "Job") => {
            job(object);
            object["status"] = json!({});
        }
        ("", "PersistentVolumeClaim") => object["status"] = json!({"phase": "Pending"}),
        ("certificates.k8s.io", "CertificateSigningRequest") => object["status"] = json!({}),
        ("apps", "StatefulSet") => {
            super::sets::drop_disabled(object);
            object["status"] = json!({"availableReplicas": 0, "replicas": 0});
        }
        ("apps", "DaemonSet") => super::sets::prepare_daemon_set(object),
        _ => {}
    }
    Ok(())
}

/// Carries over what an update may not drop.
pub(crate) fn prepare_update(row: &Resource, old: &Value, new: &mut Value) {
    if row.custom {
        return;
    }
    match (row.group.as_str(), row.kind.as_str()) {
        ("", "Service") => {
            for field in ["clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy"] {
                if let (Some(value), Some(spec)) = (at(old, &format!("/spec/{field}")), new.get_mut("spec"))
                    && spec.get("type") != Some(&json!("ExternalName"))
                {
                    ensure(spec, field, value.clone());
                }
            }
        }
        ("", "Secret") => string_data(new),
        ("", "Pod") => {
            let address = at(new, "/status/podIP").filter(|address| **address != json!("")).cloned();
            if let (Some(address), Some(status)) = (address, new.get_mut("status")) {
                ensure(status, "podIPs", json!([{ "ip": address }]));
            }
        }
        ("apps", "StatefulSet") => {
            super::sets::drop_disabled(new);
            if let Some(status) = new.get_mut("status") {
                ensure(status, "availableReplicas", json!(0));
            }
        }
        _ => {}
    }
}

fn pod(object: &mut Value) {
    let Some(spec) = object.get_mut("spec") else { return };
    ensure(spec, "serviceAccountName", json!("default"));
    let account = spec.get("serviceAccountName").cloned().unwrap_or_default();
    ensure(spec, "serviceAccount", account);
    ensure(spec, "preemptionPolicy", json!("PreemptLowerPriority"));
    ensure(spec, "priority", json!(0));
    ensure(spec, "tolerations", json!([]));
    if let Some(tolerations) = spec.get_mut("tolerations").and_then(Value::as_array_mut) {
        for key in ["node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"] {
            let tolerated = tolerations.iter().any(|toleration| {
                let of = |field: &str| toleration.get(field).and_then(Value::as_str).unwrap_or_default();
                (of("key") == key || of("key").is_empty()) && matches!(of("effect"), "" | "NoExecute")
            });
            if !tolerated {
                tolerations.push(
                    json!({"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}),
                );
            }
        }
    }
    let quality = quality_of_service(spec);
    object["status"] = json!({"phase": "Pending", "qosClass": quality});
}

/// Guaranteed if every container's limits equal its requests, BestEffort if none has any.
fn quality_of_service(spec: &Value) -> &'static str {
    let lists = ["initContainers", "containers"].map(|list| spec.get(list).and_then(Value::as_array));
    let (mut any, mut all) = (false, true);
    for container in lists.into_iter().flatten().flatten() {
        for resource in ["cpu", "memory"] {
            let of = |kind: &str| at(container, &format!("/resources/{kind}/{resource}"));
            any |= of("requests").is_some() || of("limits").is_some();
            all &= of("limits").is_some() && of("limits") == of("requests");
        }
    }
    match (any, all) {
        (false, _) => "BestEffort",
        (true, true) => "Guaranteed",
        (true, false) => "Burstable",
    }
}

fn job(object: &mut Value) {
    let name = at(object, "/metadata/name").cloned().unwrap_or_default();
    let uid = at(object, "/metadata/uid").cloned().unwrap_or_default();
    let Some(spec) = object.get_mut("spec") else { return };
    if spec.get("manualSelector") == Some(&json!(true)) || spec.get("selector").is_some() {
        return;
    }
    spec["selector"] = json!({"matchLabels": {"batch.kubernetes.io/controller-uid": uid}});
    let Some(template) = spec.get_mut("template") else { return };
    ensure(template, "metadata", json!({}));
    let metadata = &mut template["metadata"];
    ensure(metadata, "labels", json!({}));
    for (key, value) in [("job-name", &name), ("controller-uid", &uid)] {
        metadata["labels"][key] = value.clone();
        metadata["labels"][format!("batch.kubernetes.io/{key}")] = value.clone();
    }
    let labels = metadata["labels"].clone();
    if let Some(metadata) = object.get_mut("metadata") {
        ensure(metadata, "labels", labels);
    }
}

fn service_address(api: &mut Api, object: &mut Value, dry_run: bool) -> Result<(), ApiError> {
    let name = at(object, "/metadata/name").and_then(Value::as_str).unwrap_or_default().to_owned();
    object["status"] = json!({"loadBalancer": {}});
    let Some(spec) = object.get_mut("spec") else { return Ok(()) };
    if spec.get("type") == Some(&json!("ExternalName")) {
        return Ok(());
    }
    // Whatever the addresses behind a service without address and selector are, they are somebody else's matter.
    let open = spec.get("clusterIP") == Some(&json!("None")) && spec.get("selector").is_none();
    let families = if open { json!(["IPv4", "IPv6"]) } else { json!(["IPv4"]) };
    ensure(spec, "ipFamilies", families);
    ensure(spec, "ipFamilyPolicy", json!(if open { "RequireDualStack" } else { "SingleStack" }));
    let address = match spec.get("clusterIP").and_then(Value::as_str) {
        Some("None") => "None".to_owned(),
        Some(given) if !given.is_empty() => {
            let parsed: Option<u32> = given.parse::<Ipv4Addr>().ok().map(u32::from);
            let inside = parsed.filter(|address| (ADDRESSES.0..=ADDRESSES.1).contains(address));
            let refuse = |detail: &str| {
                let cause = Cause::invalid("spec.clusterIPs", &json!([given]), detail);
                ApiError::invalid("", "Service", &name, &[cause])
            };
            let address = inside.ok_or_else(|| {
                refuse("failed to allocate IP: the provided IP is not in the valid range. The range of valid IPs is 10.96.0.0/12")
            })?;
            if api.addresses.contains(&address) {
                return Err(refuse("failed to allocate IP: provided IP is already allocated"));
            }
            if !dry_run {
                api.addresses.insert(address);
            }
            given.to_owned()
        }
        _ => {
            let free = (ADDRESSES.0..=ADDRESSES.1).find(|address| !api.addresses.contains(address));
            let free =
                free.ok_or_else(|| ApiError::internal("failed to allocate a serviceIP: range is full"))?;
            if !dry_run {
                api.addresses.insert(free);
            }
            Ipv4Addr::from(free).to_string()
        }
    };
    spec["clusterIPs"] = json!([address]);
    spec["clusterIP"] = json!(address);
    Ok(())
}

/// The ports on which nodes can serve services.
const NODE_PORTS: (u16, u16) = (30_000, 32_767);

/// Gives the ports of a service that nodes serve a number each, and takes back those that it has no more.
pub(crate) fn node_ports(api: &mut Api, service: &mut Value, dry_run: bool) -> Result<(), ApiError> {
    let name = at(service, "/metadata/name").and_then(Value::as_str).unwrap_or_default().to_owned();
    let spec = service.get("spec").cloned().unwrap_or_default();
    let wanted = match spec.get("type").and_then(Value::as_str) {
        Some("NodePort") => true,
        Some("LoadBalancer") => spec.get("allocateLoadBalancerNodePorts") != Some(&json!(false)),
        _ => false,
    };
    let mut taken = api.node_ports.clone();
    let ports = service.pointer_mut("/spec/ports").and_then(Value::as_array_mut);
    for (index, port) in ports.into_iter().flatten().enumerate() {
        if !wanted {
            port.as_object_mut().map(|port| port.remove("nodePort"));
            continue;
        }
        let given = port.get("nodePort").and_then(Value::as_u64).filter(|given| *given > 0);
        let number = match given {
            Some(given) => {
                let refuse = |detail: &str| {
                    let field = format!("spec.ports[{index}].nodePort");
                    ApiError::invalid("", "Service", &name, &[Cause::invalid(field, &json!(given), detail)])
                };
                let number = u16::try_from(given).ok().filter(|n| (NODE_PORTS.0..=NODE_PORTS.1).contains(n));
                let number = number.ok_or_else(|| {
                    refuse("provided port is not in the valid range. The range of valid ports is 30000-32767")
                })?;
                if taken.contains(&number) {
                    return Err(refuse("provided port is already allocated"));
                }
                number
            }
            None => (NODE_PORTS.0..=NODE_PORTS.1)
                .find(|number| !taken.contains(number))
                .ok_or_else(|| ApiError::internal("failed to allocate a nodePort: range is full"))?,
        };
        taken.insert(number);
        port["nodePort"] = json!(number);
    }
    if !dry_run {
        api.node_ports = taken;
    }
    Ok(())
}

/// The same for a change: what the service has already is its own.
pub(crate) fn change_node_ports(
    api: &mut Api,
    old: &Value,
    new: &mut Value,
    dry_run: bool,
) -> Result<(), ApiError> {
    let before = api.node_ports.clone();
    release_ports(&mut api.node_ports, old);
    let outcome = node_ports(api, new, dry_run);
    if dry_run || outcome.is_err() {
        api.node_ports = before;
    }
    outcome
}

fn release_ports(taken: &mut BTreeSet<u16>, service: &Value) {
    let ports = at(service, "/spec/ports").and_then(Value::as_array);
    for port in ports.into_iter().flatten().filter_map(|port| port.get("nodePort")?.as_u64()) {
        taken.remove(&u16::try_from(port).unwrap_or_default());
    }
}

/// Gives a deleted service's address and ports back.
pub(crate) fn release_address(api: &mut Api, service: &Value) {
    let address = at(service, "/spec/clusterIP").and_then(Value::as_str);
    if let Some(address) = address.and_then(|text| text.parse::<Ipv4Addr>().ok()) {
        api.addresses.remove(&u32::from(address));
    }
    release_ports(&mut api.node_ports, service);
}
