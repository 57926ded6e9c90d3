//! `portolan explain`

use super::outlook;
use crate::cli::ExplainArgs;
use crate::connection;
use crate::failure::Failure;
use crate::human::{amount, round_trip};
use crate::kind::Kind;
use crate::style::{BOLD, DIM, RESET, YELLOW, mark};
use anstream::println;
use portolan_control::Outlook;
use portolan_core::placement::Account;

pub(super) fn run(args: &ExplainArgs) -> Result<(), Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(Box::pin(explain(args)))
}

async fn explain(args: &ExplainArgs) -> Result<(), Failure> {
    let (kind, names) = Kind::parse(&args.workload)?;
    let (Kind::Deployment, Some(name)) = (kind, names.first()) else {
        return Err(Failure::input(format!("{:?} is not a MultiClusterDeployment", args.workload))
            .hint("give mcd/NAME"));
    };
    let (hub, _) = connection::answering(&args.cluster).await?;
    let namespace = args.namespace.clone().unwrap_or_else(|| hub.default_namespace().to_owned());
    let preview = outlook::open(&hub, args.timeout.0).await?;
    let Some(outlook) = preview.explain(&namespace, name) else {
        return Err(Failure::other(format!("multiclusterdeployment {name:?} is not there"))
            .hint(format!("it was looked for in namespace {namespace}")));
    };
    println!("{BOLD}multiclusterdeployment {namespace}/{name}{RESET}");
    show(&outlook)
}

fn show(outlook: &Outlook) -> Result<(), Failure> {
    if outlook.paused {
        println!("{YELLOW}It is paused: the last decision stands, whatever would be decided now.{RESET}");
    }
    let decision = match &outlook.decision {
        Ok(decision) => decision,
        Err(problem) => return Err(Failure::other(format!("nothing can be decided: {problem}"))),
    };
    let placed: u32 = decision.placed.values().map(|placed| placed.replicas).sum();
    println!("{placed} replicas placed, {} pending", decision.pending);
    if decision.to_cloud {
        println!("A further cloud cluster would help: replicas that may go anywhere fit nowhere.");
    }
    for account in &outlook.accounts {
        tell(account, outlook);
    }
    for (name, refusal) in &decision.refusals {
        if !outlook.accounts.iter().any(|account| account.cluster == *name) {
            println!("\n{BOLD}{name}{RESET}  {}", refusal.message);
        }
    }
    Ok(())
}

fn tell(account: &Account, outlook: &Outlook) {
    println!("\n{BOLD}{}{RESET}  {}", account.cluster, account.verdict);
    for filter in &account.filters {
        println!("  {} {:<9} {}", mark(filter.passed), filter.name, filter.told);
    }
    let mut facts = Vec::new();
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
    println!("  {DIM}{}{RESET}", facts.join("; "));
    if let Some(others) = outlook.reserved.get(&account.cluster) {
        let texts: Vec<_> = others.iter().map(|(name, count)| format!("{name} {count}")).collect();
        println!("  {DIM}reserved by others: {}{RESET}", texts.join(", "));
    }
    if let Some(note) = outlook.notes.get(&account.cluster) {
        println!("  {YELLOW}!{RESET} {note}");
    }
}
