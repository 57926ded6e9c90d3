//! What a controller tells those who watch over it, and what the shipped dashboard and alerts ask of that.

#![allow(clippy::unwrap_used, clippy::panic)]

mod support;

use portolan_api::Reason;
use portolan_control::monitor::families;
use portolan_runtime::metrics::{Family, Kind};
use promql_parser::label::MatchOp;
use promql_parser::parser::{self, Expr, LabelModifier, VectorSelector};
use promql_parser::util::{ExprVisitor, walk_expr};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use support::{World, job, namespace, workload};

const RULES: &str = include_str!("../../../deploy/monitoring/prometheusrule.yaml");
const DASHBOARD: &str = include_str!("../../../deploy/monitoring/dashboard.json");
const SERVICE: &str = include_str!("../../../deploy/monitoring/service.yaml");
const SERVICE_MONITOR: &str = include_str!("../../../deploy/monitoring/servicemonitor.yaml");

/// Labels that Prometheus adds to every series that it scrapes.
const TARGET_LABELS: [&str; 4] = ["job", "instance", "namespace", "pod"];

/// Metrics that only some fleets have.
const SOMETIMES: [&str; 1] = ["portolan_cloud_provisioner_left_out_pods"];

/// How long anything may take on a busy machine.
const LONG: Duration = Duration::from_secs(120);

/// A controller that serves its metrics and logs JSON.
struct Controller {
    process: Child,
    address: String,
    log: Arc<Mutex<Vec<String>>>,
}

impl Controller {
    fn start(world: &World) -> Self {
        let mut process = Command::new(env!("CARGO_BIN_EXE_portolan"))
            .args(["controller", "--context", "c1", "--listen", "127.0.0.1:0", "--log-format", "json"])
            .args(["--kubeconfig", world.file()])
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(process.stderr.take().unwrap()).lines();
        let first = lines.next().unwrap().unwrap();
        let event: Value = serde_json::from_str(&first).unwrap();
        let address = event["message"].as_str().unwrap().rsplit("http://").next().unwrap().to_owned();
        let log = Arc::new(Mutex::new(vec![first]));
        let written = Arc::clone(&log);
        std::thread::spawn(move || {
            lines.map_while(Result::ok).for_each(|line| written.lock().unwrap().push(line))
        });
        Self { process, address, log }
    }

    /// Status and body of an answer.
    fn get(&self, path: &str) -> (u16, String) {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        write!(stream, "GET {path} HTTP/1.1\r\nHost: a\r\n\r\n").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        (head.split(' ').nth(1).unwrap().parse().unwrap(), body.to_owned())
    }

    /// Asks again and again until it is answered so.
    fn until(&self, path: &str, is_met: impl Fn(u16, &str) -> bool) -> String {
        let start = Instant::now();
        loop {
            let (status, body) = self.get(path);
            if is_met(status, &body) {
                return body;
            }
            assert!(start.elapsed() < LONG, "{path} never answered as it should: {status} {body}");
            std::thread::sleep(Duration::from_millis(500));
        }
    }
}

impl Drop for Controller {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// The series of a page: names with the labels of each and their values.
fn series(page: &str) -> BTreeMap<&str, Vec<BTreeMap<&str, &str>>> {
    let mut all: BTreeMap<&str, Vec<BTreeMap<&str, &str>>> = BTreeMap::new();
    for line in page.lines().filter(|line| !line.starts_with('#')) {
        let (name, value) = line.rsplit_once(' ').unwrap();
        assert!(value.parse::<f64>().is_ok(), "{line}");
        let (name, labels) = name.split_once('{').unwrap_or((name, "}"));
        let labels = labels.strip_suffix('}').unwrap().split("\",").filter(|label| !label.is_empty());
        let labels = labels.map(|label| {
            let (name, value) = label.split_once("=\"").unwrap();
            (name, value.trim_end_matches('"'))
        });
        all.entry(name).or_default().push(labels.collect());
    }
    all
}

/// The names of the series of a metric.
fn names(family: &Family) -> Vec<String> {
    match family.kind {
        Kind::Histogram => ["_bucket", "_sum", "_count"].map(|end| format!("{}{end}", family.name)).to_vec(),
        Kind::Counter | Kind::Gauge => vec![family.series()],
    }
}

/// The metric that a series is of.
fn family_of(name: &str) -> Option<&'static Family> {
    families().into_iter().find(|family| names(family).iter().any(|each| each == name))
}

fn provisioner() -> Value {
    let machine = json!({"name": "small", "cpu": "2", "memory": "4Gi", "pricePerHour": "0.05"});
    json!({
        "apiVersion": "portolan.dev/v1alpha1", "kind": "CloudProvisioner", "metadata": {"name": "burst"},
        "spec": {
            "cloudClusterName": "cloud1", "cloudProvider": "OpenStack", "machineTypes": [machine],
            "maxCostPerHour": "1",
        },
    })
}

#[test]
fn everything_that_is_documented_is_told_and_nothing_else() {
    let world = World::start("monitor", 2);
    world.portolan(&["peer", "--remote-context", "c2", "-n", "shop", "--timeout", "0s"]);
    world.apply("c1", &namespace("shop"));
    for object in [
        workload("web", 2, "100m", &json!({})),
        workload("huge", 3, "64", &json!({})),
        job("run", 2, "64", &json!({})),
        provisioner(),
    ] {
        world.apply("c1", &object);
    }
    let controller = Controller::start(&world);
    assert_eq!(controller.get("/healthz"), (200, "ok\n".to_owned()));
    let ready = controller.until("/readyz", |status, _| status == 200);
    assert!(ready.contains("[+]election ok") && ready.contains("[+]MultiClusterDeployment ok"), "{ready}");

    let has = |page: &str, line: &str| page.lines().any(|each| each.starts_with(line));
    let page = controller.until("/metrics", |_, page| {
        let all = series(page);
        let missing = |family: &&Family| !all.contains_key(names(family)[0].as_str());
        has(page, "portolan_members{state=\"Ready\"} 1")
            && has(page, "portolan_pending_workloads{kind=\"MultiClusterJob\"} 1")
            && has(page, "portolan_pending_workloads{kind=\"MultiClusterDeployment\"} 1")
            && families().iter().filter(|family| !SOMETIMES.contains(&family.name)).all(|each| !missing(each))
    });
    let all = series(&page);
    for (name, found) in &all {
        let family = family_of(name).unwrap_or_else(|| panic!("{name} is not documented"));
        let expected: BTreeSet<&str> = family.labels.iter().copied().collect();
        for labels in found {
            let labels: BTreeSet<&str> = labels.keys().copied().filter(|label| *label != "le").collect();
            assert_eq!(labels, expected, "{name}");
        }
    }
    let value = |line: &str| {
        let found = page.lines().find(|each| each.starts_with(line));
        found.and_then(|each| each.rsplit(' ').next()?.parse::<f64>().ok()).unwrap_or_default()
    };
    assert_eq!(value("portolan_leader_election_master_status{"), 1.0, "{page}");
    let pending: f64 = page
        .lines()
        .filter(|line| line.starts_with("portolan_pending_replicas{"))
        .map(|line| line.rsplit(' ').next().unwrap().parse::<f64>().unwrap())
        .sum();
    assert_eq!(pending, 3.0, "{page}");
    assert!(value("portolan_decisions_total{kind=\"MultiClusterDeployment\",result=\"scheduled\"}") >= 1.0);
    assert!(value("portolan_rest_client_requests_total{cluster=\"c2\",verb=\"GET\",code=\"200\"}") >= 1.0);
    assert!(
        value("portolan_reconcile_total{controller=\"MultiClusterDeployment\",result=\"requeue_after\"}")
            >= 1.0
    );
    assert!(value("process_resident_memory_bytes") > 1e6);
    let end = value("portolan_member_credential_expiration_timestamp_seconds{cluster=\"c2\"}");
    let lifetime = value("portolan_member_credential_lifetime_seconds{cluster=\"c2\"}");
    assert!(end > 1.7e9 && lifetime > 600.0, "{end} {lifetime}");

    let log = controller.log.lock().unwrap().clone();
    for line in &log {
        let event: Value = serde_json::from_str(line).unwrap_or_else(|error| panic!("{line}: {error}"));
        assert!(event["level"].is_string() && event["timestamp"].is_string(), "{line}");
        assert!(!line.contains("eyJ"), "a token is in the log");
    }
    assert!(log.iter().any(|line| line.contains("\"message\":\"leads\"")), "{log:?}");
}

/// Looks at each metric that a query selects.
struct Selected<'a>(&'a mut dyn FnMut(&VectorSelector), &'a mut dyn FnMut(&str));

impl ExprVisitor for Selected<'_> {
    type Error = Infallible;

    fn pre_visit(&mut self, expr: &Expr) -> Result<bool, Infallible> {
        match expr {
            Expr::VectorSelector(selector) => (self.0)(selector),
            Expr::MatrixSelector(matrix) => (self.0)(&matrix.vs),
            Expr::Aggregate(aggregate) => {
                if let Some(LabelModifier::Include(labels) | LabelModifier::Exclude(labels)) =
                    &aggregate.modifier
                {
                    labels.labels.iter().for_each(|label| (self.1)(label));
                }
            }
            _ => {}
        }
        Ok(true)
    }
}

/// The label values that this program makes up itself, by metric and label; other values are names of objects.
fn known_values(label: &str) -> Option<&'static [&'static str]> {
    Some(match label {
        "result" => &["scheduled", "unschedulable", "error", "success", "requeue_after"],
        "state" => &[
            "Ready",
            "NotReady",
            "Unreachable",
            "CredentialRefused",
            "NotConnected",
            "Joining",
            "desired",
            "existing",
            "ready",
        ],
        "cluster" => &["hub"],
        _ => return None,
    })
}

/// Checks a query; answers the labels that its result may have.
fn check(query: &str) -> BTreeSet<String> {
    let query = query.replace("$__rate_interval", "5m").replace("$job", ".*");
    let parsed = parser::parse(&query).unwrap_or_else(|error| panic!("{query}: {error}"));
    let mut labels: BTreeSet<String> = TARGET_LABELS.iter().map(|label| (*label).to_owned()).collect();
    let (mut metrics, mut grouped) = (Vec::new(), BTreeSet::new());
    let mut select = |selector: &VectorSelector| {
        let name = selector.name.as_deref().unwrap_or_else(|| panic!("{query}: a selector without a name"));
        let family = family_of(name).unwrap_or_else(|| panic!("{query}: {name} does not exist"));
        metrics.push(family);
        for matcher in &selector.matchers.matchers {
            let label = matcher.name.as_str();
            let exists = family.labels.contains(&label) || TARGET_LABELS.contains(&label);
            assert!(exists, "{query}: {name} has no label {label}");
            if matches!(matcher.op, MatchOp::Equal) {
                if label == "reason" {
                    assert!(
                        Reason::parse(&matcher.value).is_some(),
                        "{query}: {} is no reason",
                        matcher.value
                    );
                }
                let known = known_values(label).is_none_or(|known| known.contains(&matcher.value.as_str()));
                assert!(known, "{query}: {label} is never {}", matcher.value);
            }
        }
    };
    let mut group = |label: &str| _ = grouped.insert(label.to_owned());
    let walked = walk_expr(&mut Selected(&mut select, &mut group), &parsed);
    assert!(walked.is_ok() && !metrics.is_empty(), "{query}");
    for family in &metrics {
        labels.extend(family.labels.iter().map(|label| (*label).to_owned()));
        if family.kind == Kind::Histogram {
            labels.insert("le".to_owned());
        }
    }
    for label in &grouped {
        assert!(labels.contains(label), "{query}: there is no label {label} to group by");
    }
    if grouped.is_empty() { labels } else { grouped }
}

/// The labels that a text of an alert or a panel names.
fn named(text: &str, before: &str) -> Vec<String> {
    let parts = text.split(before).skip(1);
    let word = |part: &str| part.chars().take_while(|each| each.is_alphanumeric() || *each == '_').collect();
    parts.map(word).collect()
}

#[test]
fn alerts_ask_for_what_there_is() {
    let rules: Value = serde_saphyr::from_str(RULES).unwrap();
    let groups = rules["spec"]["groups"].as_array().unwrap();
    let mut alerts = BTreeSet::new();
    for rule in groups.iter().flat_map(|group| group["rules"].as_array().unwrap()) {
        let name = rule["alert"].as_str().unwrap();
        assert!(alerts.insert(name), "{name} is there twice");
        let labels = check(rule["expr"].as_str().unwrap());
        assert!(
            ["critical", "warning", "info"].contains(&rule["labels"]["severity"].as_str().unwrap()),
            "{name}"
        );
        for field in ["summary", "description"] {
            let text = rule["annotations"][field].as_str().unwrap_or_else(|| panic!("{name} has no {field}"));
            for label in named(text, "$labels.") {
                assert!(labels.contains(&label), "{name}: its expression has no label {label}");
            }
        }
    }
    for needed in [
        "PortolanNoLeader",
        "PortolanMemberUnreachable",
        "PortolanReplicasPending",
        "PortolanCredentialEnds",
        "PortolanReconcileErrors",
        "PortolanActuatorBreakerOpen",
        "PortolanControllerRestarts",
        "PortolanCloudOverBudget",
        "PortolanCloudFails",
    ] {
        assert!(alerts.contains(needed), "{needed}");
    }
}

#[test]
fn panels_ask_for_what_there_is_and_show_all_of_it() {
    let dashboard: Value = serde_json::from_str(DASHBOARD).unwrap();
    let panels = dashboard["panels"].as_array().unwrap();
    let ids: BTreeSet<i64> = panels.iter().map(|panel| panel["id"].as_i64().unwrap()).collect();
    assert_eq!(ids.len(), panels.len(), "each panel has an id of its own");
    let mut asked = String::new();
    for target in panels.iter().flat_map(|panel| panel["targets"].as_array().into_iter().flatten()) {
        let query = target["expr"].as_str().unwrap();
        let labels = check(query);
        for label in named(target["legendFormat"].as_str().unwrap(), "{{") {
            assert!(labels.contains(&label), "{query}: it has no label {label}");
        }
        asked.push_str(query);
    }
    for family in families().iter().filter(|family| family.name.starts_with("portolan_")) {
        let elsewhere = ["portolan_member_credential_lifetime_seconds"].contains(&family.name);
        assert!(asked.contains(family.name) || elsewhere, "no panel shows {}", family.name);
    }
}

#[test]
fn the_service_monitor_finds_the_port_of_the_service() {
    let service: Value = serde_saphyr::from_str(SERVICE).unwrap();
    let monitor: Value = serde_saphyr::from_str(SERVICE_MONITOR).unwrap();
    let selected = monitor["spec"]["selector"]["matchLabels"].as_object().unwrap();
    for (label, value) in selected {
        assert_eq!(&service["metadata"]["labels"][label], value);
    }
    assert_eq!(monitor["spec"]["endpoints"][0]["port"], service["spec"]["ports"][0]["name"]);
    assert_eq!(monitor["spec"]["namespaceSelector"]["matchNames"][0], service["metadata"]["namespace"]);
    // The alerts and the documentation call the job so, which the ServiceMonitor names after the Service.
    let job = format!("job=\"{}\"", service["metadata"]["name"].as_str().unwrap());
    assert!(RULES.contains(&job), "{job}");
}
