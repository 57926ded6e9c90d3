//! Questions to the controller: a PlacementReview is created, its answer waited for, and the review deleted.

use crate::failure::Failure;
use crate::progress::Progress;
use kube::api::{DeleteParams, ObjectMeta, PostParams};
use kube::{Api, Client};
use portolan_api::conditions::{self, ConditionType};
use portolan_api::placementreview::ObjectReview;
use portolan_api::{PlacementReview, PlacementReviewSpec, PlacementReviewStatus};
use portolan_runtime::{CallError, call, chain};
use serde_json::{Value, json};
use std::time::Duration;
use tokio::time::Instant;

/// How often to look for the answer.
const OFTEN: Duration = Duration::from_millis(100);

/// After this long the user is told what is waited for.
const TOLD_AFTER: Duration = Duration::from_secs(1);

/// Asks the controller, and waits for its answer for as long as `limit`.
pub(super) async fn ask(
    hub: &Client,
    namespace: &str,
    purpose: &str,
    spec: PlacementReviewSpec,
    limit: Duration,
) -> Result<Vec<ObjectReview>, Failure> {
    let api: Api<PlacementReview> = Api::namespaced(hub.clone(), namespace);
    let metadata = ObjectMeta { generate_name: Some(format!("{purpose}-")), ..ObjectMeta::default() };
    let review = PlacementReview { metadata, spec, status: None };
    let create = call("create a PlacementReview", api.create(&PostParams::default(), &review)).await;
    let created = create.map_err(|error| not_asked(&error, namespace))?;
    let name = created.metadata.name.unwrap_or_default();
    let answer = wait(&api, &name, limit).await;
    // Whoever does not delete it leaves it to the controller; that is no reason to fail.
    let _ = call("delete the PlacementReview", api.delete(&name, &DeleteParams::default())).await;
    let status = answer?;
    let ready = conditions::find(&status.conditions, ConditionType::Ready);
    match ready {
        Some(ready) if ready.status != "True" => {
            let hint = "`portolan get clusters` tells whether the members answer";
            Err(Failure::other(format!("the controller cannot answer: {}", ready.message)).hint(hint))
        }
        _ => Ok(status.objects),
    }
}

async fn wait(
    api: &Api<PlacementReview>,
    name: &str,
    limit: Duration,
) -> Result<PlacementReviewStatus, Failure> {
    let (progress, start) = (Progress::start(), Instant::now());
    loop {
        let read = call("read the PlacementReview", api.get(name)).await;
        let review = read.map_err(|error| Failure::other(chain(&error)))?;
        if let Some(status) = review.status.filter(|status| status.observed_time.is_some()) {
            return Ok(status);
        }
        if start.elapsed() >= limit {
            let seconds = limit.as_secs();
            return Err(Failure::other(format!("no controller answered within {seconds} s: is it running?"))
                .hint("`portolan controller` runs it; --timeout waits longer"));
        }
        if start.elapsed() >= TOLD_AFTER {
            progress.step("waiting for the controller to answer");
        }
        tokio::time::sleep(OFTEN).await;
    }
}

fn not_asked(error: &CallError, namespace: &str) -> Failure {
    let failure = match error.code() {
        Some(400 | 413 | 422) => Failure::input(chain(error)),
        _ => Failure::other(chain(error)),
    };
    match error.code() {
        Some(404) => failure.hint(format!(
            "the hub must have namespace {namespace}, and Portolan's definitions: `portolan peer` installs them, and \
             `portolan crds` prints them"
        )),
        Some(403) => failure.hint(format!(
            "plan and explain need create, get and delete on placementreviews.portolan.dev in namespace {namespace}"
        )),
        _ => failure,
    }
}

/// An answer as data, with its namespace.
pub(super) fn as_json(namespace: &str, review: &ObjectReview) -> Result<Value, Failure> {
    let mut value = serde_json::to_value(review).map_err(Failure::other)?;
    value["namespace"] = json!(namespace);
    Ok(value)
}
