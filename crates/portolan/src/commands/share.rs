//! `portolan share`

use crate::cli::ShareArgs;
use crate::connection;
use crate::failure::Failure;
use crate::kind::Kind;
use kube::api::{Patch, PatchParams};
use kube::{Api, Client};
use portolan_api::{API_VERSION, ForeignCluster, SharingClass};
use portolan_control::names::FIELD_MANAGER;
use portolan_core::capacity::milli;
use portolan_core::sharing::is_shareable;
use portolan_runtime::call;
use serde_json::{Map, Value, json};

/// The SharingClass that `--default` sets.
const DEFAULT_CLASS: &str = "default";

pub(super) fn run(args: &ShareArgs) -> Result<(), Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(Box::pin(share(args)))
}

async fn share(args: &ShareArgs) -> Result<(), Failure> {
    let (name, percentage) = words(args)?;
    let resources = resources(&args.resources)?;
    let said = [percentage.is_some() || !resources.is_empty(), args.class.is_some(), args.by_default];
    if said.iter().filter(|said| **said).count() != 1 {
        return Err(Failure::input("it is not said what is shared, or it is said twice")
            .hint("give one of a percentage such as 50%, --resource, --class and --by-default"));
    }
    let (client, _) = connection::answering(&args.cluster).await?;
    match name {
        Some(name) => {
            let sharing = json!({
                "className": args.class, "percentage": percentage, "resources": resources,
            });
            with_cluster(&client, &name, if args.by_default { None } else { Some(sharing) }).await
        }
        None => by_default(&client, percentage, resources).await,
    }
}

/// Which cluster, nothing with `--default`, and how many percent.
fn words(args: &ShareArgs) -> Result<(Option<String>, Option<i32>), Failure> {
    let (percentages, names): (Vec<&String>, Vec<&String>) =
        args.words.iter().partition(|word| word.ends_with('%'));
    let percentage = match percentages.as_slice() {
        [] => None,
        [one] => Some(parsed(one)?),
        _ => return Err(Failure::input("two percentages are given").hint("give one, such as 50%")),
    };
    match (names.as_slice(), args.default) {
        ([name], false) => Ok((Some((*name).clone()), percentage)),
        ([], true) => Ok((None, percentage)),
        ([], false) => Err(Failure::input("no cluster is given").hint(
            "`portolan share CLUSTER 50%` shares with one cluster, `portolan share --default 50%` with all",
        )),
        _ => Err(Failure::input(format!("{:?} is not one cluster and a percentage", args.words.join(" ")))
            .hint("a percentage ends with %, such as `portolan share rome 50%`; --default takes no cluster")),
    }
}

pub(super) fn parsed(text: &str) -> Result<i32, Failure> {
    let number = text.trim_end_matches('%').parse().ok().filter(|number| (0..=100).contains(number));
    number
        .ok_or_else(|| Failure::input(format!("{text} is not a percentage: give 0% to 100%, without parts")))
}

/// Quantities as they are given: NAME=QUANTITY.
fn resources(given: &[String]) -> Result<Map<String, Value>, Failure> {
    let one = |text: &String| {
        let wrong = |why: String| Failure::input(format!("--resource {text}: {why}")).hint("such as cpu=8");
        let (name, quantity) = text.split_once('=').ok_or_else(|| wrong("there is no =".to_owned()))?;
        if !is_shareable(name) {
            return Err(wrong(format!("{name} is no resource that a ResourceQuota bounds")).hint(
                "name cpu, memory, pods, ephemeral-storage, hugepages-SIZE, or an extended resource with its domain, such as \
                 nvidia.com/gpu",
            ));
        }
        match milli(quantity) {
            Ok(milli) if milli >= 0 => Ok((name.to_owned(), json!(quantity))),
            Ok(_) => Err(wrong("the quantity is negative".to_owned())),
            Err(error) => Err(wrong(error.to_string())),
        }
    };
    given.iter().map(one).collect()
}

/// Sets what is shared with one cluster; nothing for what the default class says.
async fn with_cluster(client: &Client, name: &str, sharing: Option<Value>) -> Result<(), Failure> {
    let object = Kind::Cluster.get(client, None, name).await?;
    let cluster: ForeignCluster = serde_json::from_value(object).map_err(Failure::other)?;
    let Some(incoming) = &cluster.spec.incoming else {
        return Err(Failure::other(format!(
            "cluster {name} is no consumer of this one: there is nothing to share"
        ))
        .hint("`portolan invite` lets another cluster peer with this one"));
    };
    let mut sharing = sharing.unwrap_or(Value::Null);
    // A merge keeps what is not named: quantities that were given before are taken back one by one.
    if let Some(sharing) = sharing.as_object_mut() {
        let before = incoming.sharing.iter().flat_map(|before| before.resources.keys());
        let resources = sharing.entry("resources").or_insert_with(|| json!({}));
        if let Some(resources) = resources.as_object_mut() {
            before.for_each(|name| _ = resources.entry(name.clone()).or_insert(Value::Null));
            if resources.values().all(Value::is_null) {
                sharing.insert("resources".to_owned(), Value::Null);
            }
        }
    }
    let version = &cluster.metadata.resource_version;
    let patch = json!({"metadata": {"resourceVersion": version}, "spec": {"incoming": {"sharing": sharing}}});
    let params = PatchParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..PatchParams::default() };
    let api: Api<ForeignCluster> = Api::all(client.clone());
    let what = format!("change ForeignCluster {name}");
    call(what, api.patch(name, &params, &Patch::Merge(&patch)))
        .await
        .map_err(|error| Failure::call(&error))?;
    crate::output::data(&format!("foreigncluster.portolan.dev/{name} sharing set\n"))
}

/// Sets what is shared with all that have no sharing of their own.
async fn by_default(
    client: &Client,
    percentage: Option<i32>,
    resources: Map<String, Value>,
) -> Result<(), Failure> {
    let mut spec = json!({"default": true});
    if let Some(percentage) = percentage {
        spec["percentage"] = json!(percentage);
    }
    if !resources.is_empty() {
        spec["resources"] = Value::Object(resources);
    }
    let class = json!({
        "apiVersion": API_VERSION, "kind": "SharingClass", "metadata": {"name": DEFAULT_CLASS}, "spec": spec,
    });
    let api: Api<SharingClass> = Api::all(client.clone());
    let params = PatchParams::apply(FIELD_MANAGER).force();
    let what = format!("apply SharingClass {DEFAULT_CLASS}");
    let applied = call(what, api.patch(DEFAULT_CLASS, &params, &Patch::Apply(&class))).await;
    applied.map_err(|error| Failure::call(&error))?;
    crate::output::data(&format!("sharingclass.portolan.dev/{DEFAULT_CLASS} set\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_and_percentages_are_read_or_refused_with_what_is_wrong() {
        assert_eq!(parsed("50%").unwrap(), 50);
        for wrong in ["101%", "-1%", "5.5%", "%"] {
            assert!(format!("{:?}", parsed(wrong).unwrap_err()).contains("not a percentage"), "{wrong}");
        }
        let given = ["cpu=8".to_owned(), "nvidia.com/gpu=1".to_owned()];
        assert_eq!(Value::Object(resources(&given).unwrap()), json!({"cpu": "8", "nvidia.com/gpu": "1"}));
        for wrong in ["cpu", "cpu=lots", "cpu=-1", "gpu=1", "storage=1Gi"] {
            assert!(resources(&[wrong.to_owned()]).is_err(), "{wrong}");
        }
    }
}
