//! `portolan uninstall`

use super::install::cluster::{
    SOON, api, delete, is_own, read, read_all, record, record_identity, refuse_helm, until_gone,
};
use super::peer::told;
use crate::cli::UninstallArgs;
use crate::connection;
use crate::failure::Failure;
use crate::progress::Progress;
use k8s_openapi::api::core::v1::ServiceAccount;
use kube::api::ListParams;
use kube::{Api, Client};
use portolan_api::{API_VERSION, GROUP};
use portolan_control::names::{FIELD_MANAGER, HUB_LABEL, INVITATION_LABEL, REQUEST_LABEL, TENANT_LABEL};
use portolan_control::peering::{identity, leave_local};
use portolan_install::{CONTROLLER, Entry, Identity, NAMESPACE, Values, render};
use portolan_runtime::call;
use serde_json::{Value, json};
use std::collections::BTreeSet;

pub(super) fn run(args: &UninstallArgs) -> Result<(), Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(Box::pin(uninstall(args)))
}

async fn uninstall(args: &UninstallArgs) -> Result<(), Failure> {
    let (client, _) = connection::answering(&args.cluster).await?;
    let (mut entries, is_on_record) = installed(&client).await?;
    let found = read_all(&client, entries.iter().map(|entry| entry.object.clone())).await?;
    refuse_helm(&found, "uninstall")?;
    refuse_use(&client, args.purge).await?;
    entries.retain(|entry| found.contains_key(&entry.object));
    let mut others = Vec::new();
    if !is_on_record {
        let is_ours = |entry: &Entry| found.get(&entry.object).is_some_and(is_portolans);
        let strangers: Vec<Entry> = entries.extract_if(.., |entry| !is_ours(entry)).collect();
        others.extend(strangers.into_iter().map(|entry| entry.object));
    }
    let mut plan = plan(&client, entries, args.purge).await?;
    plan.stays
        .extend(others.iter().map(|object| format!("{object}: nothing in it says that it is Portolan's")));
    if plan.is_empty() && !args.purge {
        plan.tell_what_stays();
        return Err(Failure::input("nothing of Portolan is installed in this cluster"));
    }
    if args.dry_run {
        let mut text: String = plan.deleted().map(|object| format!("would delete {object}\n")).collect();
        if plan.purge {
            text.push_str("would close the namespaces that were opened to placement, and delete those that were made for it and are empty\n");
        }
        plan.tell_what_stays();
        return crate::output::data(&text);
    }
    let progress = Progress::start();
    let deleted = tokio::time::timeout(args.timeout.0, plan.carry_out(&client, &progress)).await;
    let deleted = deleted.map_err(|_| {
        Failure::other(format!("objects are still there after {}", args.timeout))
            .hint("`kubectl get crd,ns` shows which; the same command again goes on")
    })??;
    plan.tell_what_stays();
    if deleted == 0 {
        return Err(Failure::input("nothing of Portolan is installed in this cluster"));
    }
    progress.done(&format!("Portolan is uninstalled: {deleted} objects are deleted"));
    Ok(())
}

/// The objects on record, and whether there is one; without it, those that an installation would have, as
/// `portolan crds --roles` prints them.
async fn installed(client: &Client) -> Result<(Vec<Entry>, bool), Failure> {
    if let Some(record) = record(client).await? {
        return Ok((record.objects, true));
    }
    let rendered = render(&Values::default()).map_err(Failure::other)?;
    let mut entries = Vec::new();
    for object in rendered.objects.iter().chain(&rendered.crds).map(Identity::of) {
        let own = object.kind == "Namespace" && read(client, &object).await?.as_ref().is_some_and(is_own);
        entries.push(Entry { object, existed: !own });
    }
    Ok((entries, false))
}

/// Whether an object that no record has is Portolan's: others may have objects of the same names.
fn is_portolans(object: &Value) -> bool {
    let managers = object["metadata"]["managedFields"].as_array();
    object["spec"]["group"] == GROUP
        || object["metadata"]["labels"]["app.kubernetes.io/part-of"] == "portolan"
        || managers.into_iter().flatten().any(|each| each["manager"] == FIELD_MANAGER)
}

/// Refuses while something would lose its controller, and with `purge` what would be deleted with the namespace.
async fn refuse_use(client: &Client, purge: bool) -> Result<(), Failure> {
    let mut used = Vec::new();
    for crd in portolan_api::crds() {
        let kind = crd.spec.names.kind;
        let api = api(client, &Identity::of(&json!({"apiVersion": API_VERSION, "kind": kind})));
        let objects = match call(format!("list {kind}s"), api.list_metadata(&ListParams::default())).await {
            Ok(list) => list.items,
            Err(error) if error.is_not_found() => continue,
            Err(error) => return Err(Failure::call(&error)),
        };
        for object in objects {
            let finalizers = object.metadata.finalizers.unwrap_or_default();
            let is_kept = finalizers.iter().any(|finalizer| finalizer.starts_with(GROUP));
            if kind == "ForeignCluster" || is_kept {
                let name = object.metadata.name.unwrap_or_default();
                let place =
                    object.metadata.namespace.map(|namespace| format!("{namespace}/")).unwrap_or_default();
                used.push(format!("{kind} {place}{name}"));
            }
        }
    }
    if !used.is_empty() {
        return Err(Failure::other(format!("Portolan is in use: {}", used.join(", ")))
            .hint("`portolan unpeer NAME` ends a membership; --drain moves its workloads first")
            .hint("`kubectl delete` deletes a workload with its copies; --cascade=orphan leaves the copies running"));
    }
    if purge {
        refuse_incoming(client).await?;
    }
    Ok(())
}

/// Refuses to delete the accounts by which other hubs use this cluster.
async fn refuse_incoming(client: &Client) -> Result<(), Failure> {
    let accounts: Api<ServiceAccount> = Api::namespaced(client.clone(), NAMESPACE);
    let params = ListParams::default().labels(HUB_LABEL);
    let list = call("list service accounts of hubs", accounts.list_metadata(&params)).await;
    let list = list.map_err(|error| Failure::call(&error))?;
    let names: Vec<String> = list.items.into_iter().filter_map(|account| account.metadata.name).collect();
    if names.is_empty() {
        return Ok(());
    }
    let failure = format!(
        "this cluster is a member of other hubs, whose accounts are in namespace {NAMESPACE}: {}",
        names.join(", ")
    );
    Err(Failure::other(failure)
        .hint("`portolan unpeer NAME --remote-context CONTEXT` on the hub removes them")
        .hint("without --purge the namespace and what is in it stays"))
}

/// What is deleted, in this order, and what stays.
struct Plan {
    objects: Vec<Identity>,
    containers: Vec<Identity>,
    stays: Vec<String>,
    purge: bool,
}

async fn plan(client: &Client, entries: Vec<Entry>, purge: bool) -> Result<Plan, Failure> {
    let mut plan = Plan { objects: Vec::new(), containers: Vec::new(), stays: Vec::new(), purge };
    for Entry { object, existed } in entries {
        if !object.is_container() {
            plan.objects.push(object);
        } else if !purge {
            plan.stays.push(format!("{object}: --purge deletes it"));
        } else if let Some(why) = kept(client, &object, existed).await? {
            plan.stays.push(format!("{object}: {why}"));
        } else {
            plan.containers.push(object);
        }
    }
    // The controller goes first, so that nobody writes while its rights go; its Lease is its own.
    plan.objects.sort_by_key(|object| object.kind != "Deployment");
    plan.objects.extend(left_behind(client).await?);
    let lease = super::install::identity("coordination.k8s.io/v1", "Lease", CONTROLLER);
    for object in [lease, record_identity()] {
        if read(client, &object).await?.is_some() {
            plan.objects.push(object);
        }
    }
    plan.containers.sort_by_key(|object| object.kind == "Namespace");
    Ok(plan)
}

/// What invitations have made, and what tenants left behind that are gone: no record has it, but its labels tell. First what
/// somebody could still use.
async fn left_behind(client: &Client) -> Result<Vec<Identity>, Failure> {
    const RBAC: &str = "rbac.authorization.k8s.io/v1";
    let rights = ["ClusterRoleBinding", "RoleBinding", "ClusterRole", "Role"].map(|kind| (RBAC, kind));
    let core = |kind| ("v1", kind);
    let certificates = ("certificates.k8s.io/v1", "CertificateSigningRequest");
    let mut kinds = vec![(INVITATION_LABEL, core("Secret")), (REQUEST_LABEL, certificates)];
    kinds.extend(rights.map(|kind| (INVITATION_LABEL, kind)));
    kinds.extend([
        (INVITATION_LABEL, core("ServiceAccount")),
        (INVITATION_LABEL, (API_VERSION, "Invitation")),
    ]);
    kinds.extend(rights.map(|kind| (TENANT_LABEL, kind)));
    kinds.extend(["ResourceQuota", "LimitRange"].map(|kind| (TENANT_LABEL, core(kind))));
    let mut found = Vec::new();
    for (label, (api_version, kind)) in kinds {
        let object = Identity::of(&json!({"apiVersion": api_version, "kind": kind}));
        let params = ListParams::default().labels(label);
        let listed = match call(format!("list {kind}s"), api(client, &object).list_metadata(&params)).await {
            Ok(listed) => listed.items,
            Err(error) if error.is_not_found() => continue,
            Err(error) => return Err(Failure::call(&error)),
        };
        found.extend(listed.into_iter().map(|each| Identity {
            namespace: each.metadata.namespace,
            name: each.metadata.name.unwrap_or_default(),
            ..object.clone()
        }));
    }
    Ok(found)
}

/// Why a namespace or definition is not deleted.
async fn kept(client: &Client, object: &Identity, existed: bool) -> Result<Option<String>, Failure> {
    if object.kind == "Namespace" {
        return Ok(existed.then(|| "it was there before Portolan was installed".to_owned()));
    }
    if object.name.ends_with(&format!(".{GROUP}")) {
        return Ok(None);
    }
    if existed {
        return Ok(Some("it is not Portolan's own".to_owned()));
    }
    let profiles =
        Identity::of(&json!({"apiVersion": "multicluster.x-k8s.io/v1alpha1", "kind": "ClusterProfile"}));
    let params = ListParams::default().limit(1);
    match call("list ClusterProfiles", api(client, &profiles).list_metadata(&params)).await {
        Ok(list) if list.items.is_empty() => Ok(None),
        Ok(_) => Ok(Some("other programs have objects of it".to_owned())),
        Err(error) if error.is_not_found() => Ok(None),
        Err(error) => Err(Failure::call(&error)),
    }
}

impl Plan {
    fn is_empty(&self) -> bool {
        self.objects.is_empty() && self.containers.is_empty()
    }

    fn deleted(&self) -> impl Iterator<Item = &Identity> {
        self.objects.iter().chain(&self.containers)
    }

    fn tell_what_stays(&self) {
        for each in &self.stays {
            anstream::eprintln!("stays: {}", crate::clean::line(each));
        }
    }

    /// Deletes everything; how many objects there were.
    async fn carry_out(&self, client: &Client, progress: &Progress) -> Result<usize, Failure> {
        let mut deleted = 0;
        // The record goes last: interrupted before, the next run still knows what there is.
        let (record, objects): (Vec<_>, Vec<_>) =
            self.objects.iter().partition(|object| **object == record_identity());
        progress.step("stopping the controller, and deleting its rights");
        for object in objects {
            deleted += usize::from(delete(client, object).await?);
            if object.kind == "Deployment" {
                until_gone(client, std::slice::from_ref(object)).await?;
                pods_gone(client).await?;
            }
        }
        if self.purge {
            progress.step("giving back the namespaces that were opened");
            deleted += close_namespaces(client).await?;
        }
        if !self.containers.is_empty() {
            progress.step("deleting definitions and the namespace");
        }
        let (namespaces, crds): (Vec<_>, Vec<_>) =
            self.containers.iter().cloned().partition(|object| object.kind == "Namespace");
        for objects in [crds, record.into_iter().cloned().collect(), namespaces] {
            for object in &objects {
                deleted += usize::from(delete(client, object).await?);
            }
            until_gone(client, &objects).await?;
        }
        Ok(deleted)
    }
}

/// Closes the namespaces that were opened to placement, and deletes those that were made for it and are empty; how much
/// that was.
async fn close_namespaces(client: &Client) -> Result<usize, Failure> {
    let before = standing_namespaces(client).await?;
    let id = identity(client, "the cluster").await.map_err(told)?;
    let came = leave_local(client, &id).await.map_err(told)?;
    came.stays.iter().for_each(|each| anstream::eprintln!("stays: {}", crate::clean::line(each)));
    let after = standing_namespaces(client).await?;
    let gone: Vec<Identity> = before.difference(&after).cloned().collect();
    until_gone(client, &gone).await?;
    Ok(came.went.len())
}

/// The namespaces that are not being deleted.
async fn standing_namespaces(client: &Client) -> Result<BTreeSet<Identity>, Failure> {
    let kind = Identity::of(&json!({"apiVersion": "v1", "kind": "Namespace"}));
    let list = call("list Namespaces", api(client, &kind).list_metadata(&ListParams::default())).await;
    let list = list.map_err(|error| Failure::call(&error))?.items.into_iter();
    let standing = list.filter(|each| each.metadata.deletion_timestamp.is_none());
    Ok(standing.filter_map(|each| Some(Identity { name: each.metadata.name?, ..kind.clone() })).collect())
}

/// Waits until no controller runs any more.
async fn pods_gone(client: &Client) -> Result<(), Failure> {
    while !super::install::pods(client).await?.is_empty() {
        tokio::time::sleep(SOON).await;
    }
    Ok(())
}
