//! The members of the fleet.

use super::families as family;
use crate::fleet::{Connect, Fleet, Member, Readable};
use portolan_runtime::metrics::Samples;

pub(super) fn collect(fleet: &Fleet, connect: &dyn Connect, samples: &mut Samples) {
    for state in State::ALL {
        samples.number(&family::MEMBERS, &[state.as_str()], 0.0);
    }
    for (key, _) in fleet.clusters.all() {
        let name = key.name.as_str();
        let member = fleet.member(name);
        let state = match &member {
            Some(member) => State::of(member),
            None if fleet.is_unconnected(name) => State::NotConnected,
            None => State::Joining,
        };
        let is = |holds: bool| f64::from(u8::from(holds));
        samples.number(&family::MEMBERS, &[state.as_str()], 1.0);
        samples.number(&family::MEMBER_READY, &[name], is(state == State::Ready));
        let reachable = member.as_ref().is_some_and(|member| member.health.is_reachable());
        samples.number(&family::MEMBER_REACHABLE, &[name], is(reachable));
        if let Some(validity) = connect.credential_validity(name) {
            samples.number(&family::CREDENTIAL_END, &[name], validity.ends.as_second() as f64);
            if let Some(begins) = validity.begins {
                let seconds = validity.ends.duration_since(begins).as_secs_f64();
                samples.number(&family::CREDENTIAL_LIFETIME, &[name], seconds);
            }
        }
        if let Some(member) = member {
            of_member(&member, samples);
        }
    }
}

fn of_member(member: &Member, samples: &mut Samples) {
    let labels = [member.name.as_str()];
    if let Some(time) = member.health.round_trip().time() {
        samples.number(&family::MEMBER_RTT, &labels, time.as_secs_f64());
    }
    let mut oldest = None;
    for health in member.watch_health() {
        oldest = oldest.max(health.age());
        let failing = f64::from(u8::from(health.failure().is_some()));
        samples.number(&family::WATCHES_FAILING, &labels, failing);
        samples.number(&family::UNREADABLE, &labels, health.count_unreadable() as f64);
    }
    if let Some(age) = oldest {
        samples.number(&family::WATCH_AGE, &labels, age.as_secs_f64());
    }
    let (waiting, running) = member.actuator.load();
    samples.number(&family::ACTUATOR_DEPTH, &labels, waiting as f64);
    samples.number(&family::ACTUATOR_RUNNING, &labels, running as f64);
    samples.number(&family::ACTUATOR_LONGEST, &labels, member.actuator.under_way().as_secs_f64());
    samples.number(&family::BREAKER, &labels, f64::from(u8::from(member.gate.pauses().is_some())));
}

/// How a member stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Ready,
    NotReady,
    Unreachable,
    CredentialRefused,
    NotConnected,
    Joining,
}

impl State {
    const ALL: [Self; 6] = [
        Self::Ready,
        Self::NotReady,
        Self::Unreachable,
        Self::CredentialRefused,
        Self::NotConnected,
        Self::Joining,
    ];

    fn of(member: &Member) -> Self {
        let health = &member.health;
        match member.all_readable() {
            _ if health.is_refused() => Self::CredentialRefused,
            _ if health.is_silent() => Self::Unreachable,
            _ if !health.is_reachable() => Self::Joining,
            Readable::Known => Self::Ready,
            Readable::Joining => Self::Joining,
            Readable::Not(_) => Self::NotReady,
        }
    }

    const fn as_str(self) -> &'static str {
        match self {
            Self::Ready => "Ready",
            Self::NotReady => "NotReady",
            Self::Unreachable => "Unreachable",
            Self::CredentialRefused => "CredentialRefused",
            Self::NotConnected => "NotConnected",
            Self::Joining => "Joining",
        }
    }
}
