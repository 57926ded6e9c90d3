//! A kubeconfig that stands alone.

use serde_json::{Value, json};

/// How a cluster's API server is reached.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Address {
    /// Its URL.
    pub server: String,
    /// The authority that signed its certificate, PEM in base64.
    pub authority: Option<String>,
    /// The name in its certificate, if it is not that of the URL.
    pub tls_server_name: Option<String>,
    /// A proxy on the way.
    pub proxy: Option<String>,
    /// Whether its certificate is accepted unchecked.
    pub insecure: bool,
    /// Whether the user gave the URL, instead of a context: then it stays until another one is given.
    pub given: bool,
}

impl Address {
    /// Whether somebody else could read the credential on its way, or answer instead of the cluster.
    #[must_use]
    pub fn is_insecure(&self) -> bool {
        self.insecure || self.server.starts_with("http://")
    }

    /// A kubeconfig with one context of this name, whose user has this token.
    #[must_use]
    pub fn kubeconfig(&self, name: &str, token: &str) -> Value {
        self.kubeconfig_with(name, json!({ "token": token }))
    }

    /// A kubeconfig with one context of this name, and this user.
    #[must_use]
    pub(crate) fn kubeconfig_with(&self, name: &str, user: Value) -> Value {
        let mut cluster = json!({ "server": self.server });
        let optional = [
            ("certificate-authority-data", self.authority.clone().map(Value::from)),
            ("tls-server-name", self.tls_server_name.clone().map(Value::from)),
            ("proxy-url", self.proxy.clone().map(Value::from)),
            ("insecure-skip-tls-verify", self.insecure.then_some(json!(true))),
        ];
        for (field, value) in optional {
            if let Some(value) = value {
                cluster[field] = value;
            }
        }
        json!({
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": name,
            "clusters": [{ "name": name, "cluster": cluster }],
            "users": [{ "name": "portolan", "user": user }],
            "contexts": [{ "name": name, "context": { "cluster": name, "user": "portolan" } }],
        })
    }
}
