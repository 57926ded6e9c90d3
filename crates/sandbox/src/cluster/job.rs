//! Jobs: pods until enough of them have succeeded, or too many have failed.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::events::{Happening, record};
use super::indexes;
use super::queue::{Item, Queue};
use super::view::View;
use super::{Controller, Seen, control_reference, controller_of, deleting, number, set_condition, text};
use crate::api::{Api, Writer};
use crate::error::ApiError;
use crate::kinds::condition_is_true;
use crate::registry::Resource;
use crate::store::{EventKind, ObjectKey, at};
use crate::verbs::{DeleteOptions, Part, Propagation};

const TABLE: &str = "batch/jobs";
const PODS: &str = "/pods";
/// Holds a finished pod until it has been counted.
const TRACKING: &str = "batch.kubernetes.io/job-tracking";
const INDEX: &str = "batch.kubernetes.io/job-completion-index";
/// The first pause after a failure; it doubles with each further one.
const FIRST_PAUSE: Duration = Duration::from_secs(10);
const LONGEST_PAUSE: Duration = Duration::from_secs(360);

pub(super) struct Jobs;

/// A job's pods, sorted by what became of them.
#[derive(Default)]
struct Pods {
    active: Vec<(ObjectKey, Arc<Value>)>,
    succeeded: Vec<Arc<Value>>,
    failed: Vec<Arc<Value>>,
    terminating: usize,
}

/// Why a job is over.
enum End {
    Complete,
    Failed(&'static str, &'static str),
}

impl Controller for Jobs {
    fn name(&self) -> &'static str {
        "kube-controller-manager"
    }

    fn observe(&mut self, seen: &Seen, view: &View, queue: &mut Queue) {
        match &*seen.table {
            TABLE if seen.kind != EventKind::Deleted => queue.add(Item::new(TABLE, &seen.key)),
            TABLE => {
                for (key, _) in view.pods_of(text(&seen.object, "/metadata/uid")) {
                    queue.add(Item::new(PODS, key));
                }
            }
            PODS => {
                let owner = controller_of(&seen.object).filter(|owner| text(owner, "/kind") == "Job");
                if let Some(owner) = owner {
                    queue.add(Item::new(TABLE, &ObjectKey::new(&seen.key.namespace, text(owner, "/name"))));
                    if seen.kind != EventKind::Deleted && is_tracked(&seen.object) {
                        queue.add(Item::new(PODS, &seen.key));
                    }
                }
            }
            _ => {}
        }
    }

    fn reconcile(&mut self, item: &Item, api: &mut Api, view: &View) -> Result<Option<Duration>, ApiError> {
        if &*item.table == PODS {
            return self.release_orphan(api, &item.key).map(|()| None);
        }
        let Some(found) = api.store.get(TABLE, &item.key) else { return Ok(None) };
        let job = found.value();
        let pods = sort_pods(api, view, &job);
        if deleting(&job) {
            self.release(api, &pods)?;
            return Ok(None);
        }
        if condition_is_true(&job, "Complete") || condition_is_true(&job, "Failed") {
            self.release(api, &pods)?;
            return self.expire(api, item, &job);
        }
        self.work(api, item, &job, pods)
    }
}

impl Jobs {
    fn work(
        &self,
        api: &mut Api,
        item: &Item,
        job: &Value,
        mut pods: Pods,
    ) -> Result<Option<Duration>, ApiError> {
        let row = api.row("batch", "jobs")?;
        let now = api.now();
        let indexed = text(job, "/spec/completionMode") == "Indexed";
        let mut done = indexes::parse(text(job, "/status/completedIndexes"));
        done.extend(pods.succeeded.iter().filter(|_| indexed).filter_map(|pod| index_of(pod)));
        let newly = i64::try_from(pods.succeeded.len()).unwrap_or(0);
        let succeeded = if indexed {
            i64::try_from(done.len()).unwrap_or(0)
        } else {
            number(job, "/status/succeeded") + newly
        };
        let failed = number(job, "/status/failed") + i64::try_from(pods.failed.len()).unwrap_or(0);
        let suspended = at(job, "/spec/suspend") == Some(&json!(true));
        let end = self.end(job, now, succeeded, failed, pods.active.is_empty());
        let mut again = None;
        if end.is_some() || suspended {
            self.stop(api, &pods, suspended)?;
            pods.terminating += pods.active.len();
            pods.active.clear();
        } else {
            again = self.balance(api, job, &mut pods, &done, succeeded, failed)?;
        }
        let time = api.time();
        let counts = (pods.active.len(), ready(&pods), succeeded, failed, pods.terminating);
        api.modify(&row, &item.key, Part::Status, self.name(), |object| {
            write_status(object, counts, indexed.then_some(&done), suspended, end.as_ref(), &time);
        })?;
        self.release(api, &pods)?;
        match end {
            Some(End::Complete) => self.tell(api, job, false, "Completed", "Job completed")?,
            Some(End::Failed(reason, message)) => self.tell(api, job, true, reason, message)?,
            None => {}
        }
        Ok(again)
    }

    fn end(&self, job: &Value, now: Timestamp, succeeded: i64, failed: i64, idle: bool) -> Option<End> {
        if failed > number(job, "/spec/backoffLimit") {
            return Some(End::Failed("BackoffLimitExceeded", "Job has reached the specified backoff limit"));
        }
        if remaining_time(job, now).is_some_and(|left| left <= SignedDuration::ZERO) {
            return Some(End::Failed("DeadlineExceeded", "Job was active longer than specified deadline"));
        }
        let complete = match at(job, "/spec/completions").and_then(Value::as_i64) {
            Some(wanted) => succeeded >= wanted,
            None => succeeded > 0 && idle,
        };
        complete.then_some(End::Complete)
    }

    /// Starts or stops pods until as many run as should; tells when to look again.
    fn balance(
        &self,
        api: &mut Api,
        job: &Value,
        pods: &mut Pods,
        done: &BTreeSet<u32>,
        succeeded: i64,
        failed: i64,
    ) -> Result<Option<Duration>, ApiError> {
        let parallelism = number(job, "/spec/parallelism");
        let wanted = match at(job, "/spec/completions").and_then(Value::as_i64) {
            Some(completions) => parallelism.min(completions - succeeded),
            None if succeeded > 0 => parallelism.min(i64::try_from(pods.active.len()).unwrap_or(0)),
            None => parallelism,
        };
        let wanted = usize::try_from(wanted).unwrap_or(0);
        let now = api.now();
        let deadline = remaining_time(job, now).and_then(|left| Duration::try_from(left).ok());
        if pods.active.len() > wanted {
            let row = api.row("", "pods")?;
            for (key, _) in pods.active.split_off(wanted) {
                self.dismiss(api, &row, &key)?;
                pods.terminating += 1;
            }
        }
        if pods.active.len() < wanted {
            if let Some(pause) = pause_after_failure(pods, failed, now) {
                return Ok(Some(deadline.map_or(pause, |deadline| deadline.min(pause))));
            }
            let missing = wanted - pods.active.len();
            self.start(api, job, pods, done, missing)?;
        }
        Ok(deadline)
    }

    fn start(
        &self,
        api: &mut Api,
        job: &Value,
        pods: &mut Pods,
        done: &BTreeSet<u32>,
        count: usize,
    ) -> Result<(), ApiError> {
        let row = api.row("", "pods")?;
        let name = text(job, "/metadata/name");
        let indexed = text(job, "/spec/completionMode") == "Indexed";
        let taken: BTreeSet<u32> = pods.active.iter().filter_map(|(_, pod)| index_of(pod)).collect();
        let mut free = (0..).filter(|index| !done.contains(index) && !taken.contains(index));
        for _ in 0..count {
            let mut pod = job["spec"]["template"].clone();
            if !pod["metadata"].is_object() {
                pod["metadata"] = json!({});
            }
            pod["metadata"]["ownerReferences"] = json!([control_reference(job)]);
            pod["metadata"]["finalizers"] = json!([TRACKING]);
            pod["metadata"]["generateName"] = json!(format!("{name}-"));
            if let Some(index) = indexed.then(|| free.next()).flatten() {
                pod["metadata"]["generateName"] = json!(format!("{name}-{index}-"));
                for field in ["labels", "annotations"] {
                    pod["metadata"][field][INDEX] = json!(index.to_string());
                }
                for container in pod["spec"]["containers"].as_array_mut().into_iter().flatten() {
                    let variable = json!({"name": "JOB_COMPLETION_INDEX", "value": index.to_string()});
                    match container["env"].as_array_mut() {
                        Some(variables) => variables.push(variable),
                        None => container["env"] = json!([variable]),
                    }
                }
            }
            match api.create(&row, text(job, "/metadata/namespace"), pod, &Writer::named(self.name())) {
                Ok(made) => {
                    let made = made.value();
                    let message = format!("Created pod: {}", text(&made, "/metadata/name"));
                    self.tell(api, job, false, "SuccessfulCreate", &message)?;
                    let key =
                        ObjectKey::new(text(&made, "/metadata/namespace"), text(&made, "/metadata/name"));
                    pods.active.push((key, made));
                }
                Err(_) if api.is_terminating(text(job, "/metadata/namespace")) => return Ok(()),
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Pods of a held job are not counted; those of one that has ended count as failed, unless they never had a node.
    fn stop(&self, api: &mut Api, pods: &Pods, held: bool) -> Result<(), ApiError> {
        let row = api.row("", "pods")?;
        for (key, pod) in &pods.active {
            if held || text(pod, "/spec/nodeName").is_empty() {
                self.dismiss(api, &row, key)?;
            } else {
                api.remove_object(&row, key, &DeleteOptions::default())?;
            }
        }
        Ok(())
    }

    /// Deletes a pod that is not to be counted: one without a node is gone at once.
    fn dismiss(&self, api: &mut Api, row: &Arc<Resource>, key: &ObjectKey) -> Result<(), ApiError> {
        self.untrack(api, row, key)?;
        api.remove_object(row, key, &DeleteOptions::default())
    }

    fn untrack(&self, api: &mut Api, row: &Arc<Resource>, key: &ObjectKey) -> Result<(), ApiError> {
        api.modify(row, key, Part::Main, self.name(), |object| {
            if let Some(finalizers) = object["metadata"]["finalizers"].as_array_mut() {
                finalizers.retain(|finalizer| finalizer.as_str() != Some(TRACKING));
            }
        })
        .map(|_| ())
    }

    /// Lets go of pods that have been counted.
    fn release(&self, api: &mut Api, pods: &Pods) -> Result<(), ApiError> {
        let row = api.row("", "pods")?;
        for pod in pods.succeeded.iter().chain(&pods.failed) {
            let key = ObjectKey::new(text(pod, "/metadata/namespace"), text(pod, "/metadata/name"));
            self.untrack(api, &row, &key)?;
        }
        Ok(())
    }

    /// Lets go of a pod whose job is gone: nobody will count it.
    fn release_orphan(&self, api: &mut Api, key: &ObjectKey) -> Result<(), ApiError> {
        let Some(pod) = api.store.get(PODS, key).map(|found| found.value()) else { return Ok(()) };
        let owner = controller_of(&pod).filter(|owner| text(owner, "/kind") == "Job");
        let Some(owner) = owner.filter(|_| is_tracked(&pod)) else { return Ok(()) };
        let job = api.store.get(TABLE, &ObjectKey::new(&key.namespace, text(owner, "/name")));
        if job.is_some_and(|job| text(&job.value(), "/metadata/uid") == text(owner, "/uid")) {
            return Ok(());
        }
        let row = api.row("", "pods")?;
        self.untrack(api, &row, key)
    }

    /// Finished jobs go after their time to live.
    fn expire(&self, api: &mut Api, item: &Item, job: &Value) -> Result<Option<Duration>, ApiError> {
        let Some(seconds) = at(job, "/spec/ttlSecondsAfterFinished").and_then(Value::as_i64) else {
            return Ok(None);
        };
        let conditions = at(job, "/status/conditions").and_then(Value::as_array).into_iter().flatten();
        let ended = conditions
            .filter(|condition| matches!(text(condition, "/type"), "Complete" | "Failed"))
            .find_map(|condition| text(condition, "/lastTransitionTime").parse::<Timestamp>().ok());
        let Some(ended) = ended else { return Ok(None) };
        let left = SignedDuration::from_secs(seconds) - api.now().duration_since(ended);
        if let Ok(left) = Duration::try_from(left)
            && !left.is_zero()
        {
            return Ok(Some(left));
        }
        let row = api.row("batch", "jobs")?;
        let options =
            DeleteOptions { propagation_policy: Some(Propagation::Foreground), ..DeleteOptions::default() };
        api.remove_object(&row, &item.key, &options)?;
        Ok(None)
    }

    fn tell(
        &self,
        api: &mut Api,
        job: &Value,
        warning: bool,
        reason: &str,
        message: &str,
    ) -> Result<(), ApiError> {
        record(api, &Happening { about: job, warning, reason, message, component: "job-controller" })
    }
}

fn sort_pods(api: &Api, view: &View, job: &Value) -> Pods {
    let mut out = Pods::default();
    for (key, pod) in view.pods_of(text(job, "/metadata/uid")) {
        let Some(found) = api.store.get(PODS, key) else { continue };
        let value = found.value();
        let uncounted = is_tracked(&value);
        match (pod.over, text(&value, "/status/phase")) {
            (true, "Succeeded") if uncounted => out.succeeded.push(value),
            (true, "Failed") if uncounted => out.failed.push(value),
            (true, _) => {}
            (false, _) if pod.deleting => out.terminating += 1,
            (false, _) => out.active.push((key.clone(), value)),
        }
    }
    out
}

fn is_tracked(pod: &Value) -> bool {
    let finalizers = at(pod, "/metadata/finalizers").and_then(Value::as_array);
    finalizers.into_iter().flatten().any(|finalizer| finalizer.as_str() == Some(TRACKING))
}

fn ready(pods: &Pods) -> usize {
    pods.active.iter().filter(|(_, pod)| condition_is_true(pod, "Ready")).count()
}

fn index_of(pod: &Value) -> Option<u32> {
    at(pod, "/metadata/annotations")?.get(INDEX)?.as_str()?.parse().ok()
}

fn remaining_time(job: &Value, now: Timestamp) -> Option<SignedDuration> {
    let limit = at(job, "/spec/activeDeadlineSeconds").and_then(Value::as_i64)?;
    let started: Timestamp = text(job, "/status/startTime").parse().ok()?;
    Some(SignedDuration::from_secs(limit) - now.duration_since(started))
}

/// How long to wait before the next pod, when the last one failed not long ago.
fn pause_after_failure(pods: &Pods, failed: i64, now: Timestamp) -> Option<Duration> {
    let last: Timestamp = pods
        .failed
        .iter()
        .filter_map(|pod| text(pod, "/status/containerStatuses/0/state/terminated/finishedAt").parse().ok())
        .max()?;
    let doublings = u32::try_from(failed.clamp(1, 10) - 1).unwrap_or(0);
    let pause = (FIRST_PAUSE * 2_u32.pow(doublings)).min(LONGEST_PAUSE);
    let waited = Duration::try_from(now.duration_since(last)).unwrap_or_default();
    pause.checked_sub(waited).filter(|left| !left.is_zero())
}

fn write_status(
    object: &mut Value,
    (active, ready, succeeded, failed, terminating): (usize, usize, i64, i64, usize),
    done: Option<&BTreeSet<u32>>,
    suspended: bool,
    end: Option<&End>,
    time: &Value,
) {
    let status = &mut object["status"];
    if !status.is_object() {
        *status = json!({});
    }
    if suspended {
        status.as_object_mut().map(|status| status.remove("startTime"));
    } else if status.get("startTime").is_none() {
        status["startTime"] = time.clone();
    }
    let counted = [
        ("active", json!(active)),
        ("ready", json!(ready)),
        ("succeeded", json!(succeeded)),
        ("failed", json!(failed)),
        ("terminating", json!(terminating)),
    ];
    for (field, value) in counted {
        if value == json!(0) && !matches!(field, "ready" | "terminating") {
            status.as_object_mut().map(|status| status.remove(field));
        } else {
            status[field] = value;
        }
    }
    status["uncountedTerminatedPods"] = json!({});
    if let Some(done) = done.filter(|done| !done.is_empty()) {
        status["completedIndexes"] = json!(indexes::write(done));
    }
    let mut set = |kind: &str, reason: &str, message: &str| {
        let condition = json!({"type": kind, "status": "True", "reason": reason, "message": message, "lastProbeTime": time});
        set_condition(status, condition, time);
    };
    match end {
        Some(End::Complete) => {
            let message = "Reached expected number of succeeded pods";
            set("SuccessCriteriaMet", "CompletionsReached", message);
            set("Complete", "CompletionsReached", message);
            status["completionTime"] = time.clone();
        }
        Some(End::Failed(reason, message)) => {
            set("FailureTarget", reason, message);
            set("Failed", reason, message);
        }
        None if suspended => set("Suspended", "JobSuspended", "Job suspended"),
        None => {}
    }
}
