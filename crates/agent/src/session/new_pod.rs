//! Checks of the pod that a session is to be about.

use super::{Pod, SessionError};
use portolan_node::Name;

/// The longest UID: Kubernetes' have 36 characters.
const LONGEST_UID: usize = 64;

impl Pod {
    /// Checks the names, which come from another cluster.
    ///
    /// # Errors
    /// One of them cannot be a name in Kubernetes, or could lead to another folder.
    pub fn new(namespace: &str, name: &str, uid: &str) -> Result<Self, SessionError> {
        for (what, text) in [("namespace", namespace), ("pod", name), ("UID of a pod", uid)] {
            Name::new(what, text)?;
        }
        if uid.len() > LONGEST_UID {
            return Err(SessionError::LongUid { length: uid.len(), limit: LONGEST_UID });
        }
        Ok(Self { namespace: namespace.to_owned(), name: name.to_owned(), uid: uid.to_owned() })
    }
}
