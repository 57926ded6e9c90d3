//! What is made of the findings of `portolan doctor`: each piece of evidence becomes a verdict, a message and advice.
//!
//! Evidence that is not there is no health: what could not be asked is [`Verdict::Unknown`], with what is missing.

mod hop;
mod hub;
mod member;
mod policy;
mod webhook;
mod words;

pub use hop::{Answer, Certificate, Clock, Dns, Latency, Ready, Tcp, TcpFailure, Tls, TlsFailure};
pub use hub::{
    ApiServices, Controllers, Definitions, Kubernetes, Leader, LeaseFacts, PodFacts, Portolan, Rights,
};
pub use member::{Conditions, Credential, CredentialKind, LastSeen, Namespaces, StatedCondition};
pub use policy::TenantPolicy;
pub use webhook::{Backend, Rule, Webhook, Webhooks};
pub use words::span;

use jiff::Timestamp;
use std::time::Duration;

/// What is checked, in the order in which it is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Check {
    /// What the controller says about a member.
    Condition,
    /// When the controller last reached a member.
    LastSeen,
    /// The Secret with the credential of the hub.
    Credential,
    /// The URL of an API server.
    Address,
    /// Its name.
    Dns,
    /// A connection to its port.
    Tcp,
    /// A private connection to it.
    Tls,
    /// How long a certificate is valid.
    Certificate,
    /// Whether it answers, and takes the credential.
    Api,
    /// Whether it says that it is ready.
    Ready,
    /// Its clock against this machine's.
    Clock,
    /// How long its answers take.
    Latency,
    /// Its version of Kubernetes.
    Kubernetes,
    /// The versions of Portolan's parts.
    Portolan,
    /// The custom resource definitions.
    Definitions,
    /// The Lease of the controllers.
    Leader,
    /// The pods of the controller.
    Controller,
    /// What the caller may do.
    CallerRights,
    /// What the account of the controller may do.
    ControllerRights,
    /// The admission policy that bounds what tenants write.
    TenantPolicy,
    /// Admission webhooks that may be in the way.
    Webhooks,
    /// APIs that other programs serve.
    ApiServices,
    /// What the hub may do in a member.
    Rights,
    /// The namespaces that are open to the hub.
    Namespaces,
}

impl Check {
    /// Its name, for people and programs.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Address => "address",
            Self::Dns => "dns",
            Self::Tcp => "tcp",
            Self::Tls => "tls",
            Self::Certificate => "certificate",
            Self::Api => "api",
            Self::Ready => "ready",
            Self::Clock => "clock",
            Self::Latency => "latency",
            Self::Kubernetes => "kubernetes",
            Self::Portolan => "portolan",
            Self::Definitions => "definitions",
            Self::Leader => "leader",
            Self::Controller => "controller",
            Self::CallerRights => "caller-rights",
            Self::ControllerRights => "controller-rights",
            Self::TenantPolicy => "tenant-policy",
            Self::Webhooks => "webhooks",
            Self::ApiServices => "api-services",
            Self::Condition => "condition",
            Self::LastSeen => "last-seen",
            Self::Credential => "credential",
            Self::Rights => "rights",
            Self::Namespaces => "namespaces",
        }
    }
}

/// What is made of a piece of evidence.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verdict {
    /// As it should be.
    Healthy,
    /// It could not be checked.
    Unknown,
    /// It works, and will not or may not for long.
    Warning,
    /// It does not work.
    Problem,
}

impl Verdict {
    /// Its name.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Healthy => "Healthy",
            Self::Unknown => "Unknown",
            Self::Warning => "Warning",
            Self::Problem => "Problem",
        }
    }
}

/// A verdict in words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The verdict.
    pub verdict: Verdict,
    /// What was found, with the address, the number or the name.
    pub message: String,
    /// What to do; empty if nothing is to be done.
    pub advice: String,
}

impl Finding {
    fn new(verdict: Verdict, message: impl Into<String>, advice: impl Into<String>) -> Self {
        Self { verdict, message: message.into(), advice: advice.into() }
    }

    fn healthy(message: impl Into<String>) -> Self {
        Self::new(Verdict::Healthy, message, "")
    }

    fn unknown(message: impl Into<String>, advice: impl Into<String>) -> Self {
        Self::new(Verdict::Unknown, message, advice)
    }

    fn warning(message: impl Into<String>, advice: impl Into<String>) -> Self {
        Self::new(Verdict::Warning, message, advice)
    }

    fn problem(message: impl Into<String>, advice: impl Into<String>) -> Self {
        Self::new(Verdict::Problem, message, advice)
    }
}

/// What was found by one check.
#[derive(Clone, Debug)]
pub enum Evidence {
    /// Who asked lacks a right, such as `list secrets in namespace portolan`.
    NotAllowed {
        /// The right.
        right: String,
    },
    /// It could not be asked for another reason.
    NotAsked {
        /// Why.
        why: String,
        /// What would help.
        advice: String,
    },
    /// A check before it failed.
    NotReached {
        /// That check.
        after: Check,
    },
    /// It was not finished in time.
    TimedOut {
        /// How long it had.
        limit: Duration,
    },
    /// The address cannot be used.
    BadAddress {
        /// Why.
        why: String,
        /// What would help.
        advice: String,
    },
    /// See [`Dns`].
    Dns(Dns),
    /// See [`Tcp`].
    Tcp(Tcp),
    /// See [`Tls`].
    Tls(Tls),
    /// See [`Certificate`].
    Certificate(Certificate),
    /// See [`Answer`].
    Api(Answer),
    /// See [`Ready`].
    Ready(Ready),
    /// See [`Clock`].
    Clock(Clock),
    /// See [`Latency`].
    Latency(Latency),
    /// See [`Kubernetes`].
    Kubernetes(Kubernetes),
    /// See [`Portolan`].
    Portolan(Portolan),
    /// See [`Definitions`].
    Definitions(Definitions),
    /// See [`Leader`].
    Leader(Leader),
    /// See [`Controllers`].
    Controllers(Controllers),
    /// See [`Rights`].
    Rights(Rights),
    /// See [`TenantPolicy`].
    TenantPolicy(TenantPolicy),
    /// See [`Webhooks`].
    Webhooks(Webhooks),
    /// See [`ApiServices`].
    ApiServices(ApiServices),
    /// See [`Conditions`].
    Conditions(Conditions),
    /// See [`LastSeen`].
    LastSeen(LastSeen),
    /// See [`Credential`].
    Credential(Credential),
    /// See [`Namespaces`].
    Namespaces(Namespaces),
}

/// The verdict on a piece of evidence at this time.
#[must_use]
pub fn judge(evidence: &Evidence, now: Timestamp) -> Finding {
    match evidence {
        Evidence::NotAllowed { right } => Finding::unknown(
            format!("you may not {right}"),
            "ask an administrator for that right, or to run this check",
        ),
        Evidence::NotAsked { why, advice } => Finding::unknown(why, advice),
        Evidence::NotReached { after } => {
            Finding::unknown(format!("not checked, since {} failed", after.as_str()), "")
        }
        Evidence::TimedOut { limit } => {
            Finding::unknown(format!("not finished within {}", span(*limit)), "give more time with --timeout")
        }
        Evidence::BadAddress { why, advice } => Finding::problem(why, advice),
        Evidence::Dns(dns) => dns.judge(),
        Evidence::Tcp(tcp) => tcp.judge(),
        Evidence::Tls(tls) => tls.judge(),
        Evidence::Certificate(certificate) => certificate.judge(now),
        Evidence::Api(answer) => answer.judge(),
        Evidence::Ready(ready) => ready.judge(),
        Evidence::Clock(clock) => clock.judge(),
        Evidence::Latency(latency) => latency.judge(),
        Evidence::Kubernetes(kubernetes) => kubernetes.judge(),
        Evidence::Portolan(portolan) => portolan.judge(),
        Evidence::Definitions(definitions) => definitions.judge(),
        Evidence::Leader(leader) => leader.judge(now),
        Evidence::Controllers(controllers) => controllers.judge(),
        Evidence::Rights(rights) => rights.judge(),
        Evidence::TenantPolicy(policy) => policy.judge(),
        Evidence::Webhooks(webhooks) => webhooks.judge(),
        Evidence::ApiServices(services) => services.judge(),
        Evidence::Conditions(conditions) => conditions.judge(),
        Evidence::LastSeen(seen) => seen.judge(now),
        Evidence::Credential(credential) => credential.judge(now),
        Evidence::Namespaces(namespaces) => namespaces.judge(),
    }
}

#[cfg(test)]
mod tests;
