//! A way to an API server.

use kube::{Client, Config};

/// A way to an API server, and with which credential.
pub(super) struct Way {
    pub(super) config: Config,
    pub(super) client: Client,
    pub(super) credential: Credential,
}

/// A credential, never its content.
pub(super) struct Credential {
    /// Whose it is, in words.
    pub(super) called: String,
    /// How to get another one.
    pub(super) renew: &'static str,
}
