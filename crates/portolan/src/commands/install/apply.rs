//! Applying an installation; if that fails, everything is made as it was.

use super::cluster::{
    apply, apply_dry, delete, is_own, is_same, metadata, read_all, record_identity, restore, until_gone,
};
use super::wait::{self, Waiting};
use crate::failure::Failure;
use crate::progress::Progress;
use futures::future::try_join_all;
use kube::Client;
use kube::core::GroupVersionKind;
use kube::discovery::ApiResource;
use portolan_control::peering::{Need, missing, with_applied};
use portolan_install::{Identity, NAMESPACE, Record, Rendered, VERSION};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;
use std::time::Duration;

/// How long the way back may take.
const ROLLBACK: Duration = Duration::from_secs(60);

/// What is about to be applied, and what is there.
pub(super) struct Change {
    client: Client,
    rendered: Rendered,
    record: Record,
    /// All objects of the old and the new installation that exist, as they are.
    before: BTreeMap<Identity, Value>,
    /// What has been applied or deleted so far, in this order.
    touched: Mutex<Vec<Identity>>,
}

impl Change {
    /// Looks at what is there.
    pub(super) async fn prepare(
        client: &Client,
        before: Option<&Record>,
        values: &Value,
        mut rendered: Rendered,
    ) -> Result<Self, Failure> {
        let all = rendered.crds.iter().chain(&rendered.objects).map(Identity::of);
        let recorded = before.iter().flat_map(|record| &record.objects).map(|entry| entry.object.clone());
        let existing = read_all(client, all.chain(recorded).chain([record_identity()])).await?;
        // What another project defines is its to change.
        let is_ours = |crd: &Value| {
            let object = Identity::of(crd);
            let made =
                |record: &Record| record.objects.iter().any(|each| each.object == object && !each.existed);
            crd["spec"]["group"] == portolan_api::GROUP
                || !existing.contains_key(&object)
                || before.is_some_and(made)
        };
        rendered.crds.retain(is_ours);
        let namespaces = rendered.objects.iter_mut().filter(|object| object["kind"] == "Namespace");
        let mut known: BTreeSet<Identity> = existing.keys().cloned().collect();
        for namespace in namespaces {
            let object = Identity::of(namespace);
            let Some(found) = existing.get(&object) else { continue };
            let entry = before.and_then(|record| record.objects.iter().find(|each| each.object == object));
            if entry.map_or_else(|| is_own(found), |entry| !entry.existed) {
                known.remove(&object);
            } else {
                // What pods may do there, and how it is labelled, is for its owner to say.
                namespace["metadata"]["labels"] = json!({});
            }
            *namespace = with_applied(namespace, &metadata(found));
        }
        let wanted = order(&rendered);
        let record = Record::begin(before, VERSION, values, &wanted, &known);
        Ok(Self { client: client.clone(), rendered, record, before: existing, touched: Mutex::default() })
    }

    /// What is there now of the old and the new installation.
    pub(super) fn existing(&self) -> &BTreeMap<Identity, Value> {
        &self.before
    }

    /// All objects, in the order in which they are applied.
    pub(super) fn wanted(&self) -> Vec<Value> {
        order(&self.rendered)
    }

    /// What would become of each object, in words.
    pub(super) async fn preview(&self) -> Result<Vec<String>, Failure> {
        let wanted = self.wanted();
        let each = async |object: &Value| -> Result<String, Failure> {
            let identity = Identity::of(object);
            Ok(match self.before.get(&identity) {
                None => format!("would create {identity}"),
                Some(before) if is_same(before, &apply_dry(&self.client, object).await?) => {
                    format!("would leave {identity} as it is")
                }
                Some(_) => format!("would change {identity}"),
            })
        };
        let mut lines = try_join_all(wanted.iter().map(each)).await?;
        lines.extend(self.record.surplus(&wanted).iter().map(|object| format!("would delete {object}")));
        Ok(lines)
    }

    /// Refuses a user who lacks rights, before anything is changed.
    pub(super) async fn refuse_missing_rights(&self) -> Result<(), Failure> {
        let mut needs: Vec<Need> = self.wanted().iter().flat_map(needs).collect();
        needs.sort();
        needs.dedup();
        let missing = missing(&self.client, &needs).await.map_err(crate::commands::peer::told)?;
        if missing.is_empty() {
            return Ok(());
        }
        Err(Failure::other(format!("rights are missing in the cluster: {}", missing.join(", ")))
            .hint("install as an administrator of the cluster"))
    }

    /// Applies everything and waits until it runs; after a failure or too long a time, everything is as before.
    pub(super) async fn run(self, timeout: Duration, progress: &Progress) -> Result<(), Failure> {
        let waiting = Waiting::default();
        let failure = match tokio::time::timeout(timeout, self.forward(progress, &waiting)).await {
            Ok(Ok(())) => return Ok(()),
            Ok(Err(failure)) => failure,
            Err(_) => {
                let why = waiting.last().unwrap_or_else(|| "the API server is slow".to_owned());
                Failure::other(format!(
                    "Portolan does not run after {}: {why}",
                    portolan_api::duration::Duration(timeout)
                ))
                .hint("--timeout waits longer")
            }
        };
        progress.step("rolling back");
        match tokio::time::timeout(ROLLBACK, self.back()).await {
            Ok(problems) if problems.is_empty() => Err(failure.hint("everything is as it was before")),
            Ok(problems) => {
                Err(failure.hint(format!("this could not be made as it was: {}", problems.join("; "))))
            }
            Err(_) => Err(failure.hint(
                "the way back takes longer: `portolan uninstall` or the same command again finishes it",
            )),
        }
    }

    async fn forward(&self, progress: &Progress, waiting: &Waiting) -> Result<(), Failure> {
        let (namespaces, objects): (Vec<_>, Vec<_>) =
            self.rendered.objects.iter().partition(|object| object["kind"] == "Namespace");
        progress.step(&format!("writing the record in namespace {NAMESPACE}"));
        for object in namespaces {
            self.apply(object).await?;
        }
        self.apply(&self.record.to_config_map().map_err(Failure::other)?).await?;
        progress.step("installing definitions");
        try_join_all(self.rendered.crds.iter().map(|crd| self.apply(crd))).await?;
        wait::established(&self.client, &self.rendered.crds).await?;
        progress.step("applying the controller and its roles");
        for object in objects {
            self.apply(object).await?;
        }
        wait::running(&self.client, progress, waiting).await?;
        let wanted = self.wanted();
        for object in self.record.surplus(&wanted) {
            progress.step(&format!("deleting {object}"));
            self.touch(&object);
            delete(&self.client, &object).await?;
        }
        let record = self.record.clone().done(&wanted);
        apply(&self.client, &record.to_config_map().map_err(Failure::other)?).await
    }

    async fn apply(&self, object: &Value) -> Result<(), Failure> {
        self.touch(&Identity::of(object));
        apply(&self.client, object).await
    }

    fn touch(&self, object: &Identity) {
        self.touched.lock().unwrap_or_else(std::sync::PoisonError::into_inner).push(object.clone());
    }

    /// Makes everything as it was, last things first; what could not be made so.
    async fn back(&self) -> Vec<String> {
        let touched = self.touched.lock().unwrap_or_else(std::sync::PoisonError::into_inner).clone();
        let mut problems = Vec::new();
        let mut gone = Vec::new();
        for object in touched.iter().rev() {
            let undone = match self.before.get(object) {
                Some(before) => restore(&self.client, object, before).await,
                None => {
                    gone.push(object.clone());
                    delete(&self.client, object).await.map(|_| ())
                }
            };
            problems.extend(undone.err().map(|failure| failure.message().to_owned()));
        }
        if problems.is_empty()
            && let Err(failure) = until_gone(&self.client, &gone).await
        {
            problems.push(failure.message().to_owned());
        }
        problems
    }
}

fn order(rendered: &Rendered) -> Vec<Value> {
    let (namespaces, objects): (Vec<_>, Vec<_>) =
        rendered.objects.iter().cloned().partition(|object| object["kind"] == "Namespace");
    [namespaces, rendered.crds.clone(), objects].concat()
}

/// What applying an object takes.
fn needs(object: &Value) -> Vec<Need> {
    let identity = Identity::of(object);
    let (group, version) = identity.api_version.split_once('/').unwrap_or(("", &identity.api_version));
    let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, &identity.kind)).plural;
    ["get", "create", "patch", "delete"]
        .map(|verb| Need {
            verb: verb.to_owned(),
            group: group.to_owned(),
            resource: resource.clone(),
            namespace: identity.namespace.clone(),
            name: None,
        })
        .into()
}
