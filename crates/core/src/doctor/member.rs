//! What a member must have for its hub.

use super::Finding;
use super::words::{count, length, listed};
use jiff::{SignedDuration, Timestamp};

/// A condition, as the controller wrote it.
#[derive(Clone, Debug)]
pub struct StatedCondition {
    /// Its type.
    pub type_: String,
    /// True, False or Unknown.
    pub status: String,
    /// Why.
    pub reason: String,
    /// In words.
    pub message: String,
}

/// What the controller says about a member.
#[derive(Clone, Debug)]
pub struct Conditions {
    /// The conditions of its ForeignCluster.
    pub all: Vec<StatedCondition>,
    /// Whether they are about its present spec.
    pub current: bool,
}

impl Conditions {
    pub(super) fn judge(&self) -> Finding {
        let named = |type_: &str| self.all.iter().find(|each| each.type_ == type_);
        let told = |each: &StatedCondition| {
            format!("{} is {} ({}): {}", each.type_, each.status, each.reason, each.message)
        };
        let Some(ready) = named("Ready") else {
            return Finding::unknown(
                "no controller has looked at it yet",
                "start `portolan controller` for the hub",
            );
        };
        if ready.status != "True" {
            return Finding::problem(told(ready), "the checks of this member below name the hop that fails");
        }
        let odd = ["SilenceDoubted", "Orphaned", "Leaving"].into_iter().filter_map(named);
        let odd: Vec<String> = odd.filter(|each| each.status == "True").map(told).collect();
        if !odd.is_empty() {
            return Finding::warning(odd.join("; "), "`portolan status clusters/NAME` shows its conditions");
        }
        if !self.current {
            return Finding::warning(
                "its last change has not been seen by a controller",
                "wait, or look at the check leader",
            );
        }
        Finding::healthy(format!("Ready is True ({})", ready.reason))
    }
}

/// When the controller last reached a member.
#[derive(Clone, Debug)]
pub struct LastSeen {
    /// When that was.
    pub seen: Option<Timestamp>,
    /// It is written more often than this.
    pub within: SignedDuration,
}

impl LastSeen {
    pub(super) fn judge(&self, now: Timestamp) -> Finding {
        let advice = "if this machine reaches the member and the controller does not, look at the network between the \
                      controller and the member; and at the check leader";
        let Some(seen) = self.seen else {
            return Finding::problem("the controller has not reached it yet", advice);
        };
        let age = now.duration_since(seen).max(SignedDuration::ZERO);
        let message = format!("the controller reached it {} ago", length(age));
        if age > self.within { Finding::problem(message, advice) } else { Finding::healthy(message) }
    }
}

/// What a credential is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CredentialKind {
    /// The token of a service account.
    #[default]
    Token,
    /// A client certificate, by an invitation.
    Certificate,
}

impl CredentialKind {
    fn word(self) -> &'static str {
        match self {
            Self::Token => "token",
            Self::Certificate => "client certificate",
        }
    }

    fn again(self) -> &'static str {
        match self {
            Self::Token => "run `portolan peer` for this member again, which grants a new credential",
            Self::Certificate => {
                "run `portolan invite` on the provider, and `portolan peer LINE` here, which make a new one"
            }
        }
    }

    fn when_late(self) -> &'static str {
        match self {
            Self::Token => {
                "look at the events of the ForeignCluster (`portolan status clusters/NAME`) and at the check rights: create \
                 serviceaccounts/token"
            }
            Self::Certificate => {
                "look at the events of the ForeignCluster (`portolan status clusters/NAME`), and whether a controller leads in \
                 the provider, which signs the next one"
            }
        }
    }
}

/// The credential of the hub for a member.
#[derive(Clone, Debug)]
pub struct Credential {
    /// What it is.
    pub kind: CredentialKind,
    /// Namespace and name of its Secret.
    pub secret: String,
    /// Why it cannot be used.
    pub problem: Option<String>,
    /// Who it is for the member.
    pub subject: Option<String>,
    /// When its token ends.
    pub expires: Option<Timestamp>,
    /// When a new one was or is due, if the controller renews it.
    pub renew: Option<Timestamp>,
}

impl Credential {
    pub(super) fn judge(&self, now: Timestamp) -> Finding {
        let secret = &self.secret;
        let (word, again) = (self.kind.word(), self.kind.again());
        if let Some(problem) = &self.problem {
            return Finding::problem(problem.clone(), again);
        }
        let of = self.subject.as_ref().map(|subject| format!(" of {subject}")).unwrap_or_default();
        let Some(expires) = self.expires else {
            return Finding::healthy(format!(
                "Secret {secret} has a credential{of} that does not tell when it expires"
            ));
        };
        let left = expires.duration_since(now);
        if left <= SignedDuration::ZERO {
            return Finding::problem(
                format!("the {word}{of} in Secret {secret} expired {} ago", length(left)),
                again,
            );
        }
        let message =
            format!("the {word}{of} in Secret {secret} is valid for {}, until {expires}", length(left));
        let Some(renew) = self.renew else {
            return Finding::warning(
                format!("{message}; the controller does not renew it"),
                "run `portolan peer` for this member again, whose credential is renewed",
            );
        };
        // It is due at half of its life: a quarter later something is wrong.
        let late = now.duration_since(renew);
        if late > SignedDuration::ZERO && left < late {
            return Finding::warning(
                format!("{message}; a new one was due {} ago", length(late)),
                self.kind.when_late(),
            );
        }
        Finding::healthy(message)
    }
}

/// The namespaces of a member that are open to the hub.
#[derive(Clone, Debug, Default)]
pub struct Namespaces {
    /// Those that are open.
    pub open: Vec<String>,
    /// Those that workloads of the hub have replicas in there, and that are not open.
    pub closed: Vec<String>,
}

impl Namespaces {
    pub(super) fn judge(&self) -> Finding {
        let open = "run `portolan peer` for this member with --namespace, or label them portolan.dev/placement=allowed in \
                    the member";
        if !self.closed.is_empty() {
            let names = listed(&self.closed);
            return Finding::problem(
                format!("workloads are placed in namespaces that are not open: {names}"),
                open,
            );
        }
        if self.open.is_empty() {
            return Finding::warning("no namespace is open to the hub: nothing can be placed there", open);
        }
        Finding::healthy(format!("{} open: {}", count(self.open.len(), "namespace"), listed(&self.open)))
    }
}
