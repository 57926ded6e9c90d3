//! From flags, files and what the cluster tells to values.

use crate::cli::{InstallArgs, ProviderArgs, ValueArgs};
use crate::failure::Failure;
use k8s_openapi::api::core::v1::Node;
use kube::api::ListParams;
use kube::{Api, Client};
use portolan_control::peering::identity;
use portolan_install::{NodeFacts, Provider, ValuesError, detect, merge, region, set};
use portolan_runtime::call;
use serde_json::{Value, json};

/// So many nodes tell what a cluster runs on.
const NODES: u32 = 20;

const REGION_LABEL: &str = "topology.kubernetes.io/region";

/// What the user gave: files, then flags, then `--set`, each over those before.
pub(super) fn given(args: &ValueArgs) -> Result<Value, Failure> {
    let mut values = json!({});
    for file in &args.values {
        let name = file.display();
        let text = std::fs::read_to_string(file)
            .map_err(|error| Failure::input(format!("cannot read {name}: {error}")))?;
        let read: Value = serde_saphyr::from_str(&text)
            .map_err(|error| Failure::input(format!("{name}: it is not YAML: {error}")))?;
        if read.is_null() {
            continue;
        }
        if !read.is_object() {
            return Err(Failure::input(format!(
                "{name}: values are a map, such as `cluster: {{name: paris}}`"
            )));
        }
        values = merge(values, &read);
    }
    values = merge(values, &flags(args)?);
    for argument in &args.set {
        set(&mut values, argument).map_err(|error| refused(&error))?;
    }
    Ok(values)
}

/// A value that cannot be used, as a user meets it.
pub(super) fn refused(error: &ValuesError) -> Failure {
    Failure::input(error).hint("the page `Values of an installation` of the documentation lists all values")
}

fn flags(args: &ValueArgs) -> Result<Value, Failure> {
    let mut cluster = json!({});
    let sharing = args.sharing.as_deref().map(percentage);
    let texts = [
        ("name", &args.cluster_name),
        ("sharing", &sharing),
        ("apiServerURL", &args.api_server_url),
        ("podCIDR", &args.pod_cidr),
        ("serviceCIDR", &args.service_cidr),
    ];
    for (key, text) in texts {
        if let Some(text) = text {
            cluster[key] = json!(text);
        }
    }
    for label in &args.cluster_labels {
        let (key, value) = label.split_once('=').ok_or_else(|| {
            Failure::input(format!("--cluster-labels: {label:?} is not of the form KEY=VALUE"))
        })?;
        cluster["labels"][key] = json!(value);
    }
    if !args.reserved_subnets.is_empty() {
        cluster["reservedSubnets"] = json!(args.reserved_subnets);
    }
    let mut values = json!({ "cluster": cluster });
    if args.enable_ha {
        values["highAvailability"] = json!(true);
    }
    if args.measure_latency {
        values["controller"]["measureLatency"] = json!(true);
    }
    if args.report_capacity {
        values["controller"]["reportCapacity"] = json!(true);
    }
    Ok(values)
}

/// A percentage, also as a number without its sign.
fn percentage(text: &str) -> String {
    let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if is_number { format!("{text}%") } else { text.to_owned() }
}

/// Says which flags of the cloud are not needed.
pub(super) fn warn_of_unneeded(args: &ProviderArgs) {
    let given = [
        (
            args.credentials_path.is_some(),
            "--credentials-path: it is not needed and ignored; nothing is asked of the cloud, and the file is not read",
        ),
        (
            args.disable_endpoint_check,
            "--disable-endpoint-check: it is not needed and ignored; the URL of the API server is compared with nothing, and \
             --api-server-url gives another one",
        ),
    ];
    for (_, text) in given.iter().filter(|(given, _)| *given) {
        anstream::eprintln!("\u{1b}[1mwarning\u{1b}[0m: {text}");
    }
}

/// What the cluster and its cloud tell, which everything that is given goes before.
pub(super) async fn told(client: &Client, version: &str, args: &InstallArgs) -> Result<Value, Failure> {
    let nodes = nodes(client).await?;
    let provider = match args.provider {
        Some(provider) => provider,
        None => detect(version, &nodes),
    };
    let cloud = cloud(provider, &args.cloud)?;
    let name = match cloud.name {
        Some(name) => portolan_name(name),
        None => {
            let id = identity(client, "the cluster").await.map_err(crate::commands::peer::told)?;
            format!("cluster-{}", id.split('-').next().unwrap_or_default())
        }
    };
    let mut labels = json!({ "portolan.dev/provider": provider.name() });
    if let Some(region) = cloud.region.as_deref().or_else(|| region(&nodes)) {
        labels[REGION_LABEL] = json!(region);
    }
    Ok(json!({"cluster": {"name": name, "provider": provider.name(), "labels": labels}}))
}

/// What a cloud calls a cluster.
struct Cloud {
    name: Option<String>,
    region: Option<String>,
}

fn cloud(provider: Provider, args: &ProviderArgs) -> Result<Cloud, Failure> {
    let zone_region = args
        .zone
        .as_ref()
        .map(|zone| zone.rsplit_once('-').map_or(zone.clone(), |(region, _)| region.to_owned()));
    let aks = [&args.resource_name, &args.resource_group_name, &args.subscription_name];
    let gke = [&args.cluster_id, &args.project_id, &args.zone, &args.region];
    let eks = [&args.eks_cluster_name, &args.eks_cluster_region];
    let of_others = [(Provider::Eks, &eks[..]), (Provider::Aks, &aks[..]), (Provider::Gke, &gke[..])];
    for (other, flags) in of_others {
        if other != provider && flags.iter().any(|flag| flag.is_some()) {
            return Err(Failure::input(format!(
                "flags of {} are given, and the cluster is one of {}",
                other.name(),
                provider.name()
            ))
            .hint(format!("say `portolan install {}` if it is one", other.name())));
        }
    }
    Ok(match provider {
        Provider::Eks => {
            Cloud { name: args.eks_cluster_name.clone(), region: args.eks_cluster_region.clone() }
        }
        Provider::Aks => Cloud { name: args.resource_name.clone(), region: None },
        Provider::Gke => Cloud { name: args.cluster_id.clone(), region: args.region.clone().or(zone_region) },
        _ => Cloud { name: None, region: None },
    })
}

/// A name as clouds allow it, in the form that Portolan takes.
fn portolan_name(name: String) -> String {
    let lower = name.to_ascii_lowercase();
    let plain: String = lower.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect();
    let short: String = plain.chars().take(63).collect();
    short.trim_matches('-').to_owned()
}

/// What the nodes tell; nothing if the user may not look at them.
async fn nodes(client: &Client) -> Result<Vec<NodeFacts>, Failure> {
    let api: Api<Node> = Api::all(client.clone());
    let list = match call("list nodes", api.list(&ListParams::default().limit(NODES))).await {
        Ok(list) => list,
        Err(error) if error.code() == Some(403) => {
            anstream::eprintln!(
                "nodes may not be listed, so that the provider is not known: name it, or it is generic"
            );
            return Ok(Vec::new());
        }
        Err(error) => return Err(Failure::call(&error)),
    };
    let facts = |node: Node| NodeFacts {
        labels: node.metadata.labels.unwrap_or_default(),
        annotations: node.metadata.annotations.unwrap_or_default().into_keys().collect(),
        provider_id: node.spec.and_then(|spec| spec.provider_id).unwrap_or_default(),
    };
    Ok(list.items.into_iter().map(facts).collect())
}
