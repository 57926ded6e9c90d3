//! Requests that are held up on their way and arrive late, whoever waits for them or not.

use http::{Request, Response};
use kube::Client;
use kube::client::Body;
use portolan_sandbox::Cluster;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use tokio::sync::Notify;

/// Stands between a party and the clusters; what changes something is held up while it is closed.
///
/// A held request is on its way: it arrives when the gate opens, although its sender has long given up on it. So it is
/// with packets, and with processes that stand still between looking at the clock and sending.
#[derive(Clone, Default)]
pub struct Gate(Arc<State>);

#[derive(Default)]
struct State {
    closed: AtomicBool,
    held: AtomicUsize,
    opened: Notify,
}

impl Gate {
    /// Holds up what changes something from now on.
    pub fn close(&self) {
        self.0.closed.store(true, Ordering::SeqCst);
    }

    /// Lets all arrive that was held up.
    pub fn open(&self) {
        self.0.closed.store(false, Ordering::SeqCst);
        self.0.opened.notify_waiters();
    }

    /// How many requests were held up so far.
    #[must_use]
    pub fn held(&self) -> usize {
        self.0.held.load(Ordering::SeqCst)
    }

    /// A client of the cluster, through the gate.
    #[must_use]
    pub fn client(&self, cluster: &Cluster, party: &str) -> Client {
        let (gate, beyond) = (self.clone(), cluster.client(party));
        let service =
            tower::service_fn(move |request: Request<Body>| gate.clone().pass(beyond.clone(), request));
        Client::new(service, "default")
    }

    async fn pass(self, beyond: Client, request: Request<Body>) -> Result<Response<Body>, kube::Error> {
        if request.method() == http::Method::GET || !self.0.closed.load(Ordering::SeqCst) {
            return beyond.send(request).await;
        }
        self.0.held.fetch_add(1, Ordering::SeqCst);
        tokio::spawn(async move {
            self.0.opened.notified().await;
            // Nobody waits for the answer any more.
            let _ = beyond.send(request).await;
        });
        std::future::pending().await
    }
}
