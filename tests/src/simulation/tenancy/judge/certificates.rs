//! For which keys certificates are signed.

use super::{Happened, text};
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use portolan_core::tenancy::CertificateRequest;
use portolan_core::tenancy::names::Tenant;
use serde_json::Value;
use std::collections::BTreeMap;

/// Cluster and invitation.
type Invited = (String, String);

#[derive(Default)]
pub(super) struct Certificates {
    /// The key on record, by invitation (and the uid of its object).
    recorded: BTreeMap<Invited, (String, String)>,
    /// The key that a certificate was signed for, by invitation.
    signed: BTreeMap<Invited, String>,
}

fn digest(request: &Value) -> Option<String> {
    let bytes = BASE64_STANDARD.decode(request["spec"]["request"].as_str()?).ok()?;
    CertificateRequest::read(&bytes).ok().map(|read| read.key_digest)
}

impl Certificates {
    /// An Invitation is made, changed or deleted.
    pub(super) fn recorded(&mut self, what: &Happened<'_>) -> Vec<String> {
        let Some(key) = what.object["status"]["keyDigest"].as_str().filter(|_| !what.gone) else {
            return Vec::new();
        };
        let invited = (what.cluster().to_owned(), what.place.2.clone());
        let uid = text(&what.object["metadata"]["uid"]);
        let before = self.recorded.insert(invited, (uid.clone(), key.to_owned()));
        match before {
            Some((same, before)) if same == uid && before != key => {
                vec![format!("invitation {} is used by key {before}, and then by {key}", what.place.2)]
            }
            _ => Vec::new(),
        }
    }

    /// A request for a certificate is made, approved, signed or deleted.
    pub(super) fn requested(&mut self, what: &Happened<'_>) -> Vec<String> {
        let status = &what.object["status"];
        let approved =
            status["conditions"].as_array().into_iter().flatten().any(|each| each["type"] == "Approved");
        if what.gone || !approved {
            return Vec::new();
        }
        let name = &what.place.2;
        let Some(key) = digest(what.object) else {
            return vec![format!("{name} is approved and cannot be read")];
        };
        if let Some(id) = name.strip_prefix("portolan-invitation-") {
            let invited = (what.cluster().to_owned(), id.to_owned());
            let mut problems = Vec::new();
            match self.recorded.get(&invited) {
                Some((_, recorded)) if *recorded == key => {}
                recorded => {
                    problems.push(format!("{name} is approved for key {key}, and {recorded:?} is on record"))
                }
            }
            let before = self.signed.insert(invited, key.clone());
            if before.as_ref().is_some_and(|before| *before != key) {
                problems.push(format!("{name} is approved for two keys"));
            }
            return problems;
        }
        if name.starts_with("portolan-renewal-") {
            let asker = text(&what.object["spec"]["username"]);
            let own = Tenant::of_user(&asker).is_some_and(|tenant| tenant.renewal() == *name);
            if !own {
                return vec![format!("{name} is approved for {asker}")];
            }
        }
        Vec::new()
    }
}
