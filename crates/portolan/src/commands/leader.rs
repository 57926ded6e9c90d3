//! Whether a controller leads, as its Lease says.

use crate::clean;
use crate::cli::LeaseArgs;
use crate::failure::Failure;
use crate::human::age;
use crate::kind::Kind;
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::coordination::v1::Lease;
use kube::api::ListParams;
use kube::{Api, Client};
use portolan_runtime::{CallError, LEASE_DURATION, call};
use std::time::Duration;

/// A leader renews its Lease more often than this.
const RENEWED_WITHIN: Duration = Duration::from_secs(4);

/// How often to look at a Lease that seems to have expired.
const OFTEN: Duration = Duration::from_millis(500);

/// A controller at work writes every minute or so that it has seen a member that answers.
const SEEN_WITHIN: SignedDuration = SignedDuration::from_secs(180);

/// Namespace and name of the Lease.
pub(super) fn place(args: &LeaseArgs) -> String {
    format!("{}/{}", args.lease_namespace, args.lease_name)
}

/// The Lease of the controllers, if it exists.
pub(super) async fn lease(hub: &Client, args: &LeaseArgs) -> Result<Option<Lease>, CallError> {
    let api: Api<Lease> = Api::namespaced(hub.clone(), &args.lease_namespace);
    call(format!("read Lease {}", place(args)), api.get_opt(&args.lease_name)).await
}

/// That no controller leads, and since when; nothing if one does.
pub(super) async fn problem(hub: &Client, args: &LeaseArgs) -> Result<Option<String>, Failure> {
    let mut found = read(hub, args).await?;
    let first = found.as_ref().map(|term| term.renewed);
    // The clock of this machine and that of the controller may differ: a Lease that is renewed is held.
    let mut waited = Duration::ZERO;
    while found.as_ref().is_some_and(|term| term.is_held && term.is_over(Timestamp::now())) {
        if waited >= RENEWED_WITHIN {
            break;
        }
        tokio::time::sleep(OFTEN).await;
        waited += OFTEN;
        found = read(hub, args).await?;
        if found.as_ref().map(|term| term.renewed) != first {
            return Ok(None);
        }
    }
    let now = Timestamp::now();
    if found.as_ref().is_some_and(|term| term.is_held && !term.is_over(now)) {
        return Ok(None);
    }
    // Without leader election there is no Lease, or an old one.
    let since = found.as_ref().and_then(Term::end);
    let works =
        |seen: Timestamp| now.duration_since(seen) < SEEN_WITHIN && since.is_none_or(|since| seen > since);
    if last_seen(hub).await.is_some_and(works) {
        return Ok(None);
    }
    Ok(Some(told(found.as_ref(), &place(args), now)))
}

/// What a Lease says about the latest term.
struct Term {
    holder: String,
    is_held: bool,
    renewed: Option<Timestamp>,
    duration: SignedDuration,
}

impl Term {
    /// When it ended or will end, unless the Lease is renewed.
    fn end(&self) -> Option<Timestamp> {
        self.renewed?.checked_add(self.duration).ok()
    }

    fn is_over(&self, now: Timestamp) -> bool {
        self.end().is_none_or(|end| end < now)
    }
}

async fn read(hub: &Client, args: &LeaseArgs) -> Result<Option<Term>, Failure> {
    let found = lease(hub, args).await.map_err(|error| Failure::call(&error))?;
    Ok(found.map(|lease| term(&lease)))
}

fn term(lease: &Lease) -> Term {
    let spec = lease.spec.clone().unwrap_or_default();
    let holder = spec.holder_identity.unwrap_or_default();
    let usual = i32::try_from(LEASE_DURATION.as_secs()).unwrap_or(i32::MAX);
    Term {
        is_held: !holder.is_empty(),
        holder: clean::line(&holder),
        renewed: spec.renew_time.map(|time| time.0),
        duration: SignedDuration::from_secs(spec.lease_duration_seconds.unwrap_or(usual).into()),
    }
}

/// When a controller last wrote that a member answers. Who may not list members does not know.
async fn last_seen(hub: &Client) -> Option<Timestamp> {
    let members = Kind::Cluster.list(hub, None, &ListParams::default()).await.unwrap_or_default();
    members.iter().filter_map(|member| member["status"]["lastSeen"].as_str()?.parse().ok()).max()
}

fn told(term: Option<&Term>, place: &str, now: Timestamp) -> String {
    let help = "Start `portolan controller` for the hub";
    match term {
        None => format!("no controller has led yet: Lease {place} does not exist. {help}"),
        Some(Term { holder, is_held, renewed, .. }) => {
            let by = if *is_held { format!(" by {holder}") } else { String::new() };
            let ago = age(*renewed, now);
            format!(
                "no controller leads: Lease {place} was last renewed {ago} ago{by}. The rest is as of then. {help}"
            )
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn lease(holder: &str) -> Lease {
        let spec = json!({"holderIdentity": holder, "leaseDurationSeconds": 15, "renewTime": "2026-01-01T00:00:00.000000Z"});
        serde_json::from_value(json!({"metadata": {"name": "x"}, "spec": spec})).unwrap()
    }

    #[test]
    fn a_lease_that_is_not_renewed_in_time_is_held_by_nobody() {
        let after = |seconds: i64| {
            "2026-01-01T00:00:00Z".parse::<Timestamp>().unwrap() + SignedDuration::from_secs(seconds)
        };
        let held = term(&lease("a_1"));
        assert!(held.is_held && !held.is_over(after(14)) && held.is_over(after(16)));
        let text = told(Some(&held), "portolan/x", after(68));
        assert!(text.contains("no controller leads") && text.contains("68s ago by a_1"), "{text}");
        let released = term(&lease(""));
        assert!(!released.is_held);
        assert!(told(Some(&released), "portolan/x", after(30)).contains("last renewed 30s ago."));
        assert!(told(None, "portolan/x", after(0)).contains("Lease portolan/x does not exist"));
    }
}
