//! The answers.

use bytes::Bytes;
use http::header::{ACCEPT, ALLOW, CACHE_CONTROL, CONTENT_TYPE, X_CONTENT_TYPE_OPTIONS};
use http::{HeaderValue, Method, Request, Response, StatusCode};
use http_body_util::Full;
use jiff::Timestamp;
use portolan_control::{Check, Monitor, monitor as family};
use portolan_runtime::Standing;
use portolan_runtime::metrics::{Format, Samples};
use std::fmt::Write;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

const TEXT: &str = "text/plain; charset=utf-8";

/// How old the numbers may be that are told: whoever asks very often has them collected no more often than this.
const COLLECTED_WITHIN: Duration = Duration::from_secs(1);

/// What is watched over.
#[derive(Default)]
pub(crate) struct Watched {
    /// The name of the Lease, and how the controller stands in the election, if it takes part in one.
    pub(crate) election: Option<(String, Standing)>,
    pub(crate) monitor: Monitor,
    /// When the process began.
    pub(crate) started: Timestamp,
}

/// What a controller answers, by path.
pub(crate) struct Endpoints {
    watched: Watched,
    collected: Mutex<Option<(Instant, Arc<Samples>)>>,
}

impl Endpoints {
    pub(crate) fn new(watched: Watched) -> Self {
        Self { watched, collected: Mutex::default() }
    }

    /// The answer to a request, whose body nobody reads.
    pub(crate) fn answer<B>(&self, request: &Request<B>) -> Response<Full<Bytes>> {
        if !matches!(*request.method(), Method::GET | Method::HEAD) {
            let mut response = response(StatusCode::METHOD_NOT_ALLOWED, TEXT, "only GET is answered\n");
            response.headers_mut().insert(ALLOW, HeaderValue::from_static("GET, HEAD"));
            return response;
        }
        match request.uri().path() {
            // Whoever reads this knows that the runtime of the controllers takes turns.
            "/healthz" | "/livez" => response(StatusCode::OK, TEXT, "ok\n"),
            "/readyz" => self.ready(),
            "/metrics" => {
                let accept = request.headers().get(ACCEPT).and_then(|accept| accept.to_str().ok());
                self.metrics(Format::accepted(accept.unwrap_or_default()))
            }
            _ => response(StatusCode::NOT_FOUND, TEXT, "there is /healthz, /readyz and /metrics\n"),
        }
    }

    fn ready(&self) -> Response<Full<Bytes>> {
        let lines = self.watched.lines();
        let is_ready = lines.iter().all(|(_, problem)| problem.is_none());
        let mut text = String::new();
        for (name, problem) in &lines {
            // Writing to a String does not fail.
            _ = match problem {
                None => writeln!(text, "[+]{name} ok"),
                Some(problem) => writeln!(text, "[-]{name} {problem}"),
            };
        }
        let status = if is_ready { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
        response(status, TEXT, &text)
    }

    fn metrics(&self, format: Format) -> Response<Full<Bytes>> {
        match self.samples().encode(format) {
            Ok(text) => response(StatusCode::OK, format.content_type(), &text),
            Err(error) => response(StatusCode::INTERNAL_SERVER_ERROR, TEXT, &format!("{error}\n")),
        }
    }

    fn samples(&self) -> Arc<Samples> {
        let mut collected = self.collected.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((at, samples)) = collected.as_ref()
            && at.elapsed() < COLLECTED_WITHIN
        {
            return Arc::clone(samples);
        }
        let samples = Arc::new(self.watched.samples());
        *collected = Some((Instant::now(), Arc::clone(&samples)));
        samples
    }
}

impl Watched {
    fn leads(&self) -> bool {
        self.election.as_ref().is_none_or(|(_, standing)| standing.leads())
    }

    fn lines(&self) -> Vec<Line> {
        let takes_part = self.election.as_ref().map(|(_, standing)| standing.takes_part());
        lines(takes_part, self.leads(), self.monitor.checks().as_deref())
    }

    fn samples(&self) -> Samples {
        let number = |holds: bool| f64::from(u8::from(holds));
        let mut samples = self.monitor.samples();
        samples.number(&family::BUILD_INFO, &[env!("CARGO_PKG_VERSION")], 1.0);
        let lease = self.election.as_ref().map_or("none", |(lease, _)| lease.as_str());
        samples.number(&family::LEADER, &[lease], number(self.leads()));
        let terms = self.election.as_ref().map_or(1, |(_, standing)| standing.terms());
        samples.count(&family::TERMS, &[lease], terms);
        for (check, problem) in self.lines() {
            samples.number(&family::READY, &[check], number(problem.is_none()));
        }
        super::process::collect(self.started, &mut samples);
        samples
    }
}

/// Something that readiness rests on, and why it does not hold.
type Line = (&'static str, Option<&'static str>);

/// What readiness rests on, and why it does not hold. A controller that stands by is ready when it takes part in the election:
/// that shows that the hub answers as well.
fn lines(takes_part: Option<bool>, leads: bool, checks: Option<&[Check]>) -> Vec<Line> {
    let silent = |answers: bool| (!answers).then_some("no answer from the API server of the hub");
    let mut lines = match takes_part {
        Some(takes_part) => vec![("election", silent(takes_part))],
        None => {
            vec![("hub", silent(checks.is_some_and(|checks| checks.iter().any(|each| each.hub_answers))))]
        }
    };
    match checks {
        _ if !leads => lines.push(("leader", None)),
        None => lines.push(("controllers", Some("are being started"))),
        Some(checks) => lines.extend(checks.iter().map(|each| (each.name, each.problem))),
    }
    lines
}

fn response(status: StatusCode, content_type: &'static str, text: &str) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(Bytes::copy_from_slice(text.as_bytes())));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(name: &'static str, problem: Option<&'static str>) -> Check {
        Check { name, problem, hub_answers: problem.is_none() }
    }

    fn problems(lines: &[Line]) -> Vec<&'static str> {
        lines.iter().filter(|(_, problem)| problem.is_some()).map(|(name, _)| *name).collect()
    }

    #[test]
    fn a_controller_that_stands_by_is_ready_while_the_hub_answers() {
        assert_eq!(problems(&lines(Some(true), false, None)), [""; 0]);
        assert_eq!(problems(&lines(Some(false), false, None)), ["election"]);
    }

    #[test]
    fn a_leader_is_ready_when_all_its_kinds_are_listed_and_claimed() {
        let checks = [check("ForeignCluster", None), check("fence", Some("x"))];
        assert_eq!(problems(&lines(Some(true), true, None)), ["controllers"]);
        assert_eq!(problems(&lines(Some(true), true, Some(&checks))), ["fence"]);
        assert_eq!(problems(&lines(Some(true), true, Some(&checks[..1]))), [""; 0]);
        assert_eq!(problems(&lines(None, true, Some(&checks[..1]))), [""; 0]);
        assert_eq!(problems(&lines(None, true, Some(&checks[1..]))), ["hub", "fence"]);
    }

    #[test]
    fn only_get_is_answered_and_only_what_there_is() {
        let endpoints = Endpoints::new(Watched::default());
        let status = |method: Method, path: &str| {
            let request = Request::builder().method(method).uri(path).body(()).unwrap();
            endpoints.answer(&request).status().as_u16()
        };
        assert_eq!(status(Method::GET, "/healthz"), 200);
        assert_eq!(status(Method::HEAD, "/healthz?verbose"), 200);
        assert_eq!(status(Method::POST, "/healthz"), 405);
        assert_eq!(status(Method::GET, "/healthz/.."), 404);
        assert_eq!(status(Method::GET, "/"), 404);
    }
}
