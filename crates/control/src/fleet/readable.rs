//! Whether what a member holds is known: listed, and not outdated.

use super::{Health, MemberEvent};
use portolan_runtime::WatchHealth;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;
use tokio::task::JoinSet;
use tokio::time::Instant;

/// A member that is not known after this long is not waited for any longer.
pub const KNOWN_WITHIN: Duration = Duration::from_secs(15);

/// What was last confirmed longer ago than this is of the past: API servers send bookmarks about every minute.
const STALE_AFTER: Duration = Duration::from_secs(180);

/// Whether what a watch has told is of the past.
pub(crate) fn is_outdated(watch: &WatchHealth) -> bool {
    watch.age().is_none_or(|age| age > STALE_AFTER)
}

/// What a watch of the past does not tell any more, in words; `name` is what it is about. There is no number in it that
/// runs: each text is news, which is written down.
pub(crate) fn outdated(name: &str, watch: &WatchHealth) -> String {
    match watch.failure() {
        Some(failure) => format!("{name} cannot be listed: {}", failure.error),
        None => format!("nothing was heard of {name} for {} s", STALE_AFTER.as_secs()),
    }
}

/// How often to look whether what is known has grown old.
const LOOK_EVERY: Duration = Duration::from_secs(5);

/// The resources that must be known of a member before something is decided about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Needs(pub &'static [&'static str]);

impl Needs {
    /// What the numbers of a cluster rest on.
    pub const ROOM: Self = Self(&["nodes", "pods"]);
}

/// Whether what a member holds is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Readable {
    /// It is.
    Known,
    /// It is being listed, and has time for that.
    Joining,
    /// It cannot be listed or watched, for this reason.
    Not(String),
}

/// The watches of a member, and how they stand.
#[derive(Clone)]
pub(super) struct Watches {
    since: Instant,
    health: Health,
    changed: Arc<Notify>,
    /// What made a task of the member end, if one did.
    ended: Arc<Mutex<Option<String>>>,
    /// By resource, in the order of their registration.
    all: Vec<(&'static str, WatchHealth)>,
}

impl Watches {
    pub(super) fn new(health: &Health) -> Self {
        Self {
            since: Instant::now(),
            health: health.clone(),
            changed: Arc::default(),
            ended: Arc::default(),
            all: Vec::new(),
        }
    }

    /// Adds a watch of a resource.
    pub(super) fn add(&mut self, resource: &'static str) -> WatchHealth {
        let health = WatchHealth::telling(Arc::clone(&self.changed));
        self.all.push((resource, health.clone()));
        health
    }

    /// How each of them stands.
    pub(super) fn health(&self) -> impl Iterator<Item = &WatchHealth> {
        self.all.iter().map(|(_, health)| health)
    }

    /// Has those look again who tell of changes.
    pub(super) fn look_again(&self) {
        self.changed.notify_one();
    }

    /// Whether a task of the member has ended, so that another connection is needed.
    pub(super) fn has_failed(&self) -> bool {
        self.ended.lock().unwrap_or_else(PoisonError::into_inner).is_some()
    }

    /// Whether all that is watched is known.
    pub(super) fn all_readable(&self) -> Readable {
        self.readable_of(&self.all)
    }

    /// Whether what is needed is known.
    pub(super) fn readable(&self, needs: Needs) -> Readable {
        let of = |resource: &&str| self.all.iter().find(|(name, _)| name == resource);
        if let Some(unwatched) = needs.0.iter().find(|resource| of(resource).is_none()) {
            return Readable::Not(format!("nobody watches its {unwatched}"));
        }
        self.readable_of(needs.0.iter().filter_map(of))
    }

    /// Since when lists tell what it holds: what was known before it fell silent has to be listed anew when it answers again.
    pub(super) fn since(&self) -> Instant {
        self.health.back().map_or(self.since, |back| back.max(self.since))
    }

    fn readable_of<'a>(&self, needed: impl IntoIterator<Item = &'a (&'static str, WatchHealth)>) -> Readable {
        if let Some(ended) = self.ended.lock().unwrap_or_else(PoisonError::into_inner).clone() {
            return Readable::Not(ended);
        }
        let since = self.since();
        let mut readable = Readable::Known;
        for (name, health) in needed {
            let is_current = health.is_listed_since(since);
            let is_old = is_outdated(health);
            if is_current && !is_old {
                continue;
            }
            if !is_current && since.elapsed() < KNOWN_WITHIN {
                readable = Readable::Joining;
                continue;
            }
            let failure = health.failure().map(|failure| failure.error);
            // No number that runs: each text is news, which is written down and wakes everybody.
            let unheard = || {
                if is_current {
                    format!("nothing was heard of its {name} for {} s", STALE_AFTER.as_secs())
                } else {
                    format!("its {name} could not be listed within {} s", KNOWN_WITHIN.as_secs())
                }
            };
            return Readable::Not(failure.unwrap_or_else(unheard));
        }
        readable
    }
}

/// Keeps the tasks of a member, and tells when it becomes known or stops being so, for ever.
///
/// A task that ends makes the member fail, and nobody else.
pub(super) async fn supervise(
    name: String,
    mut tasks: JoinSet<()>,
    watches: Watches,
    on_event: impl Fn(MemberEvent),
) {
    let mut told = watches.all_readable();
    let mut back = watches.health.back();
    loop {
        tokio::select! {
            biased;
            Some(ended) = tasks.join_next() => {
                let why = match ended {
                    Ok(()) => "ended".to_owned(),
                    Err(error) => error.to_string(),
                };
                tracing::error!(member = name, why, "a task of a member ended: nothing new is placed there");
                let problem = format!("a task that watches it has failed ({why}): it is connected again within a minute");
                *watches.ended.lock().unwrap_or_else(PoisonError::into_inner) = Some(problem);
            }
            _ = tokio::time::timeout(LOOK_EVERY, watches.changed.notified()) => {}
        }
        let now_back = watches.health.back();
        if now_back != back {
            back = now_back;
            watches.all.iter().for_each(|(_, health)| health.refresh());
        }
        let readable = watches.all_readable();
        if readable != told {
            match &readable {
                Readable::Not(problem) => tracing::warn!(member = name, problem, "a member cannot be listed"),
                Readable::Known | Readable::Joining => {}
            }
            told = readable;
            on_event(MemberEvent::Health);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::{Request, Response};
    use k8s_openapi::api::core::v1::Node;
    use kube::client::{Body, Client};
    use kube::runtime::watcher::Config;
    use portolan_runtime::{Seed, follow_with};
    use std::convert::Infallible;
    use std::future::pending;

    #[tokio::test(start_paused = true)]
    async fn a_list_that_hangs_is_news_once_and_not_every_few_seconds() {
        let service = tower::service_fn(|_: Request<Body>| pending::<Result<Response<Body>, Infallible>>());
        let nodes = kube::Api::<Node>::all(Client::new(service, "default"));
        let mut watches = Watches::new(&Health::default());
        let mut tasks = JoinSet::new();
        let health = watches.add("nodes");
        tasks.spawn(follow_with(nodes, Config::default(), |_| (), |_| (), Seed::new(1), health));
        let touched = Arc::new(Mutex::new(0));
        let count = Arc::clone(&touched);
        let tell = move |_: MemberEvent| *count.lock().unwrap() += 1;
        let _task = tokio::spawn(supervise("a".to_owned(), tasks, watches.clone(), tell));
        tokio::time::sleep(Duration::from_secs(20)).await;
        let unlisted = Readable::Not("its nodes could not be listed within 15 s".to_owned());
        assert_eq!(watches.all_readable(), unlisted);
        let unwatched = Readable::Not("nobody watches its pods".to_owned());
        assert_eq!(watches.readable(Needs(&["pods"])), unwatched);
        tokio::time::sleep(Duration::from_secs(100)).await;
        let touched = *touched.lock().unwrap();
        assert!((1..=3).contains(&touched), "told {touched} times");
    }
}
