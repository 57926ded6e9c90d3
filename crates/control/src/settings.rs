//! What the operator of a hub sets for all its controllers.

use crate::monitor::Monitor;
use portolan_api::foreigncluster::PrometheusQuery;
use std::str::FromStr;

/// What the operator of a hub sets for all its controllers.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    /// The Prometheus of the hub, which queries of autoscalers are put to.
    pub prometheus: Option<PrometheusService>,
    /// Whether members are asked to measure their distance to each other. Those that measure learn the names of the others, and the
    /// addresses of their API servers.
    pub measure_latency: bool,
    /// Where the controllers can be seen from outside.
    pub monitor: Monitor,
}

/// The Service of a Prometheus, which is asked through the API server's proxy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PrometheusService {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub service: String,
    /// Its port.
    pub port: u16,
}

/// A text that names no Service.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not of the form NAMESPACE/SERVICE:PORT, such as monitoring/prometheus:9090")]
pub struct NotAService(String);

impl PrometheusService {
    /// A query that is put to it.
    #[must_use]
    pub fn with(&self, query: &str) -> PrometheusQuery {
        let (namespace, service) = (self.namespace.clone(), self.service.clone());
        PrometheusQuery { namespace, service, port: i32::from(self.port), query: query.to_owned() }
    }
}

impl FromStr for PrometheusService {
    type Err = NotAService;

    fn from_str(text: &str) -> Result<Self, NotAService> {
        let is_name = |name: &str| {
            !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-.".contains(&byte))
        };
        let parts = text.split_once('/').and_then(|(namespace, rest)| {
            let (service, port) = rest.split_once(':')?;
            let port = port.parse().ok().filter(|port| *port > 0)?;
            (is_name(namespace) && is_name(service)).then_some((namespace, service, port))
        });
        let (namespace, service, port) = parts.ok_or_else(|| NotAService(text.to_owned()))?;
        Ok(Self { namespace: namespace.to_owned(), service: service.to_owned(), port })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_service_is_named_in_full() {
        let found: PrometheusService = "monitoring/prometheus:9090".parse().unwrap();
        assert_eq!(
            (found.namespace.as_str(), found.service.as_str(), found.port),
            ("monitoring", "prometheus", 9090)
        );
        for wrong in
            ["prometheus:9090", "monitoring/prometheus", "a/b:0", "a/b:70000", "a/../b:1", "/b:1", ""]
        {
            assert!(wrong.parse::<PrometheusService>().is_err(), "{wrong}");
        }
    }
}
