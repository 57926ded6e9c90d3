//! A client whose connections can be replaced while its users go on.
//!
//! A certificate is shown when a connection begins. So a new one needs new connections: requests that begin from then on take
//! these, and a watch that is open goes on over the connection that it has, until it ends by itself.

use kube::Client;
use kube::client::Body;
use std::sync::{Arc, PoisonError, RwLock};

/// The client behind a client.
#[derive(Clone)]
pub(super) struct Switch(Arc<RwLock<Client>>);

impl Switch {
    /// Begins with this client.
    pub(super) fn new(client: Client) -> Self {
        Self(Arc::new(RwLock::new(client)))
    }

    /// The client that its users have.
    pub(super) fn client(&self) -> Client {
        let (switch, namespace) = (self.clone(), self.current().default_namespace().to_owned());
        let send = tower::service_fn(move |request: http::Request<Body>| {
            let client = switch.current();
            async move { client.send(request).await }
        });
        Client::new(send, namespace)
    }

    /// Sends what begins from now on by this client.
    pub(super) fn set(&self, client: Client) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = client;
    }

    fn current(&self) -> Client {
        self.0.read().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::convert::Infallible;

    fn saying(version: &'static str) -> Client {
        let send = tower::service_fn(move |_: http::Request<Body>| async move {
            let text = format!(
                r#"{{"major":"1","minor":"33","gitVersion":"{version}","gitCommit":"","gitTreeState":"","buildDate":"","goVersion":"","compiler":"","platform":""}}"#
            );
            Ok::<_, Infallible>(http::Response::new(Body::from(text.into_bytes())))
        });
        Client::new(send, "default")
    }

    #[tokio::test]
    async fn who_has_the_client_goes_on_with_the_new_connections() {
        let switch = Switch::new(saying("v1"));
        let client = switch.client();
        assert_eq!(client.apiserver_version().await.unwrap().git_version, "v1");
        switch.set(saying("v2"));
        assert_eq!(client.apiserver_version().await.unwrap().git_version, "v2");
    }
}
