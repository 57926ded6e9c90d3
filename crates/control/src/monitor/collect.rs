//! The numbers of this moment.

use super::families as family;
use super::{Running, clouds, members, workloads};
use portolan_runtime::metrics::{RequestCounts, Samples};

pub(super) fn controllers(running: &Running, samples: &mut Samples) {
    for each in running.kinds.iter().filter(|each| !each.is_left_out()) {
        let (health, labels) = (&each.health, [each.kind]);
        if let Some(age) = health.age() {
            samples.number(&family::HUB_WATCH_AGE, &labels, age.as_secs_f64());
        }
        let failing = f64::from(u8::from(health.failure().is_some()));
        samples.number(&family::HUB_WATCH_FAILING, &labels, failing);
        samples.number(&family::HUB_UNREADABLE, &labels, health.count_unreadable() as f64);
    }
    running.fleet.queues.collect(samples);
    running.controllers.iter().for_each(|each| workloads::collect(each.as_ref(), samples));
    members::collect(&running.fleet, running.connect.as_ref(), samples);
    clouds::collect(&running.provisioners, samples);
}

pub(super) fn requests(requests: &RequestCounts, samples: &mut Samples) {
    for (cluster, verbs) in requests.all() {
        for (verb, count) in verbs {
            for (code, number) in count.codes {
                samples.count(&family::REQUESTS, &[&cluster, verb, code], number);
            }
            if count.latency.count() > 0 {
                samples.histogram(&family::REQUEST_LATENCY, &[&cluster, verb], &count.latency);
            }
        }
    }
}
