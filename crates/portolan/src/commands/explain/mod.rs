//! `portolan explain`

mod reasons;

use super::outlook;
use crate::cli::{DataFormat, ExplainArgs};
use crate::failure::Failure;
use crate::human::{amount, round_trip};
use crate::kind::Kind;
use crate::style::{BOLD, DIM, RESET, YELLOW, mark};
use crate::{connection, output};
use anstream::println;
use kube::api::ListParams;
use portolan_api::convert::{to_json, to_yaml};
use reasons::{Place, Reasons};
use serde_json::{Map, Value, json};

pub(super) fn run(args: &ExplainArgs) -> Result<(), Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(Box::pin(explain(args)))
}

async fn explain(args: &ExplainArgs) -> Result<(), Failure> {
    let (kind, names) = Kind::parse(&args.workload)?;
    let [name] = names.as_slice() else {
        return Err(Failure::input(format!("{:?} names no workload", args.workload)).hint(KINDS));
    };
    if kind == Kind::Cluster {
        return Err(Failure::input(format!("{:?} is no workload", args.workload)).hint(KINDS));
    }
    let (hub, _) = connection::answering(&args.cluster).await?;
    let namespace = args.namespace.clone().unwrap_or_else(|| hub.default_namespace().to_owned());
    let missing = || {
        Failure::other(format!("{} {name:?} is not there", kind.name()))
            .hint(format!("it was looked for in namespace {namespace}"))
    };
    // Asked for first: whether it is there is soon told, and getting to know the members takes a while.
    let named = ListParams::default().fields(&format!("metadata.name={name}"));
    if kind.list(&hub, Some(&namespace), &named).await?.is_empty() {
        return Err(missing());
    }
    let preview = outlook::open(&hub, args.timeout.0).await?;
    let is = |asked: Kind| (kind == asked).then_some(());
    let deployment = is(Kind::Deployment).and_then(|()| preview.explain(&namespace, name));
    let job = is(Kind::Job).and_then(|()| preview.explain_job(&namespace, name));
    let service = is(Kind::Service).and_then(|()| preview.explain_service(&namespace, name));
    let reasons = (deployment.as_ref().map(Reasons::of_deployment))
        .or_else(|| job.as_ref().map(Reasons::of_job))
        .or_else(|| service.as_ref().map(Reasons::of_service));
    let reasons = reasons
        .ok_or_else(missing)?
        .map_err(|problem| Failure::other(format!("{} {namespace}/{name}: {problem}", kind.name())))?;
    let title = format!("{namespace}/{name}");
    match args.output {
        Some(DataFormat::Json) => {
            output::data(&to_json(&[as_json(kind, &title, &reasons)]).map_err(Failure::other)?)
        }
        Some(DataFormat::Yaml) => {
            output::data(&to_yaml(&[as_json(kind, &title, &reasons)]).map_err(Failure::other)?)
        }
        None => {
            println!("{BOLD}{} {title}{RESET}", kind.name());
            reasons.held_up.iter().for_each(|line| println!("{YELLOW}{line}{RESET}"));
            reasons.summary.iter().for_each(|line| println!("{line}"));
            reasons.places.iter().for_each(tell);
            Ok(())
        }
    }
}

/// What can be explained.
const KINDS: &str = "give mcd/NAME, mcj/NAME or mcs/NAME";

fn tell(place: &Place<'_>) {
    println!("\n{BOLD}{}{RESET}  {}", place.cluster, place.verdict);
    let mut facts = place.facts.clone();
    if let Some(account) = place.account {
        for filter in &account.filters {
            println!("  {} {:<9} {}", mark(filter.passed), filter.name, filter.told);
        }
        if let Some(rank) = account.rank {
            facts.push(format!("place {rank} in the order of the policy"));
        }
        if account.fits.is_some() {
            let (cpu, memory) = (amount("cpu", account.room.cpu), amount("memory", account.room.memory));
            facts.push(format!("free for it: cpu {cpu}, memory {memory}"));
        }
        if let Some(traffic) = account.traffic {
            facts.push(format!("receives {:.1} requests/s", traffic as f64 / 1000.0));
        }
        if let Some((location, rtt)) = &account.distance {
            facts.push(format!("{} from {location}", round_trip(*rtt)));
        }
        facts.push(format!("held {} before", account.held));
    }
    if !facts.is_empty() {
        println!("  {DIM}{}{RESET}", facts.join("; "));
    }
    if let Some(others) = place.reserved {
        let texts: Vec<_> = others.iter().map(|(name, count)| format!("{name} {count}")).collect();
        println!("  {DIM}reserved by others: {}{RESET}", texts.join(", "));
    }
    if let Some(note) = &place.note {
        println!("  {YELLOW}!{RESET} {note}");
    }
}

fn as_json(kind: Kind, title: &str, reasons: &Reasons<'_>) -> Value {
    let cluster = |place: &Place<'_>| {
        let mut fields = Map::new();
        let mut put = |name: &str, value: Value| {
            if !value.is_null() {
                fields.insert(name.to_owned(), value);
            }
        };
        put("cluster", json!(place.cluster));
        put("verdict", json!(place.verdict));
        if let Some(account) = place.account {
            let filter = |each: &portolan_core::placement::Filter| json!({"name": each.name, "passed": each.passed, "told": each.told});
            put("filters", account.filters.iter().map(filter).collect());
            put("fits", json!(account.fits));
            let free = json!({"cpuMillis": account.room.cpu, "memoryBytes": account.room.memory / 1000});
            put("free", if account.fits.is_some() { free } else { Value::Null });
            put("rank", json!(account.rank));
            put("requestsPerSecond", json!(account.traffic.map(|traffic| traffic as f64 / 1000.0)));
            let distance = account
                .distance
                .as_ref()
                .map(|(from, rtt)| json!({"from": from, "milliseconds": rtt.as_secs_f64() * 1000.0}));
            put("distance", json!(distance));
            put("held", json!(account.held));
            put("settled", json!(account.settled));
        }
        place.numbers.iter().for_each(|(name, value)| put(name, json!(value)));
        put("reservedByOthers", json!(place.reserved));
        put("note", json!(place.note));
        Value::Object(fields)
    };
    json!({
        "kind": kind.name(),
        "workload": title,
        "heldUp": reasons.held_up,
        "summary": reasons.summary,
        "clusters": reasons.places.iter().map(cluster).collect::<Vec<_>>(),
    })
}
