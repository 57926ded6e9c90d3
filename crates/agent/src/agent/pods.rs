//! The pods of the agent's cluster.

use super::briefing::Briefings;
use super::movable::why_not;
use super::pod_state::state;
use super::restored_pod::{committed_status, restored_in, restored_pod};
use crate::hands::{PodState, Pods};
use crate::session::{HandsError, Role, SessionInfo};
use k8s_openapi::api::core::v1::Pod;
use kube::Client;
use kube::api::{Api, DeleteParams, Patch, PatchParams, PostParams, Preconditions};
use portolan_runtime::{Clock, call};

/// The pods of the agent's cluster, for sessions of one role.
pub(super) struct ClusterPods {
    client: Client,
    /// The name of the Node that the agent runs on.
    node: String,
    role: Role,
    briefings: Briefings,
    clock: Clock,
}

impl ClusterPods {
    pub(super) fn new(client: Client, node: String, role: Role, briefings: Briefings, clock: Clock) -> Self {
        Self { client, node, role, briefings, clock }
    }

    fn api(&self, session: &SessionInfo) -> Api<Pod> {
        Api::namespaced(self.client.clone(), session.pod.namespace())
    }

    /// The pod of that name. At the destination, another one than was created for the migration is none.
    async fn find(&self, session: &SessionInfo) -> Result<Option<Pod>, HandsError> {
        let api = self.api(session);
        let request = Box::pin(api.get_opt(session.pod.name()));
        let found = call(format!("get pod {}", session.pod), request).await.map_err(HandsError::new)?;
        let ours = |pod: &Pod| match self.role {
            Role::Source => true,
            Role::Destination => restored_in(pod) == Some(session.migration.as_str()),
        };
        Ok(found.filter(ours))
    }
}

impl Pods for ClusterPods {
    async fn check(&self, session: &SessionInfo) -> Result<(), HandsError> {
        if self.role == Role::Destination {
            let source = self.briefings.destination(session)?.pod;
            return restored_pod(&source, session, &self.node).map(drop);
        }
        let refused = |why: &str| HandsError::refusal(format!("pod {}: {why}", session.pod));
        let Some(pod) = self.find(session).await? else { return Err(refused("it does not exist")) };
        if pod.metadata.uid.as_deref() != Some(session.pod.uid()) {
            return Err(refused("another pod has its name by now"));
        }
        why_not(&pod).map_or(Ok(()), |why| Err(refused(&format!("it cannot be moved while it runs: {why}"))))
    }

    async fn get(&self, session: &SessionInfo) -> Result<Option<PodState>, HandsError> {
        let found = self.find(session).await?;
        found.as_ref().map(state).transpose().map_err(HandsError::new)
    }

    async fn create(&self, session: &SessionInfo) -> Result<(), HandsError> {
        let source = self.briefings.destination(session)?.pod;
        let pod = restored_pod(&source, session, &self.node)?;
        let (api, params) = (self.api(session), PostParams::default());
        let request = Box::pin(api.create(&params, &pod));
        let created = call(format!("create pod {}", session.pod), request).await;
        match created {
            Ok(_) => Ok(()),
            Err(error) if error.is_conflict() => match self.find(session).await? {
                Some(_) => Ok(()),
                None => Err(HandsError::new(format!(
                    "pod {} exists at the destination and does not belong to the migration: delete or rename it",
                    session.pod
                ))),
            },
            Err(error) => Err(HandsError::new(error)),
        }
    }

    async fn mark_committed(&self, session: &SessionInfo, uid: &str) -> Result<(), HandsError> {
        let (api, params) = (self.api(session), PatchParams::default());
        let time = self.clock.now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
        let patch = Patch::Strategic(committed_status(uid, &time));
        let request = Box::pin(api.patch_status(session.pod.name(), &params, &patch));
        let marked = call(format!("patch the status of pod {}", session.pod), request).await;
        match marked {
            Ok(_) => Ok(()),
            // It is gone, or another pod has its name by now.
            Err(error) if error.is_not_found() || error.is_conflict() => Ok(()),
            Err(error) => Err(HandsError::new(error)),
        }
    }

    async fn delete(&self, session: &SessionInfo, uid: &str) -> Result<(), HandsError> {
        let only = Preconditions { uid: Some(uid.to_owned()), resource_version: None };
        let (api, params) = (self.api(session), DeleteParams::default().preconditions(only));
        let request = Box::pin(api.delete(session.pod.name(), &params));
        let deleted = call(format!("delete pod {}", session.pod), request).await;
        match deleted {
            Ok(_) => Ok(()),
            // It is gone, or another pod has its name by now.
            Err(error) if error.is_not_found() || error.is_conflict() => Ok(()),
            Err(error) => Err(HandsError::new(error)),
        }
    }
}
