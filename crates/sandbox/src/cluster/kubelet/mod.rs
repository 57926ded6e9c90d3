//! Simulated nodes: pods start, become ready, run, end and stop after their times.

mod status;

use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;

use super::queue::{Item, Queue};
use super::view::View;
use super::{Controller, Seen, deleting, text};
use crate::api::Api;
use crate::error::ApiError;
use crate::kinds::condition_is_true;
use crate::profile::Behaviour;
use crate::store::{EventKind, ObjectKey, at};
use crate::verbs::{DeleteOptions, Part};
use crate::world::ClusterConfig;

/// The first address of pods: 10.244.0.0.
const FIRST_ADDRESS: u32 = 0x0af4_0000;
/// How a container ends that is told to stop and does not care.
const TERMINATED: i32 = 143;

/// What a pod does next, and when, on the tokio clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    /// The node has seen it and makes its containers.
    Create,
    /// The containers run.
    Run,
    /// They are ready.
    Serve,
    /// They end.
    End,
    /// They were told to stop, and have.
    Stop,
}

/// All kubelets of a cluster.
pub(super) struct Kubelet {
    start_up: Duration,
    shut_down: Duration,
    run_time: Duration,
    steps: BTreeMap<ObjectKey, (Step, tokio::time::Instant)>,
    /// What each node has fetched.
    images: BTreeSet<(Arc<str>, Arc<str>)>,
    addresses: u32,
}

impl Kubelet {
    pub(super) fn new(config: &ClusterConfig) -> Self {
        Self {
            start_up: config.start_up,
            shut_down: config.shut_down,
            run_time: config.run_time,
            steps: BTreeMap::new(),
            images: BTreeSet::new(),
            addresses: 0,
        }
    }

    /// The next thing that happens to a pod, and how long after the last one.
    fn next_step(&self, pod: &Value, behaviour: &Behaviour) -> Option<(Step, Duration)> {
        let ready_again = text(pod, "/status/phase") == "Running"
            && !condition_is_true(pod, "Ready")
            && status::containers_are_ready(pod);
        // What was ready before its node fell silent is so at once.
        if ready_again {
            return Some((Step::Serve, Duration::ZERO));
        }
        if deleting(pod) {
            let grace = at(pod, "/metadata/deletionGracePeriodSeconds").and_then(Value::as_u64).unwrap_or(0);
            let stop = behaviour.shut_down.unwrap_or(self.shut_down);
            return Some((Step::Stop, stop.min(Duration::from_secs(grace))));
        }
        match text(pod, "/status/phase") {
            "Pending" | "" if at(pod, "/status/containerStatuses").is_none() => {
                Some((Step::Create, Duration::ZERO))
            }
            "Pending" | "" => {
                let start = behaviour.start_up.unwrap_or(self.start_up);
                Some((Step::Run, self.fetch_time(pod, behaviour) + start))
            }
            "Running" => {
                let readiness = behaviour.readiness.unwrap_or_default();
                let always = text(pod, "/spec/restartPolicy") == "Always";
                let run = behaviour.run_time.or(if always { None } else { Some(self.run_time) });
                if condition_is_true(pod, "Ready") {
                    return run.map(|run| (Step::End, run.saturating_sub(readiness)));
                }
                match run.filter(|run| *run < readiness) {
                    Some(run) => Some((Step::End, run)),
                    None => Some((Step::Serve, readiness)),
                }
            }
            _ => None,
        }
    }

    /// How long the node takes to have the image.
    fn fetch_time(&self, pod: &Value, behaviour: &Behaviour) -> Duration {
        let image = (text(pod, "/spec/nodeName").into(), text(pod, "/spec/containers/0/image").into());
        let always = text(pod, "/spec/containers/0/imagePullPolicy") == "Always";
        let there = !always && self.images.contains(&image);
        behaviour.image_pull.filter(|_| !there).unwrap_or_default()
    }
}

impl Controller for Kubelet {
    fn name(&self) -> &'static str {
        "kubelet"
    }

    fn observe(&mut self, seen: &Seen, view: &View, queue: &mut Queue) {
        if &*seen.table == "/nodes" && seen.kind != EventKind::Deleted {
            // Pods may have been bound to a node before it was there, or while it was silent.
            for (key, pod) in view.pods.iter().filter(|(_, pod)| pod.node == seen.key.name) {
                if !pod.over {
                    queue.add(Item::new("/pods", key));
                }
            }
        }
        if &*seen.table != "/pods" {
            return;
        }
        if seen.kind == EventKind::Deleted {
            self.steps.remove(&seen.key);
        } else if !text(&seen.object, "/spec/nodeName").is_empty() {
            queue.add(Item::new("/pods", &seen.key));
        }
    }

    fn reconcile(&mut self, item: &Item, api: &mut Api, view: &View) -> Result<Option<Duration>, ApiError> {
        let Some(found) = api.store.get("/pods", &item.key) else { return Ok(None) };
        let pod = found.value();
        let node = text(&pod, "/spec/nodeName");
        let simulated =
            view.nodes.get(node).is_some_and(|node| node.simulated) && !api.silent_nodes.contains_key(node);
        let behaviour = api.profile.of(&pod);
        let Some((step, after)) = self.next_step(&pod, &behaviour).filter(|_| simulated) else {
            self.steps.remove(&item.key);
            return Ok(None);
        };
        let now = tokio::time::Instant::now();
        let due = match self.steps.get(&item.key) {
            Some((planned, due)) if *planned == step => *due,
            _ => now + after,
        };
        if due > now {
            self.steps.insert(item.key.clone(), (step, due));
            return Ok(Some(due - now));
        }
        self.steps.remove(&item.key);
        self.take(step, api, &item.key, &pod, view, &behaviour)?;
        Ok(None)
    }
}

impl Kubelet {
    fn take(
        &mut self,
        step: Step,
        api: &mut Api,
        key: &ObjectKey,
        pod: &Value,
        view: &View,
        behaviour: &Behaviour,
    ) -> Result<(), ApiError> {
        let row = api.row("", "pods")?;
        let time = api.time();
        let name = self.name();
        match step {
            Step::Create => {
                let node = view.nodes.get(text(pod, "/spec/nodeName"));
                let host = node.map(|node| text(&node.object, "/status/addresses/0/address").to_owned());
                let host = host.unwrap_or_default();
                api.modify(&row, key, Part::Status, name, |pod| status::creating(pod, &host, &time))?;
            }
            Step::Run => {
                let image = text(pod, "/spec/containers/0/image").into();
                self.images.insert((text(pod, "/spec/nodeName").into(), image));
                self.addresses = self.addresses.wrapping_add(1) % 0xffff;
                let address = Ipv4Addr::from(FIRST_ADDRESS + self.addresses).to_string();
                let id = api.new_uid();
                let ready = behaviour.readiness.is_none_or(|readiness| readiness.is_zero());
                api.modify(&row, key, Part::Status, name, |pod| {
                    status::running(pod, &address, &id, ready, &time);
                })?;
            }
            Step::Serve => {
                api.modify(&row, key, Part::Status, name, |pod| status::ready(pod, &time))?;
            }
            Step::End => {
                let codes = behaviour.exit_codes.as_deref().unwrap_or_default();
                let code = codes.get(ended_before(pod, view)).or(codes.last()).copied().unwrap_or(0);
                let policy = text(pod, "/spec/restartPolicy");
                let again = policy == "Always" || policy == "OnFailure" && code != 0;
                api.modify(&row, key, Part::Status, name, |pod| {
                    if again { status::restarted(pod, code, &time) } else { status::ended(pod, code, &time) }
                })?;
            }
            Step::Stop => {
                if text(pod, "/status/phase") == "Running" {
                    let code = match text(pod, "/spec/restartPolicy") {
                        "Always" => behaviour.exit_codes.as_ref().and_then(|codes| codes.last()).copied(),
                        _ => Some(TERMINATED),
                    };
                    api.modify(&row, key, Part::Status, name, |pod| {
                        status::ended(pod, code.unwrap_or(0), &time);
                    })?;
                }
                let options = DeleteOptions { grace_period_seconds: Some(0), ..DeleteOptions::default() };
                api.remove_object(&row, key, &options)?;
            }
        }
        Ok(())
    }
}

/// How many pods of the same owner have ended already.
fn ended_before(pod: &Value, view: &View) -> usize {
    let owner = super::controller_of(pod).map(|owner| text(owner, "/uid")).unwrap_or_default();
    view.pods_of(owner).filter(|(_, pod)| pod.over).count()
}
