//! `portolan doctor`

mod certificates;
mod hub;
mod in_the_way;
mod member;
mod probe;
mod report;
mod rights;
mod tenant_policy;
mod way;

pub(super) use report::Report;

use super::members;
use crate::cli::{ClusterArgs, DataFormat, DoctorArgs, LeaseArgs};
use crate::failure::Failure;
use crate::progress::Progress;
use crate::{clean, connection, output};
use futures::StreamExt;
use jiff::Timestamp;
use kube::Client;
use kube::api::ListParams;
use portolan_api::ForeignCluster;
use portolan_core::doctor::{Check, Evidence};
use portolan_runtime::{Clock, call};
use report::Sheet;
use std::collections::BTreeMap;
use std::io::IsTerminal;
use std::process::ExitCode;
use std::time::Duration;
use way::{Credential, Way};

/// How many members are checked at the same time.
const AT_ONCE: usize = 8;

/// The name of the hub in reports.
const HUB: &str = "hub";

/// What is to be checked, and with which flags.
pub(super) struct Request<'a> {
    pub(super) cluster: &'a ClusterArgs,
    pub(super) lease: &'a LeaseArgs,
    /// The members; all if none is named.
    pub(super) names: &'a [String],
    /// The contexts of members, as CLUSTER=CONTEXT.
    pub(super) contexts: &'a [String],
    /// How long the hub, and each member, may take.
    pub(super) timeout: Duration,
}

pub(super) fn run(args: &DoctorArgs) -> Result<ExitCode, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let report = runtime.block_on(Box::pin(examine(&Request {
        cluster: &args.cluster,
        lease: &args.lease,
        names: &args.names,
        contexts: &args.contexts,
        timeout: args.timeout.0,
    })))?;
    match args.output {
        None => anstream::print!("{}", clean::styled(&report.text())),
        Some(DataFormat::Json) => output::json(&[report.data()], false)?,
        Some(DataFormat::Yaml) => output::yaml(&[report.data()])?,
    }
    Ok(if report.has_problem() { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// Checks the hub and its members.
pub(super) async fn examine(request: &Request<'_>) -> Result<Report, Failure> {
    Box::pin(check_all(request)).await
}

async fn check_all(request: &Request<'_>) -> Result<Report, Failure> {
    let contexts = members::contexts(request.contexts)?;
    let config = connection::config(request.cluster).await?;
    let client = connection::client_of(config.clone())?;
    let sheet = Sheet::new(HUB, Clock::starting_at(Timestamp::now()));
    let way = Way {
        config,
        client: client.clone(),
        credential: Credential {
            called: "your credential".to_owned(),
            renew: "log in again, or take a new kubeconfig from the administrator of the hub (`kubeadm certs renew`)",
        },
    };
    let progress = std::io::stderr().is_terminal().then(Progress::start);
    let step = |text: &str| progress.iter().for_each(|progress| progress.step(text));
    step("check the hub");
    let answers = sheet.within(request.timeout, Check::Api, probe::hops(&sheet, &way)).await.unwrap_or(false);
    if !answers {
        for check in [Check::Kubernetes, Check::Definitions, Check::Leader, Check::Condition] {
            sheet.add(check, "", &Evidence::NotReached { after: Check::Api });
        }
        return Ok(sheet.report());
    }
    let clusters = members_of(&client, request, &sheet).await?;
    let of_hub = hub::check(&sheet, &client, request.lease, &clusters);
    let placed = member::placed(&client);
    let (_, placed) = tokio::join!(sheet.within(request.timeout, Check::Kubernetes, of_hub), placed);
    let total = clusters.len();
    let own = Own { args: request.cluster, contexts: &contexts, hub: &client };
    let each = clusters.iter().map(|cluster| {
        let (own, placed, sheet) = (&own, &placed, &sheet);
        async move {
            let sheet = sheet.of(cluster.metadata.name.as_deref().unwrap_or_default());
            let checks = Box::pin(member::check(&sheet, own, cluster, placed.as_ref(), total));
            sheet.within(request.timeout, Check::Api, checks).await;
        }
    });
    let mut each = futures::stream::iter(each).buffer_unordered(AT_ONCE);
    let mut done = 0;
    step(&format!("check {total} members"));
    while each.next().await.is_some() {
        done += 1;
        if total <= 10 || done % 10 == 0 {
            step(&format!("{done} of {total} members checked"));
        }
    }
    drop(each);
    Ok(sheet.report())
}

/// Whose credentials are used where the hub's do not do.
struct Own<'a> {
    args: &'a ClusterArgs,
    contexts: &'a BTreeMap<String, String>,
    hub: &'a Client,
}

/// The members that were asked for; a name that no member has is a mistake.
async fn members_of(
    hub: &Client,
    request: &Request<'_>,
    sheet: &Sheet,
) -> Result<Vec<ForeignCluster>, Failure> {
    let api: kube::Api<ForeignCluster> = kube::Api::all(hub.clone());
    match call("list the members", api.list(&ListParams::default())).await {
        Ok(list) => {
            let all = list.items;
            let name = |cluster: &ForeignCluster| cluster.metadata.name.clone().unwrap_or_default();
            if let Some(other) =
                request.names.iter().find(|wanted| !all.iter().any(|cluster| name(cluster) == **wanted))
            {
                return Err(Failure::input(format!("the fleet has no member {other:?}"))
                    .hint("`portolan get clusters` lists the members"));
            }
            let asked =
                |cluster: &ForeignCluster| request.names.is_empty() || request.names.contains(&name(cluster));
            Ok(all.into_iter().filter(asked).collect())
        }
        // Without its definition the hub has no members: that is for the check of the definitions to say.
        Err(error) if error.is_not_found() => Ok(Vec::new()),
        Err(error) => {
            sheet.add(Check::Condition, "", &report::unasked(&error, "list foreignclusters.portolan.dev"));
            Ok(Vec::new())
        }
    }
}
