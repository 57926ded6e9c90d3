//! `portolan adopt`

use crate::cli::AdoptArgs;
use crate::connection;
use crate::failure::Failure;
use crate::kind::Kind;
use crate::output;
use k8s_openapi::api::apps::v1::Deployment;
use kube::api::{ListParams, Patch, PatchParams, PostParams};
use kube::{Api, Client, ResourceExt};
use portolan_api::conditions::{self, ConditionType};
use portolan_api::{ForeignCluster, MultiClusterDeployment};
use portolan_control::names::{ADOPT_ANNOTATION, ADOPT_UNMANAGED, FIELD_MANAGER, HUB_LABEL};
use portolan_runtime::{call, chain};
use serde_json::{Value, json};

pub(super) fn run(args: &AdoptArgs) -> Result<(), Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(Box::pin(adopt(args)))
}

async fn adopt(args: &AdoptArgs) -> Result<(), Failure> {
    if args.list {
        let (hub, _) = connection::answering(&args.cluster).await?;
        return list(&hub).await;
    }
    let name = named(&args.object)?;
    let mark = match (&args.from_hub, args.unmanaged) {
        (Some(hub), _) => {
            check_id(hub)?;
            format!("hub/{hub}")
        }
        (None, true) => ADOPT_UNMANAGED.to_owned(),
        (None, false) => {
            return Err(Failure::input("it is not said whose Deployments are taken over").hint(
                "give --from-hub ID for those of a hub that was lost, or --unmanaged for those of no hub",
            ));
        }
    };
    let (hub, _) = connection::answering(&args.cluster).await?;
    let namespace = args.namespace.clone().unwrap_or_else(|| hub.default_namespace().to_owned());
    match (name, args.all) {
        (Some(name), false) if args.create => create(args, &hub, &namespace, &name, &mark).await,
        (Some(name), false) => {
            let found = Kind::Deployment.get(&hub, Some(&namespace), &name).await.map_err(|failure| {
                failure.hint("--create --from-context CONTEXT --cluster CLUSTER creates it from a Deployment")
            })?;
            if is_placed(&found) {
                return Err(Failure::other(format!(
                    "multiclusterdeployment {namespace}/{name} is placed already: not marked"
                ))
                .hint("only a workload that is placed nowhere can take over Deployments"));
            }
            one(args, &hub, &namespace, &name, &mark).await
        }
        (None, true) => {
            for object in Kind::Deployment.list(&hub, Some(&namespace), &ListParams::default()).await? {
                let name = object["metadata"]["name"].as_str().unwrap_or_default();
                if is_placed(&object) {
                    say(args, name, "is placed already: not marked")?;
                    continue;
                }
                one(args, &hub, &namespace, name, &mark).await?;
            }
            Ok(())
        }
        (Some(_), true) => Err(Failure::input("a name and --all exclude each other")),
        (None, false) => Err(Failure::input("no workload is named").hint("give deployment NAME, or --all")),
    }
}

/// Whether a workload is placed in some member.
fn is_placed(object: &Value) -> bool {
    object["status"]["placements"].as_array().is_some_and(|all| !all.is_empty())
}

/// Refuses what cannot be the id of a hub.
fn check_id(hub: &str) -> Result<(), Failure> {
    let parts: Vec<_> = hub.split('-').collect();
    let lengths: Vec<_> = parts.iter().map(|part| part.len()).collect();
    let hexadecimal = |part: &&str| part.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    if lengths == [8, 4, 4, 4, 12] && parts.iter().all(hexadecimal) {
        return Ok(());
    }
    Err(Failure::input(format!("--from-hub: {hub:?} is not the id of a hub")).hint(
        "the id is the uid of its namespace kube-system, and stands on its copies as label portolan.dev/hub",
    ))
}

/// The name among the words, if there is one.
fn named(words: &[String]) -> Result<Option<String>, Failure> {
    let kind = words.first().map(String::as_str).unwrap_or_default();
    let (kind, name) =
        kind.split_once('/').map_or((kind, None), |(kind, name)| (kind, Some(name.to_owned())));
    let is_deployment = matches!(kind.to_lowercase().as_str(), "deployment" | "deployments" | "deploy");
    if !is_deployment && Kind::parse(kind)?.0 != Kind::Deployment {
        return Err(Failure::input(format!("{kind} cannot be adopted")).hint(
            "only MultiClusterDeployments can: Jobs and Services of this hub are taken over by objects of their name",
        ));
    }
    match (name, words.get(1)) {
        (Some(_), Some(_)) => Err(Failure::input(format!("{:?} is not one object", words.join(" ")))),
        (name, other) => Ok(name.or_else(|| other.cloned())),
    }
}

/// Marks one workload.
async fn one(args: &AdoptArgs, hub: &Client, namespace: &str, name: &str, mark: &str) -> Result<(), Failure> {
    if !args.dry_run {
        let api: Api<MultiClusterDeployment> = Api::namespaced(hub.clone(), namespace);
        let patch = Patch::Merge(json!({"metadata": {"annotations": { ADOPT_ANNOTATION: mark }}}));
        let params = PatchParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..PatchParams::default() };
        let what = format!("mark MultiClusterDeployment {namespace}/{name}");
        call(what, api.patch(name, &params, &patch)).await.map_err(|error| Failure::other(chain(&error)))?;
    }
    say(args, name, &format!("marked to adopt {mark}"))
}

fn say(args: &AdoptArgs, name: &str, done: &str) -> Result<(), Failure> {
    let dry = if args.dry_run { " (dry run)" } else { "" };
    output::data(&format!("multiclusterdeployment.portolan.dev/{name} {done}{dry}\n"))?;
    Ok(())
}

/// Creates a workload from a Deployment in a member, with the mark.
async fn create(
    args: &AdoptArgs,
    hub: &Client,
    namespace: &str,
    name: &str,
    mark: &str,
) -> Result<(), Failure> {
    let (Some(context), Some(cluster)) = (&args.from_context, &args.member) else {
        return Err(Failure::input("--create needs --from-context and --cluster"));
    };
    Kind::Cluster.get(hub, None, cluster).await?;
    let member = connection::remote(args.cluster.kubeconfig.as_deref(), context).await?.client;
    let api: Api<Deployment> = Api::namespaced(member, namespace);
    let found = call(format!("read Deployment {namespace}/{name} in {context}"), api.get_opt(name)).await;
    let found = found.map_err(|error| Failure::other(chain(&error)))?;
    let Some(found) = found else {
        return Err(Failure::other(format!("Deployment {namespace}/{name} not found in context {context}"))
            .hint(format!(
                "`kubectl --context {context} -n {namespace} get deployments` lists those there are"
            )));
    };
    check_owner(args, &found, &format!("Deployment {namespace}/{name}"))?;
    let object = manifest(&found, namespace, name, cluster, mark)?;
    let object: MultiClusterDeployment = serde_json::from_value(object).map_err(Failure::other)?;
    let api: Api<MultiClusterDeployment> = Api::namespaced(hub.clone(), namespace);
    // The API server checks a dry run as it checks the real one.
    let params = PostParams { dry_run: args.dry_run, field_manager: Some(FIELD_MANAGER.to_owned()) };
    let what = format!("create MultiClusterDeployment {namespace}/{name}");
    call(what, api.create(&params, &object)).await.map_err(|error| {
        if error.is_conflict() {
            Failure::other(format!("MultiClusterDeployment {namespace}/{name} already exists"))
                .hint("leave --create out, and it is marked")
        } else {
            Failure::other(chain(&error))
        }
    })?;
    say(args, name, &format!("created to adopt {mark} in {cluster}"))
}

/// Refuses a Deployment of another owner than the flags name.
fn check_owner(args: &AdoptArgs, found: &Deployment, called: &str) -> Result<(), Failure> {
    match (found.labels().get(HUB_LABEL), &args.from_hub) {
        (Some(owner), Some(hub)) if owner == hub => Ok(()),
        (None, None) => Ok(()),
        (Some(owner), _) => Err(Failure::input(format!("{called} belongs to the hub {owner}"))
            .hint(format!("--from-hub {owner} takes it over"))),
        (None, Some(_)) => {
            Err(Failure::input(format!("{called} belongs to no hub")).hint("--unmanaged takes it over"))
        }
    }
}

/// A MultiClusterDeployment with the template, selector and numbers of a Deployment.
fn manifest(
    found: &Deployment,
    namespace: &str,
    name: &str,
    cluster: &str,
    mark: &str,
) -> Result<Value, Failure> {
    let spec = serde_json::to_value(found.spec.as_ref()).map_err(Failure::other)?;
    let mut own = json!({ "locations": [cluster], "replicas": spec["replicas"].as_i64().unwrap_or(1) });
    let fields = [
        "selector",
        "template",
        "strategy",
        "minReadySeconds",
        "revisionHistoryLimit",
        "progressDeadlineSeconds",
    ];
    for field in fields {
        if let Some(value) = spec.get(field).filter(|value| !value.is_null()) {
            own[field] = value.clone();
        }
    }
    if let Some(meta) = own.pointer_mut("/template/metadata").and_then(Value::as_object_mut) {
        meta.remove("creationTimestamp");
        // What Portolan itself put there it puts there again.
        if let Some(labels) = meta.get_mut("labels").and_then(Value::as_object_mut) {
            labels.retain(|name, _| !name.starts_with("portolan.dev/"));
        }
    }
    Ok(json!({
        "apiVersion": "portolan.dev/v1alpha1",
        "kind": "MultiClusterDeployment",
        "metadata": { "name": name, "namespace": namespace, "annotations": { ADOPT_ANNOTATION: mark } },
        "spec": own,
    }))
}

/// Lists what members hold that the hub has no object for, as their ForeignClusters tell.
async fn list(hub: &Client) -> Result<(), Failure> {
    let mut any = false;
    for object in Kind::Cluster.list(hub, None, &ListParams::default()).await? {
        let cluster: ForeignCluster = serde_json::from_value(object).map_err(Failure::other)?;
        let conditions =
            cluster.status.as_ref().map(|status| status.conditions.as_slice()).unwrap_or_default();
        if let Some(found) =
            conditions::find(conditions, ConditionType::Orphaned).filter(|each| each.status == "True")
        {
            any = true;
            // The message of the condition ends with the command that is running.
            let message = found.message.trim_end_matches("; see `portolan adopt --list`");
            let told = crate::clean::line(&format!("{}: {message}", cluster.name_any()));
            output::data(&format!("{told}\n"))?;
        }
    }
    if !any {
        output::data("Every object that this hub placed in a member has its object in the hub.\n")?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<String> {
        line.split_whitespace().map(str::to_owned).collect()
    }

    #[test]
    fn a_workload_is_named_as_in_kubectl() {
        for line in ["deployment web", "deploy/web", "mcd/web", "mcd web"] {
            assert_eq!(named(&words(line)).unwrap().as_deref(), Some("web"), "{line}");
        }
        assert_eq!(named(&words("deployment")).unwrap(), None);
        assert!(named(&words("mcj/sum")).unwrap_err().message().contains("cannot be adopted"));
        assert!(named(&words("mcd/web other")).is_err());
    }

    #[test]
    fn a_manifest_has_the_template_and_selector_as_they_are() {
        let found = json!({
            "metadata": {"name": "web", "namespace": "shop"},
            "spec": {"replicas": 3, "selector": {"matchLabels": {"app": "web"}}, "minReadySeconds": 5,
                "template": {"metadata": {"creationTimestamp": null, "labels": {"app": "web", "portolan.dev/workload": "u"}},
                    "spec": {"containers": [{"name": "main", "image": "web:1"}]}}},
        });
        let found = serde_json::from_value(found).unwrap();
        let made = manifest(&found, "shop", "web", "paris", "unmanaged").unwrap();
        assert_eq!(made["spec"]["replicas"], 3);
        assert_eq!(made["spec"]["locations"], json!(["paris"]));
        assert_eq!(made["spec"]["template"]["metadata"]["labels"], json!({"app": "web"}));
        assert_eq!(made["spec"]["minReadySeconds"], 5);
        assert_eq!(made["metadata"]["annotations"][ADOPT_ANNOTATION], "unmanaged");
    }
}
