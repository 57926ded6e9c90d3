//! Faults of a part of a cluster: some requests fail in one way, for some time, and all others are served.

use std::time::Duration;

use super::requests::{Asked, RequestFilter};
use crate::error::{About, ApiError};

/// What is answered instead of what was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FaultAnswer {
    /// A refusal with this status, in the words of an API server; nothing happens.
    Status(u16),
    /// 429 with a `Retry-After` of so many seconds; nothing happens.
    TooManyRequests(u64),
    /// A check of the API server's health fails: 500 with its name, in the words of `/readyz`; nothing happens.
    FailedCheck(&'static str),
    /// The connection stays open, nothing happens and nothing is answered.
    Hang,
    /// What was asked for is done, and nothing is answered.
    NoAnswer,
    /// What was asked for is done after so many seconds, and answered then.
    Slow(u64),
}

/// A fault of the requests that a filter matches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PartialFault {
    pub(super) name: String,
    pub(super) requests: RequestFilter,
    pub(super) answer: FaultAnswer,
    pub(super) from: Duration,
    pub(super) until: Option<Duration>,
}

impl PartialFault {
    /// From the beginning until it is ended by its name.
    #[must_use]
    pub fn new(name: impl Into<String>, requests: RequestFilter, answer: FaultAnswer) -> Self {
        Self { name: name.into(), requests, answer, from: Duration::ZERO, until: None }
    }

    /// Begins when the world is so old.
    #[must_use]
    pub fn from(mut self, age: Duration) -> Self {
        self.from = age;
        self
    }

    /// Ends when the world is so old.
    #[must_use]
    pub fn until(mut self, age: Duration) -> Self {
        self.until = Some(age);
        self
    }

    pub(super) fn holds(&self, age: Duration) -> bool {
        age >= self.from && self.until.is_none_or(|until| age < until)
    }
}

/// What `/readyz` and its like answer when one check fails: all checks, and that the whole does.
pub(super) fn failed_check(path: &str, check: &str) -> String {
    let whole = path.trim_matches('/');
    format!("[+]ping ok\n[+]log ok\n[-]{check} failed: reason withheld\n{whole} check failed\n")
}

/// The refusal with a status, about a request.
pub(super) fn refusal(code: u16, asked: &Asked<'_>) -> ApiError {
    let (resource, group) = asked.resource.split_once('.').unwrap_or((asked.resource, ""));
    let about = About { group, resource, name: asked.name };
    match code {
        401 => ApiError::unauthorized(),
        403 => {
            let why = format!("{} cannot {} resource {resource:?}", asked.party, asked.verb);
            ApiError::forbidden(about, &why)
        }
        404 if asked.name.is_empty() => ApiError::no_such_path(),
        404 => ApiError::not_found(about),
        409 => ApiError::modified(about),
        410 => ApiError::too_old(1, 2),
        429 => ApiError::too_many_requests("Too many requests, please try again later.", 1),
        500 => ApiError::internal("injected fault"),
        503 => ApiError::unavailable(),
        code => ApiError::plain(code, "injected fault"),
    }
}
