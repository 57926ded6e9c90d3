//! A copy tried in a member by a dry run: what the member would say, and whether its pods would be replaced.

use super::super::Workload;
use super::Previews;
use crate::copies::insert;
use crate::driver::Declared;
use crate::fleet::Member;
use crate::names::{FIELD_MANAGER, HUB_LABEL, WORKLOAD_LABEL};
use k8s_openapi::api::apps::v1::Deployment;
use kube::Api;
use kube::api::{Patch, PatchParams};
use portolan_api::Reason;
use portolan_runtime::{CallError, Key, chain, foreign_text};
use serde_json::json;
use tokio::time::{Instant, timeout_at};

/// What a member would say to a copy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Trial {
    /// Nothing would be applied: the member holds it so already.
    Held,
    /// It would take it; `replaces` tells whether running pods would be replaced.
    Accepted {
        /// Whether running pods would be replaced.
        replaces: bool,
    },
    /// It finds the object itself invalid.
    Invalid(String),
    /// It refuses it for another reason: a word and a sentence.
    Refused(Reason, String),
    /// It could not be asked.
    Unknown(String),
}

impl Previews {
    /// Tries a copy in a cluster, under its own name, in the place of the one that is there, until some time.
    pub(crate) async fn try_copy(
        &self,
        key: &Key,
        workload: &Workload,
        cluster: &str,
        replicas: u32,
        until: Instant,
    ) -> Trial {
        let Some(member) =
            self.0.base.context.fleet.member(cluster).filter(|member| member.health.is_reachable())
        else {
            return Trial::Unknown("it does not answer".to_owned());
        };
        let wanted = self.0.desired(workload, replicas);
        let copy = member.index::<Deployment>().get(key).filter(|copy| copy.meta.is_of(workload.uid()));
        if copy.is_some_and(|copy| copy.meta.digest.as_deref() == Some(&wanted.digest)) {
            return Trial::Held;
        }
        match timeout_at(until, attempt(&member, key, wanted.object)).await {
            Ok(Ok(trial)) => trial,
            Ok(Err(error)) => judged(&error, &key.namespace),
            Err(_) => Trial::Unknown("the time for this review was over before it answered".to_owned()),
        }
    }
}

/// A version that no object has: what is applied with it is made where there is none.
const NONE_HAS: &str = "1";

async fn attempt(member: &Member, key: &Key, mut object: serde_json::Value) -> Result<Trial, CallError> {
    let api: Api<Deployment> = Api::namespaced(member.client.clone(), &key.namespace);
    let look = format!("look for Deployment {key} in {}", member.name);
    let live = member.gate.ask(look, api.get_opt(&key.name)).await?;
    let version = match &live {
        Some(live) => {
            let label =
                |name: &str| live.metadata.labels.as_ref().and_then(|labels| labels.get(name).cloned());
            let ours = |name: &str| label(name).as_deref() == object["metadata"]["labels"][name].as_str();
            if !(ours(HUB_LABEL) && ours(WORKLOAD_LABEL)) {
                let message =
                    format!("Deployment {key} exists there already and is not ours: rename one of the two");
                return Ok(Trial::Refused(Reason::NameTaken, message));
            }
            json!(live.metadata.resource_version)
        }
        None => json!(NONE_HAS),
    };
    insert(&mut object, &["metadata"], "resourceVersion", version);
    let params = PatchParams { dry_run: true, force: live.is_some(), ..PatchParams::apply(FIELD_MANAGER) };
    let what = format!("try Deployment {key} in {}", member.name);
    let applied = member.gate.ask(what, api.patch(&key.name, &params, &Patch::Apply(&object))).await?;
    let template = |deployment: &Deployment| deployment.spec.as_ref().map(|spec| spec.template.clone());
    let replaces = live.is_some_and(|live| template(&live) != template(&applied));
    Ok(Trial::Accepted { replaces })
}

fn judged(error: &CallError, namespace: &str) -> Trial {
    let message = match error {
        CallError::Refused { source, .. } => match source.as_ref() {
            kube::Error::Api(status) => status.message.clone(),
            _ => chain(error),
        },
        _ => chain(error),
    };
    // A field that the schema does not have is an internal error to the API server.
    let untyped = message.contains("failed to create typed patch object");
    let text = foreign_text(&message);
    match error.code() {
        Some(400 | 422) => Trial::Invalid(text),
        _ if untyped => Trial::Invalid(text),
        Some(403) => Trial::Refused(
            Reason::Forbidden,
            format!("{text}; `portolan peer --namespace {namespace}` opens it to the hub"),
        ),
        Some(404) => Trial::Refused(Reason::NamespaceNotFound, text),
        Some(_) if error.is_final() => Trial::Refused(Reason::Refused, text),
        _ => Trial::Unknown(text),
    }
}
