//! Requests that are held up on their way and arrive late, whoever waits for them or not.

use http::{Method, Request, Response};
use kube::Client;
use kube::client::Body;
use portolan_sandbox::Cluster;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
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
    refusals: Mutex<Vec<Refusal>>,
}

/// What one cluster refuses.
#[derive(Clone)]
struct Refusal {
    cluster: String,
    method: Method,
    path: String,
    code: u16,
    message: String,
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

    /// Lets a cluster answer requests of this method whose path has this part with an error, from now on.
    ///
    /// # Panics
    /// A test has panicked before.
    pub fn refuse(&self, cluster: &str, method: Method, path: &str, code: u16, message: &str) {
        let (cluster, path, message) = (cluster.to_owned(), path.to_owned(), message.to_owned());
        let refusal = Refusal { cluster, method, path, code, message };
        self.0.refusals.lock().expect("no test has panicked").push(refusal);
    }

    /// Refuses nothing any more.
    ///
    /// # Panics
    /// A test has panicked before.
    pub fn accept(&self) {
        self.0.refusals.lock().expect("no test has panicked").clear();
    }

    fn refusal(&self, cluster: &str, request: &Request<Body>) -> Option<Response<Body>> {
        let refusals = self.0.refusals.lock().ok()?;
        let refusal = refusals.iter().find(|each| {
            each.cluster == cluster
                && each.method == *request.method()
                && request.uri().path().contains(&each.path)
        })?;
        let status = serde_json::json!({
            "kind": "Status", "apiVersion": "v1", "status": "Failure", "metadata": {},
            "message": refusal.message, "reason": "Refused", "code": refusal.code,
        });
        let response = Response::builder().status(refusal.code).header("content-type", "application/json");
        response.body(Body::from(status.to_string().into_bytes())).ok()
    }

    /// A client of the cluster, through the gate.
    #[must_use]
    pub fn client(&self, cluster: &Cluster, party: &str) -> Client {
        let (gate, beyond, name) = (self.clone(), cluster.client(party), cluster.name().to_owned());
        let service = tower::service_fn(move |request: Request<Body>| {
            let refused = gate.refusal(&name, &request);
            let (gate, beyond) = (gate.clone(), beyond.clone());
            async move {
                match refused {
                    Some(response) => Ok(response),
                    None => gate.pass(beyond, request).await,
                }
            }
        });
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
