//! What may be said about how a request is carried out.

use serde_json::{Value, json};

use super::query::Query;
use crate::error::{ApiError, Cause};

/// The longest name of a field manager, in bytes.
const LONGEST_MANAGER: usize = 128;
const POLICIES: &[&str] = &["Foreground", "Background", "Orphan", "nil"];

impl Query {
    /// Refuses options of a write that make no sense; `kind` is what Kubernetes calls them.
    pub(super) fn check_write(&self, kind: &str, mut causes: Vec<Cause>) -> Result<(), ApiError> {
        let manager = self.text("fieldManager").unwrap_or_default();
        if manager.len() > LONGEST_MANAGER {
            causes.push(Cause::too_long("fieldManager", LONGEST_MANAGER));
        }
        for (at, letter) in manager.char_indices().filter(|(_, letter)| letter.is_control()) {
            let detail = format!("invalid character U+{:04X} (at position {at})", u32::from(letter));
            causes.push(Cause::invalid("fieldManager", &json!(manager), &detail));
        }
        causes.extend(self.text("dryRun").and_then(|value| dry_run(&[json!(value)])));
        if let Some(word) =
            self.text("fieldValidation").filter(|word| !matches!(*word, "Ignore" | "Strict" | "Warn"))
        {
            let known = &["", "Ignore", "Strict", "Warn"];
            causes.push(Cause::unsupported("fieldValidation", &json!(word), known));
        }
        refuse(kind, &causes)
    }

    /// Refuses options of a list or watch that do not go together.
    pub(super) fn check_list(&self, watch: bool) -> Result<(), ApiError> {
        let given = self.text("resourceVersionMatch");
        let forbid = |why: &str| Cause::forbidden("resourceVersionMatch", why);
        let initial = self.text("sendInitialEvents").is_some();
        let mut causes = Vec::new();
        if watch && initial && given != Some("NotOlderThan") {
            causes.push(forbid("sendInitialEvents requires setting resourceVersionMatch to NotOlderThan"));
        }
        if !watch && initial {
            causes.push(Cause::forbidden("sendInitialEvents", "sendInitialEvents is forbidden for list"));
        }
        let Some(given) = given else { return refuse("ListOptions", &causes) };
        let version = self.text("resourceVersion");
        if watch && !initial {
            causes.push(forbid(
                "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided",
            ));
        }
        if !watch && version.is_none() {
            causes.push(forbid("resourceVersionMatch is forbidden unless resourceVersion is provided"));
        }
        if self.text("continue").is_some() {
            causes.push(forbid("resourceVersionMatch is forbidden when continue is provided"));
        }
        let known: &[&str] = if watch { &["NotOlderThan"] } else { &["Exact", "NotOlderThan", ""] };
        if !known.contains(&given) {
            causes.push(Cause::unsupported("resourceVersionMatch", &json!(given), known));
        }
        if !watch && given == "Exact" && version == Some("0") {
            causes.push(forbid("resourceVersionMatch \"exact\" is forbidden for resourceVersion \"0\""));
        }
        refuse("ListOptions", &causes)
    }
}

/// Refuses options of a deletion that make no sense.
pub(super) fn check_delete(options: &Value) -> Result<(), ApiError> {
    let mut causes = Vec::new();
    let policy = options.get("propagationPolicy").filter(|policy| !policy.is_null());
    if let Some(policy) = policy {
        if options.get("orphanDependents").is_some_and(Value::is_boolean) {
            let detail = "orphanDependents and deletionPropagation cannot be both set";
            causes.push(Cause::invalid("propagationPolicy", policy, detail));
        }
        if policy.as_str().is_some_and(|policy| policy == "nil" || !POLICIES.contains(&policy)) {
            causes.push(Cause::unsupported("propagationPolicy", policy, POLICIES));
        }
    }
    let listed = options.get("dryRun").and_then(Value::as_array);
    causes.extend(listed.and_then(|listed| dry_run(listed)));
    refuse("DeleteOptions", &causes)
}

fn dry_run(given: &[Value]) -> Option<Cause> {
    let known = given.iter().all(|value| value == "All");
    (!known).then(|| Cause::unsupported("dryRun", &json!(given), &["All"]))
}

fn refuse(kind: &str, causes: &[Cause]) -> Result<(), ApiError> {
    if causes.is_empty() { Ok(()) } else { Err(ApiError::invalid("meta.k8s.io", kind, "", causes)) }
}
