//! What goes wrong, and how often.

use std::time::Duration;

use rand::Rng;

use super::partial::PartialFault;

/// How many of a thousand requests fail, by the way they fail.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FaultRates {
    /// 500, nothing happened.
    pub server_error: u32,
    /// 409 on a write, nothing happened.
    pub conflict: u32,
    /// 429 with `retryAfterSeconds`.
    pub too_many_requests: u32,
    /// No answer until the time-out; whether it happened is left open.
    pub timeout: u32,
    /// The connection breaks before the request is carried out.
    pub lost_request: u32,
    /// The connection breaks after the request was carried out.
    pub lost_answer: u32,
    /// Of a thousand chunks of a watch, how many break it off.
    pub watch_drop: u32,
    /// Of a thousand chunks of a watch, how many come up to ten seconds late.
    pub watch_delay: u32,
}

impl FaultRates {
    /// Every kind of fault equally often, `per_mille` in all; watches are dropped, not delayed.
    #[must_use]
    pub fn evenly(per_mille: u32) -> Self {
        let each = (per_mille / 6).max(u32::from(per_mille > 0));
        Self {
            server_error: each,
            conflict: each,
            too_many_requests: each,
            timeout: each,
            lost_request: each,
            lost_answer: each,
            watch_drop: each,
            watch_delay: 0,
        }
    }
}

/// On which side of a request a party crashes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CrashPoint {
    /// The request is never carried out.
    Before,
    /// The request is carried out, its answer never read.
    After,
}

/// A crash around one request of a party.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Crash {
    /// Who crashes.
    pub party: String,
    /// At which of its requests, the first being 1, counted over all clusters and restarts.
    pub request: u64,
    /// On which side of it.
    pub point: CrashPoint,
}

/// What goes wrong in a world.
#[derive(Clone, Debug, Default)]
pub struct FaultPlan {
    pub(crate) rates: Vec<(Option<String>, FaultRates)>,
    pub(crate) crashes: Vec<Crash>,
    pub(crate) partial: Vec<PartialFault>,
    pub(crate) until: Option<Duration>,
}

impl FaultPlan {
    /// Nothing goes wrong.
    #[must_use]
    pub fn none() -> Self {
        Self::default()
    }

    /// Requests of every party fail at these rates.
    #[must_use]
    pub fn all(mut self, rates: FaultRates) -> Self {
        self.rates.push((None, rates));
        self
    }

    /// Requests of one party fail at these rates; this goes before the rates of all.
    #[must_use]
    pub fn party(mut self, party: impl Into<String>, rates: FaultRates) -> Self {
        self.rates.insert(0, (Some(party.into()), rates));
        self
    }

    /// A party crashes around its n-th request.
    #[must_use]
    pub fn crash(mut self, party: impl Into<String>, request: u64, point: CrashPoint) -> Self {
        self.crashes.push(Crash { party: party.into(), request, point });
        self
    }

    /// Some requests fail in one way, for some time.
    #[must_use]
    pub fn partial(mut self, fault: PartialFault) -> Self {
        self.partial.push(fault);
        self
    }

    /// Request faults end after this time, so that what should converge can.
    #[must_use]
    pub fn until(mut self, time: Duration) -> Self {
        self.until = Some(time);
        self
    }

    pub(super) fn rates_of(&self, party: &str) -> FaultRates {
        let found = self.rates.iter().find(|(aim, _)| aim.as_deref().is_none_or(|aim| aim == party));
        found.map(|(_, rates)| *rates).unwrap_or_default()
    }
}

/// How one request fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    ServerError,
    Conflict,
    TooManyRequests,
    TimeoutBefore,
    TimeoutAfter,
    LostRequest,
    LostAnswer,
}

/// Draws what happens to a request.
pub(super) fn draw(rates: FaultRates, write: bool, random: &mut impl Rng) -> Option<Fault> {
    let mut left = random.next_u32() % 1000;
    let half = random.next_u32().is_multiple_of(2);
    for (rate, fault) in [
        (rates.server_error, Fault::ServerError),
        (rates.conflict, Fault::Conflict),
        (rates.too_many_requests, Fault::TooManyRequests),
        (rates.timeout, if half { Fault::TimeoutBefore } else { Fault::TimeoutAfter }),
        (rates.lost_request, Fault::LostRequest),
        (rates.lost_answer, Fault::LostAnswer),
    ] {
        if left < rate {
            return (fault != Fault::Conflict || write).then_some(fault);
        }
        left -= rate;
    }
    None
}
