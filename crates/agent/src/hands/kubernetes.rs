//! What the caller knows: pods of the API server, and the other agent.

use crate::session::{HandsError, SessionInfo};
use crate::transfer::{Credentials, Receiver, SessionKey, SessionLimits, Ticket};
use portolan_node::Name;
use std::net::SocketAddr;
use std::sync::Arc;

/// A pod, as the API server has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PodState {
    /// Its UID in this cluster.
    pub uid: String,
    /// Whether it is marked for deletion.
    pub terminating: bool,
    /// Why it cannot be created or its containers cannot be made, if that is so.
    pub failure: Option<String>,
    /// Whether its status says that its migration is committed.
    pub committed: bool,
    /// The hostname of its containers, if it is known.
    pub hostname: Option<String>,
    /// The containers of its spec.
    pub containers: Vec<Name>,
    /// The emptyDir volumes of its spec.
    pub volumes: Vec<Name>,
}

/// The pods of this cluster. At the source it is about the pod that leaves, at the destination about the one that was created for
/// the migration.
pub trait Pods: Send + Sync + 'static {
    /// Refuses a pod that cannot be moved while it runs.
    fn check(&self, session: &SessionInfo) -> impl Future<Output = Result<(), HandsError>> + Send;

    /// The pod; none if there is none. Called several times a second.
    fn get(&self, session: &SessionInfo)
    -> impl Future<Output = Result<Option<PodState>, HandsError>> + Send;

    /// Creates the pod, with the RuntimeClass of `portolan-runc` and the annotation that names the migration. That it exists
    /// already is no error.
    fn create(&self, session: &SessionInfo) -> impl Future<Output = Result<(), HandsError>> + Send;

    /// Says in the status of the pod with this UID that its migration is committed: only then it can be Ready. That there is none is
    /// no error.
    fn mark_committed(
        &self,
        session: &SessionInfo,
        uid: &str,
    ) -> impl Future<Output = Result<(), HandsError>> + Send;

    /// Deletes the pod if it has this UID. That there is none is no error.
    fn delete(&self, session: &SessionInfo, uid: &str)
    -> impl Future<Output = Result<(), HandsError>> + Send;
}

/// Where a source sends to.
pub struct Route {
    /// What it shows, and whom it accepts.
    pub credentials: Credentials,
    /// The address of the receiving agent.
    pub address: SocketAddr,
    /// What the session of the transfer is called at both ends.
    pub key: SessionKey,
    /// What entitles to it.
    pub ticket: Ticket,
}

/// What a source was told about the destination.
pub trait SourceTickets: Send + Sync + 'static {
    /// Where to send to.
    fn route(&self, session: &SessionInfo) -> impl Future<Output = Result<Route, HandsError>> + Send;
}

/// What a destination expects.
pub struct Expected {
    /// The receiver, which the caller serves and which accepts the peer.
    pub receiver: Arc<Receiver>,
    /// The name of the peer there.
    pub peer: String,
    /// What the session of the transfer is called at both ends.
    pub key: SessionKey,
    /// What the source shows.
    pub ticket: Ticket,
    /// How much may arrive.
    pub limits: SessionLimits,
}

/// What a destination was told about the source.
pub trait DestinationTickets: Send + Sync + 'static {
    /// What to expect.
    fn expected(&self, session: &SessionInfo) -> impl Future<Output = Result<Expected, HandsError>> + Send;
}
