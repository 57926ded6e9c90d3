//! What a hub must have for Portolan.

use super::Finding;
use super::words::{count, length, listed};
use jiff::{SignedDuration, Timestamp};

/// The oldest Kubernetes that Portolan is tested with.
const OLDEST_MINOR: u32 = 33;

/// A controller at work writes more often than this that it has seen a member that answers.
const SEEN_WITHIN: SignedDuration = SignedDuration::from_secs(180);

/// The version of a cluster's Kubernetes.
#[derive(Clone, Debug)]
pub struct Kubernetes {
    /// As the API server tells it.
    pub version: String,
}

impl Kubernetes {
    pub(super) fn judge(&self) -> Finding {
        let version = &self.version;
        match parts(version) {
            None => Finding::unknown(format!("version {version:?} is none that can be compared"), ""),
            Some((1, minor)) if minor < OLDEST_MINOR => Finding::warning(
                format!(
                    "Kubernetes {version} is older than 1.{OLDEST_MINOR}, the oldest that Portolan is tested with"
                ),
                format!("upgrade the cluster to 1.{OLDEST_MINOR} or later"),
            ),
            Some(_) => Finding::healthy(format!("Kubernetes {version}")),
        }
    }
}

/// The versions of Portolan.
#[derive(Clone, Debug)]
pub struct Portolan {
    /// That of this program.
    pub client: String,
    /// That of the leading controller, as its Lease says.
    pub controller: Option<String>,
}

impl Portolan {
    pub(super) fn judge(&self) -> Finding {
        let client = &self.client;
        let Some(controller) = &self.controller else {
            return Finding::unknown(
                format!("this program is {client}; no controller has told its version"),
                "start the controller for the hub",
            );
        };
        let advice = format!("install version {controller} of this program, or upgrade the controller");
        match (parts(client), parts(controller)) {
            _ if client == controller => Finding::healthy(format!("program and controller are {client}")),
            (Some(mine), Some(other)) if mine.0 == other.0 && mine.1.abs_diff(other.1) <= 1 => {
                Finding::warning(format!("this program is {client}, the controller {controller}"), advice)
            }
            (Some(_), Some(_)) => Finding::problem(
                format!(
                    "this program is {client}, the controller {controller}: more than one minor version apart"
                ),
                advice,
            ),
            _ => Finding::unknown(
                format!("this program is {client}, the controller {controller:?}: these cannot be compared"),
                advice,
            ),
        }
    }
}

/// Major and minor number of a version.
fn parts(version: &str) -> Option<(u32, u32)> {
    let mut numbers = version.strip_prefix('v').unwrap_or(version).split('.');
    let number = |text: &str| text.chars().take_while(char::is_ascii_digit).collect::<String>().parse().ok();
    Some((number(numbers.next()?)?, number(numbers.next()?)?))
}

/// The custom resource definitions of the hub against those of this version.
#[derive(Clone, Debug, Default)]
pub struct Definitions {
    /// How many there should be.
    pub wanted: usize,
    /// Those that are not there.
    pub missing: Vec<String>,
    /// Those that the API server does not serve, and why.
    pub not_served: Vec<(String, String)>,
    /// Those that lack fields of this version, with the fields.
    pub older: Vec<(String, Vec<String>)>,
    /// Those that have fields that this version does not have.
    pub newer: Vec<(String, Vec<String>)>,
    /// Whether only their names could be read.
    pub names_only: bool,
}

impl Definitions {
    pub(super) fn judge(&self) -> Finding {
        let install = "`portolan crds | kubectl apply --server-side -f -` installs those of this version";
        let mut wrong = Vec::new();
        if !self.missing.is_empty() {
            wrong.push(format!("not installed: {}", listed(&self.missing)));
        }
        wrong.extend(self.not_served.iter().map(|(name, why)| format!("{name} is not served: {why}")));
        let fields =
            |(name, fields): &(String, Vec<String>), word: &str| format!("{name} {word} {}", listed(fields));
        wrong.extend(self.older.iter().map(|each| fields(each, "lacks")));
        if !wrong.is_empty() {
            return Finding::problem(wrong.join("; "), install);
        }
        if !self.newer.is_empty() {
            let newer = self.newer.iter().map(|each| fields(each, "has")).collect::<Vec<_>>().join("; ");
            return Finding::warning(
                format!("those of the hub are newer than this program: {newer}"),
                "install a newer version of this program",
            );
        }
        let all = count(self.wanted, "definition");
        if self.names_only {
            return Finding::unknown(
                format!(
                    "the kinds of {all} are served; you may not get customresourcedefinitions, which tell their version"
                ),
                "ask an administrator for that right, or to run this check",
            );
        }
        Finding::healthy(format!("{all} installed, served and of this version"))
    }
}

/// The Lease of the controllers.
#[derive(Clone, Debug)]
pub struct Leader {
    /// Namespace and name.
    pub place: String,
    /// What it says, if it exists.
    pub lease: Option<LeaseFacts>,
    /// When a controller last wrote that it has seen a member.
    pub seen: Option<Timestamp>,
}

/// What a Lease says.
#[derive(Clone, Debug)]
pub struct LeaseFacts {
    /// Who holds it; empty if nobody does.
    pub holder: String,
    /// When it was last renewed.
    pub renewed: Option<Timestamp>,
    /// For how long it holds.
    pub duration: SignedDuration,
}

impl Leader {
    pub(super) fn judge(&self, now: Timestamp) -> Finding {
        let place = &self.place;
        let end =
            |lease: &LeaseFacts| lease.renewed.and_then(|renewed| renewed.checked_add(lease.duration).ok());
        if let Some(lease) = self.lease.as_ref().filter(|lease| !lease.holder.is_empty())
            && end(lease).is_some_and(|end| end >= now)
        {
            let age = lease.renewed.map_or(SignedDuration::ZERO, |renewed| now.duration_since(renewed));
            let age = age.max(SignedDuration::ZERO);
            return Finding::healthy(format!(
                "{} leads: Lease {place} was renewed {} ago",
                lease.holder,
                length(age)
            ));
        }
        let over = self.lease.as_ref().and_then(end);
        let works = |seen: &Timestamp| {
            now.duration_since(*seen) < SEEN_WITHIN && over.is_none_or(|over| *seen > over)
        };
        if let Some(seen) = self.seen.filter(works) {
            let ago = length(now.duration_since(seen).max(SignedDuration::ZERO));
            return Finding::healthy(format!("a controller without election wrote status {ago} ago"));
        }
        let advice = "start `portolan controller` for the hub; if it runs, look at its log";
        let message = match &self.lease {
            None => format!("no controller has led yet: Lease {place} does not exist"),
            Some(LeaseFacts { holder, renewed, .. }) => {
                let by = if holder.is_empty() { String::new() } else { format!(" by {holder}") };
                let ago = renewed
                    .map_or("never".to_owned(), |time| format!("{} ago", length(now.duration_since(time))));
                format!("no controller leads: Lease {place} was last renewed {ago}{by}")
            }
        };
        Finding::problem(message, advice)
    }
}

/// The pods of the controller in the hub.
#[derive(Clone, Debug)]
pub struct Controllers {
    /// The namespace that was looked in.
    pub namespace: String,
    /// All of them.
    pub pods: Vec<PodFacts>,
}

/// A pod of the controller.
#[derive(Clone, Debug)]
pub struct PodFacts {
    /// Its name.
    pub name: String,
    /// Whether it is ready.
    pub ready: bool,
    /// How often its container was started again.
    pub restarts: i32,
    /// Why it waits, or why it ended last, such as `CrashLoopBackOff` or `OOMKilled`.
    pub reason: Option<String>,
}

impl Controllers {
    pub(super) fn judge(&self) -> Finding {
        let namespace = &self.namespace;
        if self.pods.is_empty() {
            let message = format!(
                "no pod of the controller in namespace {namespace}: it runs outside of the hub, or not at all"
            );
            return Finding::unknown(message, "the check leader tells whether a controller works");
        }
        let told = |pod: &PodFacts| {
            let reason = pod.reason.as_ref().map(|reason| format!(", {reason}")).unwrap_or_default();
            let state = if pod.ready { "ready" } else { "not ready" };
            format!(
                "{} {state}{reason}, {}",
                pod.name,
                count(usize::try_from(pod.restarts).unwrap_or(0), "restart")
            )
        };
        let advice =
            format!("`kubectl -n {namespace} describe pod NAME`, and `portolan logs controller --previous`");
        let bad: Vec<String> = self.pods.iter().filter(|pod| !pod.ready).map(told).collect();
        if bad.len() == self.pods.len() {
            return Finding::problem(format!("no pod of the controller is ready: {}", listed(&bad)), advice);
        }
        let odd = |pod: &&PodFacts| !pod.ready || pod.restarts > 0;
        let odd: Vec<String> = self.pods.iter().filter(odd).map(told).collect();
        if odd.is_empty() {
            Finding::healthy(format!("{} ready", count(self.pods.len(), "pod")))
        } else {
            Finding::warning(listed(&odd), advice)
        }
    }
}

/// The rights of an account.
#[derive(Clone, Debug)]
pub struct Rights {
    /// Whose they are, such as `ServiceAccount portolan/portolan-controller`.
    pub whose: String,
    /// How many were asked for.
    pub asked: usize,
    /// Those that are missing, verb by verb.
    pub missing: Vec<String>,
    /// How to grant them.
    pub grant: String,
    /// Whether Portolan works without them.
    pub optional: bool,
}

impl Rights {
    pub(super) fn judge(&self) -> Finding {
        let Self { whose, asked, missing, grant, optional } = self;
        if missing.is_empty() {
            return Finding::healthy(format!("{whose} has all of {}", count(*asked, "right")));
        }
        let message =
            format!("{whose} lacks {} of {asked}: {}", count(missing.len(), "right"), listed(missing));
        if *optional { Finding::warning(message, grant) } else { Finding::problem(message, grant) }
    }
}

/// APIs that other programs serve.
#[derive(Clone, Debug, Default)]
pub struct ApiServices {
    /// How many there are.
    pub total: usize,
    /// Those that are unavailable, and why.
    pub unavailable: Vec<(String, String)>,
}

impl ApiServices {
    pub(super) fn judge(&self) -> Finding {
        if self.unavailable.is_empty() {
            return Finding::healthy(format!("{} available", count(self.total, "APIService")));
        }
        let told = self.unavailable.iter().map(|(name, why)| format!("{name}: {why}")).collect::<Vec<_>>();
        Finding::problem(
            format!("unavailable: {}", listed(&told)),
            "start the pods behind these APIServices, or delete them: until then namespaces are not deleted, and what they \
             serve, such as metrics, is missing",
        )
    }
}
