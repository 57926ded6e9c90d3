//! `portolan controller`

use super::share::parsed;
use super::version::VERSION_ANNOTATION;
use crate::cli::ControllerArgs;
use crate::connection;
use crate::endpoints::{self, Endpoints, Watched};
use crate::failure::Failure;
use crate::handshake::OverTheNetwork;
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::Namespace;
use kube::api::{ObjectMeta, Patch, PatchParams, PostParams};
use kube::{Api, Client};
use portolan_control::fleet::{Credentials, HUB};
use portolan_control::measurement::{Handshake, measure};
use portolan_control::reporting::report_capacity;
use portolan_control::sharing::{Providing, provide_with};
use portolan_control::{Monitor, Settings, peering, run_with, tenancy};
use portolan_runtime::{Clock, Election, Seed, Standing, Term, call, chain};
use serde_json::json;
use std::sync::Arc;
use std::time::Duration;

/// How often the clock is compared with that of the machine.
const CLOCK_CHECK: Duration = Duration::from_secs(10);

const GOODBYE: &str = "stopped; workloads in the members keep running";

pub(super) fn run(args: &ControllerArgs) -> Result<(), Failure> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(serve(args))
}

async fn serve(args: &ControllerArgs) -> Result<(), Failure> {
    let by_default = args.share_by_default.as_deref().map(parsed).transpose()?;
    let handshake = args.measure_latency.then(OverTheNetwork::new).transpose().map_err(Failure::other)?;
    let handshake = handshake.map(|handshake| Arc::new(handshake) as Arc<dyn Handshake>);
    let (monitor, standing) = (Monitor::default(), Standing::default());
    let say =
        |text: String| if args.log_format.is_json() { tracing::info!("{text}") } else { eprintln!("{text}") };
    if let Some(address) = args.listen {
        let listener = endpoints::bind(address).await?;
        say(format!("serves /healthz, /readyz and /metrics at http://{}", listener.local_addr()?));
        let election = args.leader_elect.then(|| (args.lease_name.clone(), standing.clone()));
        let watched = Watched { election, monitor: monitor.clone(), started: Timestamp::now() };
        tokio::spawn(endpoints::serve(listener, Endpoints::new(watched)));
    }
    let requests = monitor.requests().of(HUB);
    let (hub, version) = connection::answering_counted(&args.cluster, &requests).await?;
    say(format!("Portolan {} runs for a hub of Kubernetes {version}", env!("CARGO_PKG_VERSION")));
    let seed = Seed::new(Timestamp::now().as_nanosecond().unsigned_abs() as u64);
    let clock = Clock::starting_at(Timestamp::now());
    let holder = holder()?;
    let connect = Arc::new(Credentials::from_hub(hub.clone()).counting(monitor.requests().clone()));
    let announced = || {
        let (hub, namespace, name) = (hub.clone(), args.lease_namespace.clone(), args.lease_name.clone());
        async move {
            announce_version(&hub, &namespace, &name).await;
            std::future::pending::<()>().await;
        }
    };
    let controllers = |term: Term| {
        let leading = announced();
        let new_key: tenancy::NewKey = Arc::new(rcgen::KeyPair::generate);
        let (own, clock_of) = (seed.child("tenancy"), clock.clone());
        let serving = tenancy::run_with(hub.clone(), clock_of.clone(), own, term.clone(), &monitor);
        let (renewing_hub, renewing_term) = (hub.clone(), term.clone());
        let renewing = tenancy::renew_with(
            renewing_hub,
            connect.clone(),
            clock_of,
            own,
            renewing_term,
            new_key,
            &monitor,
        );
        let measuring = {
            let (cluster, handshake, clock) = (hub.clone(), handshake.clone(), clock.clone());
            let (own, term) = (seed.child("measurement"), term.clone());
            async move {
                match handshake {
                    Some(handshake) => measure(cluster, handshake, clock, own, term).await,
                    None => std::future::pending().await,
                }
            }
        };
        let reporting = {
            let (cluster, clock, is_on) = (hub.clone(), clock.clone(), args.report_capacity);
            let (own, term) = (seed.child("reporting"), term.clone());
            async move {
                if is_on {
                    report_capacity(cluster, clock, own, term).await;
                } else {
                    std::future::pending::<()>().await;
                }
            }
        };
        let settings = Settings {
            prometheus: args.prometheus.clone(),
            measure_latency: args.measure_latency,
            monitor: monitor.clone(),
        };
        let providing = Providing { term: term.clone(), by_default, monitor: monitor.clone() };
        let placing = run_with(hub.clone(), connect.clone(), clock.clone(), seed, term, settings);
        let own = seed.child("peering");
        let peering = peering::run_with(hub.clone(), connect.clone(), clock.clone(), own, &monitor);
        let sharing = provide_with(hub.clone(), clock.clone(), seed.child("sharing"), providing);
        Box::pin(async {
            tokio::select! { () = placing => {}, () = peering => {}, () = sharing => {}, () = leading => {}, () = serving => {}, () = renewing => {}, () = measuring => {}, () = reporting => {} }
        })
    };
    if !args.leader_elect {
        return tokio::select! {
            () = controllers(Term::alone(&holder)) => Err(Failure::other("the controllers ended by themselves")),
            stopped = stopped(&clock) => stopped.inspect(|()| say(GOODBYE.to_owned())),
        };
    }
    ensure_namespace(&hub, &args.lease_namespace).await?;
    say(format!("{holder} takes part in the election by Lease {}/{}", args.lease_namespace, args.lease_name));
    let election = Election {
        client: hub.clone(),
        namespace: args.lease_namespace.clone(),
        name: args.lease_name.clone(),
        holder,
        clock: clock.clone(),
        seed: seed.child("election"),
        standing,
    };
    let mut ended = None;
    election.lead(controllers, async { ended = Some(stopped(&clock).await) }).await;
    // Whoever starts it anew starts it whole; meanwhile another one may lead.
    let stopped = ended.unwrap_or_else(|| Err(Failure::other("the controllers ended by themselves")));
    stopped.inspect(|()| say(GOODBYE.to_owned()))
}

/// Waits for the end: a signal, or a clock that was set. All times would be wrong for as long as this process lives: when a
/// token ends, how long a member has been silent. It is over by starting anew.
async fn stopped(clock: &Clock) -> Result<(), Failure> {
    let was_set = async {
        let mut ahead = SignedDuration::ZERO;
        loop {
            tokio::time::sleep(CLOCK_CHECK).await;
            if let Some(by) = clock.was_set_by(Timestamp::now(), &mut ahead) {
                return by;
            }
        }
    };
    tokio::select! {
        stopped = crate::signals::stopped() => stopped,
        by = was_set => Err(Failure::other(format!("the clock of this machine was set by {by:#}: start the controller anew"))
            .hint("a Deployment or a service manager does so by itself; check that the time is synchronised")),
    }
}

/// Writes the version of this program on the Lease, for `portolan version`.
async fn announce_version(hub: &Client, namespace: &str, name: &str) {
    let api: Api<Lease> = Api::namespaced(hub.clone(), namespace);
    let annotations = json!({ VERSION_ANNOTATION: env!("CARGO_PKG_VERSION") });
    let patch = Patch::Merge(json!({"metadata": {"annotations": annotations}}));
    let what = format!("write the version on Lease {namespace}/{name}");
    if let Err(error) = call(what, api.patch(name, &PatchParams::default(), &patch)).await
        && !error.is_not_found()
    {
        tracing::warn!(error = %chain(&error), "`portolan version` will not know the version of this controller");
    }
}

/// A name that no other process has.
fn holder() -> Result<String, Failure> {
    let host = std::env::var("HOSTNAME").ok().filter(|name| !name.is_empty());
    let host = host.or_else(|| std::fs::read_to_string("/etc/hostname").ok()).unwrap_or_default();
    let host = if host.trim().is_empty() { "portolan" } else { host.trim() };
    let mut random = [0; 4];
    getrandom::fill(&mut random).map_err(|error| Failure::other(format!("no randomness: {error}")))?;
    Ok(format!("{host}_{:08x}", u32::from_le_bytes(random)))
}

/// Makes the namespace of the lease, unless it is there.
async fn ensure_namespace(hub: &Client, name: &str) -> Result<(), Failure> {
    let failed = |what: &str, error: &kube::Error| {
        Failure::other(format!(
            "cannot {what} namespace {name} of the hub: {}",
            portolan_runtime::chain(error)
        ))
        .hint("name another one by --lease-namespace, or run alone with --leader-elect=false")
    };
    let api: Api<Namespace> = Api::all(hub.clone());
    if api.get_opt(name).await.map_err(|error| failed("read", &error))?.is_some() {
        return Ok(());
    }
    let metadata = ObjectMeta { name: Some(name.to_owned()), ..ObjectMeta::default() };
    let namespace = Namespace { metadata, ..Namespace::default() };
    match api.create(&PostParams::default(), &namespace).await {
        Err(kube::Error::Api(status)) if status.code == 409 => Ok(()),
        Err(error) => Err(failed("create", &error)),
        Ok(_) => Ok(()),
    }
}
