//! The way to an API server, hop by hop.

use super::Finding;
use super::words::{count, length, listed, span};
use jiff::{SignedDuration, Timestamp};
use std::time::Duration;

/// Clocks that differ by less do no harm.
const CLOCK_FINE: SignedDuration = SignedDuration::from_secs(5);
/// Clocks that differ by more make Leases, tokens and certificates wrong.
const CLOCK_BAD: SignedDuration = SignedDuration::from_secs(30);
/// Certificates that end earlier are to be renewed soon, or at once.
const CERTIFICATE_SOON: SignedDuration = SignedDuration::from_hours(30 * 24);
const CERTIFICATE_NOW: SignedDuration = SignedDuration::from_hours(3 * 24);
/// The same as parts of its life, for one that lives shorter. Programs renew at half of the life: a quarter later something
/// is wrong.
const SOON_PART: i32 = 4;
const NOW_PART: i32 = 10;
/// Slower answers delay decisions.
const SLOW: Duration = Duration::from_millis(500);
/// The controller waits so long for the answer to a probe.
const PROBE_LIMIT: Duration = Duration::from_secs(3);

/// The name of an API server.
#[derive(Clone, Debug)]
pub struct Dns {
    /// The name.
    pub host: String,
    /// Its addresses, or why there are none.
    pub found: Result<Vec<String>, String>,
}

impl Dns {
    pub(super) fn judge(&self) -> Finding {
        let host = &self.host;
        let advice = "check the name in the server's URL and the DNS of this machine; for a member, `portolan peer \
                      --remote-server` sets another URL";
        match &self.found {
            Ok(found) if found.is_empty() => Finding::problem(format!("{host} has no address"), advice),
            Ok(found) if found.len() == 1 && found[0] == *host => {
                Finding::healthy(format!("{host} is an address"))
            }
            Ok(found) => Finding::healthy(format!("{host} is {}", listed(found))),
            Err(why) => Finding::problem(format!("{host} cannot be resolved: {why}"), advice),
        }
    }
}

/// Why no connection was made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TcpFailure {
    /// The machine answers, and nothing listens there.
    Refused,
    /// No answer in this time.
    TimedOut(Duration),
    /// Something else.
    Other(String),
}

/// Connections to the addresses of an API server.
#[derive(Clone, Debug)]
pub struct Tcp {
    /// The port.
    pub port: u16,
    /// Each address, with its port, and how long the connection took.
    pub tried: Vec<(String, Result<Duration, TcpFailure>)>,
}

impl Tcp {
    pub(super) fn judge(&self) -> Finding {
        let fine = self.tried.iter().filter_map(|(address, outcome)| Some((address, outcome.as_ref().ok()?)));
        let fine: Vec<String> = fine.map(|(address, time)| format!("{address} in {}", span(*time))).collect();
        let failed =
            self.tried.iter().filter_map(|(address, outcome)| Some((address, outcome.as_ref().err()?)));
        let failed: Vec<(&String, &TcpFailure)> = failed.collect();
        let told = |(address, failure): &(&String, &TcpFailure)| match failure {
            TcpFailure::Refused => format!("{address} refuses the connection"),
            TcpFailure::TimedOut(limit) => format!("{address} does not answer within {}", span(*limit)),
            TcpFailure::Other(why) => format!("{address} cannot be reached: {why}"),
        };
        let text = failed.iter().map(told).collect::<Vec<_>>().join("; ");
        let port = self.port;
        let Some((_, first)) = failed.first() else {
            return Finding::healthy(format!("connected to {}", fine.join(", ")));
        };
        if !fine.is_empty() {
            let message = format!("{text}; connected to {}", fine.join(", "));
            return Finding::warning(
                message,
                "take the dead address out of DNS, or start the API server there",
            );
        }
        let advice = match first {
            TcpFailure::Refused => {
                format!("nothing listens on TCP port {port} there: start the API server, or correct the port")
            }
            TcpFailure::TimedOut(_) => format!(
                "packets are lost on the way: start the machine, or open TCP port {port} in the firewalls between this \
                 machine and that address"
            ),
            TcpFailure::Other(_) => {
                format!("check the route from this machine to that address, and TCP port {port}")
            }
        };
        Finding::problem(text, advice)
    }
}

/// Why a private connection failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TlsFailure {
    /// The certificate has expired.
    Expired,
    /// The certificate is not valid yet.
    NotYetValid,
    /// The authority of the kubeconfig did not sign the certificate.
    UnknownIssuer,
    /// The certificate is for other names.
    WrongName,
    /// No answer in this time.
    TimedOut(Duration),
    /// Something else.
    Other(String),
}

/// A private connection.
#[derive(Clone, Debug)]
pub struct Tls {
    /// Address and port.
    pub target: String,
    /// The name that the certificate must be for.
    pub name: String,
    /// Whether the certificate is not checked at all.
    pub unchecked: bool,
    /// What came of it.
    pub outcome: Result<(), TlsFailure>,
}

impl Tls {
    pub(super) fn judge(&self) -> Finding {
        let Self { target, name, .. } = self;
        let Err(failure) = &self.outcome else {
            if self.unchecked {
                return Finding::warning(
                    format!("{target}: the certificate is not checked, so anybody could answer in its place"),
                    "put the authority of the cluster into the kubeconfig, and leave insecure-skip-tls-verify out",
                );
            }
            return Finding::healthy(format!(
                "{target} shows a certificate for {name} of the known authority"
            ));
        };
        let (message, advice) = match failure {
            TlsFailure::Expired => (
                "its certificate has expired".to_owned(),
                "renew the serving certificate of the API server (`kubeadm certs renew apiserver`), or correct the clock of \
                 this machine",
            ),
            TlsFailure::NotYetValid => (
                "its certificate is not valid yet".to_owned(),
                "correct the clock of this machine, or that of the cluster",
            ),
            TlsFailure::UnknownIssuer => (
                "its certificate is not signed by the authority in the kubeconfig".to_owned(),
                "another cluster answers there, or its authority was replaced: take certificate-authority-data from the \
                 cluster anew; for a member, run `portolan peer` again",
            ),
            TlsFailure::WrongName => (
                format!("its certificate is not for {name}"),
                "use a URL with a name that the certificate has, set tls-server-name in the kubeconfig, or add the name to \
                 the certificate",
            ),
            TlsFailure::TimedOut(limit) => (
                format!("no answer to the handshake within {}", span(*limit)),
                "something accepts connections there and does not speak TLS: check the port, and proxies on the way",
            ),
            TlsFailure::Other(why) => (
                format!("the handshake failed: {why}"),
                "check that an API server listens there, and proxies on the way",
            ),
        };
        Finding::problem(format!("{target}: {message}"), advice)
    }
}

/// A certificate.
#[derive(Clone, Debug)]
pub struct Certificate {
    /// What it is, such as `serving certificate of 10.0.0.5:6443`.
    pub called: String,
    /// From when it is valid.
    pub from: Timestamp,
    /// Until when.
    pub until: Timestamp,
    /// How to renew it.
    pub renew: &'static str,
}

impl Certificate {
    pub(super) fn judge(&self, now: Timestamp) -> Finding {
        let (called, left) = (&self.called, self.until.duration_since(now));
        if now < self.from {
            let message = format!("the {called} is valid from {} on", self.from);
            return Finding::problem(message, "correct the clock of this machine, or that of the cluster");
        }
        if left <= SignedDuration::ZERO {
            return Finding::problem(format!("the {called} expired {} ago", length(left)), self.renew);
        }
        let message = format!("the {called} is valid for {}, until {}", length(left), self.until);
        let life = self.until.duration_since(self.from);
        if left < CERTIFICATE_NOW.min(life / NOW_PART) {
            Finding::problem(message, self.renew)
        } else if left < CERTIFICATE_SOON.min(life / SOON_PART) {
            Finding::warning(message, self.renew)
        } else {
            Finding::healthy(message)
        }
    }
}

/// The answer of an API server to the question for its version.
#[derive(Clone, Debug)]
pub struct Answer {
    /// Its URL.
    pub server: String,
    /// Whose credential it is, in words.
    pub credential: String,
    /// The version; or the status with what it says; or why there was no answer.
    pub answer: Result<String, (Option<u16>, String)>,
    /// How to get another credential.
    pub renew: &'static str,
}

impl Answer {
    pub(super) fn judge(&self) -> Finding {
        let Self { server, credential, .. } = self;
        match &self.answer {
            Ok(version) => {
                Finding::healthy(format!("{server} answers and takes {credential}: Kubernetes {version}"))
            }
            Err((Some(401), _)) => {
                Finding::problem(format!("{server} does not accept {credential} (401)"), self.renew)
            }
            Err((Some(code), why)) => Finding::problem(
                format!("{server} refuses: {why} ({code})"),
                "look at the log of the API server and at proxies on the way",
            ),
            Err((None, why)) => Finding::problem(
                format!("{server} does not answer: {why}"),
                "look whether the API server has too much to do, and at its log",
            ),
        }
    }
}

/// The answer to `/readyz`.
#[derive(Clone, Debug)]
pub struct Ready {
    /// Its URL.
    pub server: String,
    /// Why it is not ready.
    pub problem: Option<String>,
}

impl Ready {
    pub(super) fn judge(&self) -> Finding {
        let server = &self.server;
        match &self.problem {
            None => Finding::healthy(format!("{server} says that it is ready")),
            Some(why) => Finding::problem(
                format!("{server} is not ready: {why}"),
                "`kubectl get --raw '/readyz?verbose'` names the part that fails, often etcd",
            ),
        }
    }
}

/// A clock against this machine's.
#[derive(Clone, Debug)]
pub struct Clock {
    /// By how much it is ahead of this machine's, or behind if negative.
    pub ahead: SignedDuration,
    /// By how much that may be wrong.
    pub within: Duration,
}

impl Clock {
    pub(super) fn judge(&self) -> Finding {
        let within = SignedDuration::try_from(self.within).unwrap_or(SignedDuration::MAX);
        // What may be the fault of the measurement is not held against the clock.
        let sure = self.ahead.abs().saturating_sub(within).max(SignedDuration::ZERO);
        let direction = if self.ahead.is_negative() { "behind" } else { "ahead of" };
        let message = format!(
            "its clock is {} {direction} this machine's (± {})",
            length(self.ahead),
            span(self.within)
        );
        let advice = "set both clocks by NTP (chrony or systemd-timesyncd): Leases, tokens and certificates depend on them";
        if sure >= CLOCK_BAD {
            Finding::problem(message, advice)
        } else if sure >= CLOCK_FINE {
            Finding::warning(message, advice)
        } else if self.ahead.abs() <= within {
            Finding::healthy(format!("its clock agrees with this machine's (± {})", span(self.within)))
        } else {
            Finding::healthy(message)
        }
    }
}

/// How long some answers took.
#[derive(Clone, Debug)]
pub struct Latency {
    /// One time for each answer.
    pub times: Vec<Duration>,
    /// How many requests got none.
    pub failed: usize,
}

impl Latency {
    pub(super) fn judge(&self) -> Finding {
        let mut times = self.times.clone();
        times.sort();
        let Some(max) = times.last() else {
            return Finding::problem(
                format!("none of {} was answered", count(self.failed, "request")),
                "look whether the API server has too much to do, and at its log",
            );
        };
        let middle = times[(times.len() - 1) / 2];
        let message = format!(
            "{} of {} answered: median {}, longest {}",
            times.len(),
            count(times.len() + self.failed, "request"),
            span(middle),
            span(*max)
        );
        let advice = "look at the load of the API server and of its etcd, and at the network between";
        if *max >= PROBE_LIMIT {
            let message = format!("{message}; the controller waits {} at most", span(PROBE_LIMIT));
            Finding::problem(message, advice)
        } else if self.failed > 0 || middle >= SLOW {
            Finding::warning(message, advice)
        } else {
            Finding::healthy(message)
        }
    }
}
