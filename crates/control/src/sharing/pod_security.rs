//! What pods may do in the namespaces of tenants: pure.
//!
//! What the owner of a namespace says holds. What Portolan said follows the class, and is taken back in the end; an annotation
//! tells the two apart.

use super::known::NamespaceFacts;
use crate::names::{POD_SECURITY_LABEL, POD_SECURITY_SET};
use portolan_api::sharing::PodSecurity;
use serde_json::{Value, json};

/// The level to write, if another one is due. Nothing is known of the class where the last offer stands.
pub(super) fn due(facts: &NamespaceFacts, is_home: bool, class: Option<PodSecurity>) -> Option<PodSecurity> {
    match &facts.pod_security {
        None => Some(class.unwrap_or_default()),
        // Nobody but Portolan has made the namespace of an offer.
        Some(level) if is_home || facts.pod_security_set.as_ref() == Some(level) => {
            class.filter(|class| class.as_str() != level)
        }
        Some(_) => None,
    }
}

/// What writes a level.
pub(super) fn set(level: PodSecurity) -> Value {
    json!({"metadata": {
        "labels": { POD_SECURITY_LABEL: level.as_str() }, "annotations": { POD_SECURITY_SET: level.as_str() },
    }})
}

/// What takes back a level that was set, unless somebody has changed it since.
pub(super) fn take_back(facts: &NamespaceFacts) -> Value {
    let mut patch = json!({"metadata": { "annotations": { POD_SECURITY_SET: null } }});
    if facts.pod_security == facts.pod_security_set {
        patch["metadata"]["labels"] = json!({ POD_SECURITY_LABEL: null });
    }
    patch
}

#[cfg(test)]
mod tests {
    use super::*;
    use PodSecurity::{Baseline, Restricted};

    #[test]
    fn what_the_owner_says_holds_and_what_was_set_follows_the_class() {
        let facts = |level: Option<&str>, set: Option<&str>| NamespaceFacts {
            pod_security: level.map(str::to_owned),
            pod_security_set: set.map(str::to_owned),
            ..NamespaceFacts::default()
        };
        assert_eq!(due(&facts(None, None), false, Some(Restricted)), Some(Restricted));
        assert_eq!(due(&facts(None, None), false, None), Some(Baseline));
        assert_eq!(due(&facts(Some("privileged"), None), false, Some(Restricted)), None);
        assert_eq!(due(&facts(Some("baseline"), None), true, Some(Restricted)), Some(Restricted));
        let ours = facts(Some("baseline"), Some("baseline"));
        assert_eq!(due(&ours, false, Some(Restricted)), Some(Restricted));
        assert_eq!(due(&ours, false, Some(Baseline)), None);
        assert_eq!(due(&ours, false, None), None);
        let changed = facts(Some("privileged"), Some("baseline"));
        assert_eq!(due(&changed, false, Some(Restricted)), None);
        assert!(take_back(&changed)["metadata"].get("labels").is_none());
        assert!(take_back(&ours)["metadata"]["labels"][POD_SECURITY_LABEL].is_null());
    }
}
