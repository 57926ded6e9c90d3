//! `portolan peer`

use super::cluster_config;
use crate::cli::{PeerArgs, PeerFormat};
use crate::connection::{self, Remote};
use crate::failure::Failure;
use crate::output;
use crate::progress::Progress;
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::Secret;
use kube::{Api, Client};
use portolan_api::ForeignCluster;
use portolan_api::conditions::{self, ConditionType};
use portolan_api::foreigncluster::{PrometheusQuery, StaticLatency};
use portolan_api::words::{is_label, is_name};
use portolan_control::PrometheusService;
use portolan_control::fleet::check_server;
use portolan_control::peering::{
    Address, Joined, NAMESPACE, Names, Peer, PeerError, Sides, TokenFacts, foreign_cluster,
    has_open_namespace, identity, in_hub, in_member, join,
};
use portolan_runtime::call;
use serde_json::Value;
use std::collections::BTreeMap;
use std::time::Duration;
use tokio::time::Instant;

/// A token of the API server lives at least this long.
const SHORTEST_TOKEN: Duration = Duration::from_secs(600);

pub(super) fn run(args: &PeerArgs) -> Result<(), Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(Box::pin(peer(args)))
}

async fn peer(args: &PeerArgs) -> Result<(), Failure> {
    let remote = member(args).await?;
    let mut peer = described(args, remote.as_ref())?;
    if let Some(remote) = &remote {
        check_address(args, &remote.address)?;
    }
    let (hub, _) = connection::answering(&args.cluster).await?;
    let sides = match remote {
        None => Sides { hub: hub.clone(), member: hub, address: Address::default() },
        Some(Remote { context, client, mut address }) => {
            let flags = "--remote-kubeconfig and --remote-context";
            connection::version(&client, &format!("the member (context {context})"), flags).await?;
            if let Some(server) = &args.remote_server {
                address.server.clone_from(server);
                address.given = true;
            }
            Sides { hub, member: client, address }
        }
    };
    let sides = take_over(sides, &mut peer, args.remote_server.is_none(), args.insecure).await?;
    warn_of_unknown(&sides, &peer).await;
    refuse_invited(&sides, &peer.name).await?;
    if args.dry_run {
        return dry_run(args, &sides, &peer).await;
    }
    let progress = Progress::start();
    let joined = join(&sides, &peer, Timestamp::now(), &|step| progress.step(step)).await.map_err(told)?;
    warn_without_report(&joined, &peer.name);
    if let Some(kubeconfig) = &joined.kubeconfig {
        let server = &kubeconfig["clusters"][0]["cluster"]["server"];
        if *server == sides.address.server.as_str() && !sides.address.given {
            try_credential(kubeconfig, &peer.name).await?;
        } else {
            // The hub may reach the member by an address that we do not reach: the controller tries it.
            anstream::eprintln!("the hub reaches {} by {server}; --remote-server changes that", peer.name);
        }
    }
    let cluster = wait(args, &sides.hub, &joined.cluster, &progress).await?;
    let until = match joined.expires {
        Some(expires) => format!("; its token is valid until {expires}"),
        None => String::new(),
    };
    if args.timeout.0.is_zero() {
        progress.done(&format!("{} is declared; nobody waited until it is Ready{until}", peer.name))
    } else {
        progress.done(&format!("{} is a member{until}", peer.name))
    }
    if args.bidirectional {
        Box::pin(peer_back(args, &sides, &peer, &progress)).await?;
    }
    if peer.namespaces.is_empty() && !peer.everywhere {
        hint_namespaces(args, &sides, &peer).await;
    }
    output::objects(args.output, &[serde_json::to_value(&cluster).map_err(Failure::other)?])
}

/// Takes over what the installation in a new member says: how it is reached, if no flag says so, and its labels, as far as
/// no flags do.
async fn take_over(
    mut sides: Sides,
    peer: &mut Peer,
    server: bool,
    insecure: bool,
) -> Result<Sides, Failure> {
    let told = cluster_config::read(&sides.member).await?;
    if let Some(server) = told.server.filter(|_| server && !peer.local) {
        check_server(&server, insecure).map_err(|problem| {
            let message =
                format!("the value cluster.apiServerURL of the installation in {}: {problem}", peer.name);
            Failure::input(message).hint("--remote-server gives another URL of the member")
        })?;
        sides.address.server = server;
        sides.address.given = true;
    }
    let clusters: Api<ForeignCluster> = Api::all(sides.hub.clone());
    // The labels of one that exists are its user's.
    if matches!(clusters.get_opt(&peer.name).await, Ok(Some(_))) {
        return Ok(sides);
    }
    for (key, value) in told.labels {
        peer.labels.entry(key).or_insert(value);
    }
    Ok(sides)
}

/// Refuses a member that has peered by an invitation: an account of the hub would take the place of its certificate, and the
/// rights of the tenant and of the hub would exclude each other.
async fn refuse_invited(sides: &Sides, name: &str) -> Result<(), Failure> {
    let clusters: Api<ForeignCluster> = Api::all(sides.hub.clone());
    let found = call(format!("read ForeignCluster {name}"), clusters.get_opt(name)).await;
    match found.map_err(|error| Failure::call(&error))? {
        Some(found) if found.spec.outgoing.is_some() => Err(Failure::input(format!(
            "{name} has peered by an invitation: this cluster is its tenant, with the rights that it gave"
        ))
        .hint(format!("`portolan unpeer {name}` ends that; peer it with --remote-context then"))),
        _ => Ok(()),
    }
}

/// Makes the hub a member of the other cluster's fleet, on the same terms.
async fn peer_back(args: &PeerArgs, sides: &Sides, peer: &Peer, progress: &Progress) -> Result<(), Failure> {
    let own = connection::own_address(&args.cluster)?;
    check_server(&own.address.server, args.insecure)
        .map_err(|problem| Failure::input(format!("--bidirectional: the context of the hub: {problem}")))?;
    let name = args.cluster_name.clone().or(cluster_config::read(&sides.hub).await?.name);
    let mut back = Peer {
        name: name.unwrap_or_else(|| cluster_config::as_name(&own.context)),
        namespaces: peer.namespaces.clone(),
        everywhere: peer.everywhere,
        token_lifetime: peer.token_lifetime,
        pod_security: peer.pod_security.clone(),
        ..Peer::default()
    };
    if !is_name(&back.name) {
        return Err(Failure::input(format!(
            "--cluster-name: {:?} cannot be a name in Kubernetes",
            back.name
        )));
    }
    let sides = Sides { hub: sides.member.clone(), member: sides.hub.clone(), address: own.address };
    let sides = take_over(sides, &mut back, true, args.insecure).await?;
    refuse_invited(&sides, &back.name).await?;
    let joined = join(&sides, &back, Timestamp::now(), &|step| progress.step(step)).await.map_err(told)?;
    warn_without_report(&joined, &back.name);
    wait(args, &sides.hub, &joined.cluster, progress).await?;
    progress.done(&format!("{} is a member of {}'s fleet", back.name, peer.name));
    Ok(())
}

/// Says which latencies are to clusters that are no members, or not yet. Who may not look is not told.
async fn warn_of_unknown(sides: &Sides, peer: &Peer) {
    let clusters: Api<ForeignCluster> = Api::all(sides.hub.clone());
    for latency in &peer.latencies {
        if matches!(clusters.get_opt(&latency.to).await, Ok(None)) {
            anstream::eprintln!(
                "\u{1b}[1mwarning\u{1b}[0m: --latency {0}: there is no member {0} yet; the latency counts once there is",
                latency.to
            );
        }
    }
}

/// Says that a member was made without the right of the hub to its report.
fn warn_without_report(joined: &Joined, name: &str) {
    if !joined.can_report {
        anstream::eprintln!(
            "\u{1b}[1mwarning\u{1b}[0m: you may not give rights on clusterreports.portolan.dev away in {name}: it is a member, and \
             cannot tell the hub how far it is from other members"
        );
    }
}

/// Says how to open a namespace, if none is open to the hub. Who may not look is not told.
async fn hint_namespaces(args: &PeerArgs, sides: &Sides, peer: &Peer) {
    let Ok(hub) = identity(&sides.hub, "the hub").await else { return };
    if !matches!(has_open_namespace(&sides.member, &hub, peer.local).await, Ok(false)) {
        return;
    }
    let flag = |name: &str, value: Option<&String>| match value {
        Some(value) => format!(" --{name} {value}"),
        None => String::new(),
    };
    let hub = flag("context", args.cluster.context.as_ref());
    let (member, name) = match &args.remote.remote_context {
        Some(context) => (format!(" --remote-context {context}"), args.name.as_ref()),
        None => (" --local".to_owned(), args.name.as_ref()),
    };
    anstream::eprintln!(
        "\u{1b}[1mhint\u{1b}[0m: nothing can be placed in {} yet, since no namespace is open to the hub: `portolan \
         peer{hub}{member}{} --namespace NAME` opens one",
        peer.name,
        flag("name", name)
    );
}

/// The context of the member; none if the hub itself is to be one.
async fn member(args: &PeerArgs) -> Result<Option<Remote>, Failure> {
    if args.local {
        return Ok(None);
    }
    let file = args.remote.remote_kubeconfig.as_deref().or(args.cluster.kubeconfig.as_deref());
    let Some(context) = &args.remote.remote_context else {
        return Err(Failure::input("which cluster is to be a member is not said").hint(
            "give --remote-context NAME, the line of `portolan invite`, or --local for the hub itself",
        ));
    };
    connection::remote(file, context).await.map(Some)
}

/// What the flags say about the member.
pub(super) fn described(args: &PeerArgs, remote: Option<&Remote>) -> Result<Peer, Failure> {
    let name = match (&args.name, remote) {
        (Some(name), _) => name.clone(),
        (None, Some(remote)) => remote.context.clone(),
        (None, None) => "local".to_owned(),
    };
    check_namespaces(args)?;
    for (flag, name) in
        std::iter::once(("--name", &name)).chain(args.namespaces.iter().map(|name| ("--namespace", name)))
    {
        if !is_name(name) {
            return Err(Failure::input(format!("{flag}: {name:?} cannot be a name in Kubernetes"))
                .hint("give one of at most 63 lower-case letters, digits and dashes"));
        }
    }
    let pair = |flag: &str, text: &str| -> Result<(String, String), Failure> {
        let found = text.split_once('=').filter(|(key, _)| !key.is_empty());
        let (key, value) =
            found.ok_or_else(|| Failure::input(format!("{flag}: {text:?} is not of the form KEY=VALUE")))?;
        Ok((key.to_owned(), value.to_owned()))
    };
    let mut labels =
        args.labels.iter().map(|text| pair("--label", text)).collect::<Result<BTreeMap<_, _>, _>>()?;
    if let Some(region) = &args.region {
        labels.insert("topology.kubernetes.io/region".to_owned(), region.clone());
    }
    for (key, value) in &labels {
        check_label(key, value)?;
    }
    let latency = |text: &String| {
        let (to, rtt) = pair("--latency", text)?;
        let rtt = rtt.parse().map_err(|error| Failure::input(format!("--latency {to}: {error}")))?;
        if !is_name(&to) || to == name {
            return Err(Failure::input(format!("--latency: {to:?} cannot be the name of another member")));
        }
        Ok(StaticLatency { to, rtt })
    };
    if args.token_lifetime.0 < SHORTEST_TOKEN {
        return Err(Failure::input("--token-lifetime: API servers make tokens of at least 10 minutes"));
    }
    Ok(Peer {
        local: args.local,
        labels,
        cloud: args.cloud,
        latencies: args.latencies.iter().map(latency).collect::<Result<_, Failure>>()?,
        namespaces: args.namespaces.clone(),
        everywhere: args.all_labelled_namespaces,
        prometheus: prometheus(args)?,
        token_lifetime: i64::try_from(args.token_lifetime.0.as_secs()).unwrap_or(i64::MAX),
        pod_security: Some(args.pod_security.clone()),
        name,
    })
}

/// Whether the token is private on its way to the member.
fn check_address(args: &PeerArgs, address: &Address) -> Result<(), Failure> {
    let (flag, server) = match &args.remote_server {
        Some(server) => ("--remote-server", server),
        None => ("the context of the member", &address.server),
    };
    check_server(server, args.insecure).map_err(|problem| {
        let failure = Failure::input(format!("{flag}: {problem}"));
        match check_server(server, true) {
            Ok(()) => failure.hint("--insecure allows it, where nobody else is on the way"),
            Err(_) => failure.hint("give a URL such as https://10.0.0.5:6443"),
        }
    })?;
    if address.insecure && !args.insecure {
        return Err(Failure::input(
            "the context of the member does not check the certificate of its API server",
        )
        .hint("give the context its certificate-authority; --insecure allows it as it is"));
    }
    Ok(())
}

/// Namespaces of the system hold the credentials of the cluster itself.
fn check_namespaces(args: &PeerArgs) -> Result<(), Failure> {
    let is_system = |name: &&String| name.starts_with("kube-") || name.as_str() == "portolan";
    match args.namespaces.iter().find(is_system) {
        Some(name) if !args.allow_system_namespaces => Err(Failure::input(format!(
            "--namespace {name}: the hub could read every Secret of the system there"
        ))
        .hint("--allow-system-namespaces opens it nevertheless")),
        _ => Ok(()),
    }
}

/// Whether Kubernetes takes a label.
fn check_label(key: &str, value: &str) -> Result<(), Failure> {
    if is_label(key, value) {
        return Ok(());
    }
    let flag = if key == "topology.kubernetes.io/region" { "--region" } else { "--label" };
    Err(Failure::input(format!("{flag}: {key}={value} cannot be a label in Kubernetes")).hint(
        "give letters, digits, dashes, dots and underscores, at most 63, with a letter or digit at both ends",
    ))
}

/// The Prometheus that is asked for traffic, if one is named.
fn prometheus(args: &PeerArgs) -> Result<Option<PrometheusQuery>, Failure> {
    let (Some(text), Some(query)) = (&args.traffic_from_prometheus, &args.traffic_query) else {
        return Ok(None);
    };
    let service: PrometheusService =
        text.parse().map_err(|error| Failure::input(format!("--traffic-from-prometheus: {error}")))?;
    Ok(Some(service.with(query)))
}

/// Prints what would be made, member first.
async fn dry_run(args: &PeerArgs, sides: &Sides, peer: &Peer) -> Result<(), Failure> {
    let hub = identity(&sides.hub, "the hub").await.map_err(told)?;
    let member = identity(&sides.member, "the member").await.map_err(told)?;
    if !peer.local && hub == member {
        return Err(told(PeerError::SameCluster { id: hub }));
    }
    let mut objects = Vec::new();
    if !peer.local {
        let names = Names::of(&hub);
        objects.extend(in_member(&names, peer));
        let kubeconfig = sides.address.kubeconfig(&peer.name, "made by the member").to_string();
        let (now, lifetime) = (Timestamp::now(), peer.token_lifetime);
        let after = |seconds: i64| now.saturating_add(SignedDuration::from_secs(seconds)).unwrap_or(now);
        let (expires, renew) = (after(lifetime), after(lifetime / 2));
        let namespace = NAMESPACE.to_owned();
        let facts = TokenFacts { account: names.account, namespace, expires, renew, lifetime };
        objects.extend(in_hub(&peer.name, &kubeconfig, &facts, &sides.address));
    }
    objects.push(foreign_cluster(peer, &member));
    output::objects(Some(args.output.unwrap_or(PeerFormat::Yaml)), &objects)
}

/// Tries the credential from here, so that one that does not work is told now and not by a controller later.
async fn try_credential(kubeconfig: &Value, name: &str) -> Result<(), Failure> {
    let parsed = serde_json::from_value(kubeconfig.clone()).map_err(Failure::other)?;
    let config = kube::Config::from_custom_kubeconfig(parsed, &Default::default()).await;
    let config =
        config.map_err(|error| Failure::other(format!("the new kubeconfig is not usable: {error}")))?;
    let client = connection::client_of(config)?;
    let answer = portolan_runtime::call("use the new credential", client.apiserver_version()).await;
    answer.map(|_| ()).map_err(|error| {
        Failure::other(format!("{name} refuses the credential it made: {}", portolan_runtime::chain(&error)))
    })
}

/// Waits until the controller says that the member is Ready.
pub(super) async fn wait(
    args: &PeerArgs,
    hub: &Client,
    declared: &ForeignCluster,
    progress: &Progress,
) -> Result<ForeignCluster, Failure> {
    let name = declared.metadata.name.clone().unwrap_or_default();
    let api: Api<ForeignCluster> = Api::all(hub.clone());
    let deadline = Instant::now() + args.timeout.0;
    let mut cluster = declared.clone();
    let mut credential = credential_version(hub, &cluster).await?;
    loop {
        let status = cluster.status.clone().unwrap_or_default();
        let ready = conditions::find(&status.conditions, ConditionType::Ready);
        let current = ready.filter(|ready| ready.observed_generation == cluster.metadata.generation);
        // That it was Ready with the credential of before says nothing about this one.
        let current = current.filter(|ready| {
            ready.status != "True"
                || !cluster.spec.is_member()
                || status.credentials_resource_version == credential
        });
        if args.timeout.0.is_zero() || current.is_some_and(|ready| ready.status == "True") {
            return Ok(cluster);
        }
        let waiting = match current {
            Some(ready) => format!("waiting until it is Ready: {}", ready.message),
            None => "waiting for the controller to see it".to_owned(),
        };
        progress.step(&waiting);
        if Instant::now() >= deadline {
            return Err(match current {
                Some(ready) => {
                    Failure::other(format!("{name} is not Ready after {}: {}", args.timeout, ready.message))
                }
                None => Failure::other(format!("no controller has looked at {name} within {}", args.timeout))
                    .hint("everything is made; start `portolan controller` for the hub, and it goes on")
                    .hint("give --timeout 0s to not wait"),
            });
        }
        tokio::time::sleep(Duration::from_millis(200)).await;
        cluster = portolan_runtime::call(format!("read ForeignCluster {name}"), api.get(&name))
            .await
            .map_err(|error| Failure::other(portolan_runtime::chain(&error)))?;
        credential = credential_version(hub, &cluster).await?;
    }
}

/// The version of the Secret that the ForeignCluster names, if it names one.
async fn credential_version(hub: &Client, cluster: &ForeignCluster) -> Result<Option<String>, Failure> {
    let Some(credentials) = &cluster.spec.credentials else {
        return Ok(cluster.status.as_ref().and_then(|status| status.credentials_resource_version.clone()));
    };
    let secret = &credentials.secret_ref;
    let api: Api<Secret> = Api::namespaced(hub.clone(), &secret.namespace);
    let what = format!("read Secret {}/{}", secret.namespace, secret.name);
    let found = portolan_runtime::call(what, api.get_metadata(&secret.name)).await;
    Ok(found.map_err(|error| Failure::other(portolan_runtime::chain(&error)))?.metadata.resource_version)
}

/// A failure of peering as a user meets it.
pub(super) fn told(error: PeerError) -> Failure {
    let failure = Failure::other(portolan_runtime::chain(&error));
    match error {
        PeerError::SameCluster { .. } => {
            failure.hint("give --local to make the hub a member of its own fleet")
        }
        PeerError::NameTaken { .. } => {
            failure.hint("give another --name, or `portolan unpeer` the other cluster first")
        }
        PeerError::MemberAlready { name } => {
            failure.hint(format!("give --name {name} to set its peering right"))
        }
        PeerError::Leaving { name } => failure
            .hint(format!("wait until `portolan get clusters` lists {name} no more, and peer it again"))
            .hint(format!("`portolan unpeer {name} --drain` moves the workloads that it waits for"))
            .hint(format!("`portolan unpeer {name} --force` does not wait, and leaves them running there")),
        PeerError::Skew { upgrade, .. } => failure
            .hint(format!("{upgrade} upgrades what is older"))
            .hint("or use the version of this program that is installed there"),
        PeerError::MissingRights { .. } => {
            failure.hint("ask an administrator of that cluster, or use a context of theirs")
        }
        _ => failure,
    }
}
