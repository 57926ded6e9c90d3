//! The rules of a scenario that its types do not hold.

use super::error::Broken;
use super::tasks::{Distribution, Drawn, Task};
use super::traffic::{Load, Point};
use super::{Cloud, Event, Scenario, Step, nodes};
use portolan_api::duration::Duration;
use std::collections::BTreeSet;

type Checked = Result<(), Broken>;

/// More samples than this help nobody.
const MOST_SAMPLES: u128 = 200_000;

/// Checks all rules, and names the first that is broken.
pub(super) fn check(scenario: &Scenario) -> Checked {
    name("name", &scenario.name)?;
    name("namespace", &scenario.namespace)?;
    times(scenario)?;
    clusters(scenario)?;
    latencies(scenario)?;
    clouds(scenario)?;
    for (index, step) in scenario.objects.iter().enumerate() {
        object(scenario, &format!("objects[{index}]"), step)?;
    }
    tasks(scenario)?;
    traffic(scenario)?;
    faults(scenario)?;
    scenario.variants.keys().try_for_each(|key| name(&format!("variants.{key}"), key))
}

/// Checks the tasks of a trace.
pub(super) fn trace(scenario: &Scenario, tasks: &[Task]) -> Checked {
    for task in tasks {
        let at = task.at.as_secs();
        member(scenario, &format!("the task of second {at}, location"), &task.location)?;
    }
    Ok(())
}

fn name(field: &str, name: &str) -> Checked {
    let letter = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    let valid = (1..=63).contains(&name.len()) && name.bytes().all(letter);
    if !valid || name.starts_with('-') || name.ends_with('-') {
        return Err(Broken::new(field, format!("{name:?} is not a DNS label"))
            .hint("write at most 63 lower-case letters, digits and dashes, such as cluster1"));
    }
    Ok(())
}

fn times(scenario: &Scenario) -> Checked {
    let (duration, every) = (scenario.duration.0, scenario.sample_every.0);
    if duration.is_zero() {
        return Err(Broken::new("duration", "it is 0, and nothing could happen").hint("write it as 90m"));
    }
    if every.is_zero() || duration.as_nanos() / every.as_nanos() > MOST_SAMPLES {
        return Err(Broken::new(
            "sampleEvery",
            format!(
                "{} in {} are more than {MOST_SAMPLES} samples",
                scenario.sample_every, scenario.duration
            ),
        )
        .hint("write it as 15s"));
    }
    Ok(())
}

fn clusters(scenario: &Scenario) -> Checked {
    if scenario.clusters.is_empty() {
        return Err(Broken::new("clusters", "there are none").hint("a simulation needs at least one member"));
    }
    let mut seen = BTreeSet::new();
    for (index, cluster) in scenario.clusters.iter().enumerate() {
        let field = format!("clusters[{index}]");
        name(&format!("{field}.name"), &cluster.name)?;
        if cluster.name == "hub" || !seen.insert(&cluster.name) {
            return Err(Broken::new(
                format!("{field}.name"),
                format!("{} is another cluster already", cluster.name),
            ));
        }
        nodes::check(&field, cluster.nodes.as_ref(), &cluster.node_list)?;
        for (index, namespace) in cluster.namespaces.iter().flatten().enumerate() {
            name(&format!("{field}.namespaces[{index}]"), namespace)?;
        }
        for given in ["type", "clusterIdentity", "credentials", "latencies"] {
            if cluster.spec.contains_key(given) {
                return Err(Broken::new(
                    format!("{field}.spec.{given}"),
                    "it follows from the scenario itself",
                )
                .hint("leave it out; round-trip times are in latencies"));
            }
        }
    }
    Ok(())
}

fn latencies(scenario: &Scenario) -> Checked {
    let members = scenario.clusters.iter().map(|each| scenario.site_of(&each.name));
    let cloud = scenario.all_clouds().map(|cloud| scenario.site_of(&cloud.name));
    let known: BTreeSet<&str> = members.chain(cloud).chain(scenario.hub.site.as_deref()).collect();
    for (index, latency) in scenario.latencies.iter().enumerate() {
        let field = format!("latencies[{index}].between");
        let (from, to) = &latency.between;
        for site in [from, to] {
            if !known.contains(site.as_str()) {
                let sites: Vec<&str> = known.iter().copied().collect();
                return Err(Broken::new(field, format!("no cluster is at {site:?}"))
                    .hint(format!("the sites are: {}", sites.join(", "))));
            }
        }
        if from == to {
            return Err(Broken::new(field, format!("{from} is named twice")));
        }
        let earlier = scenario.latencies.iter().take(index);
        let same = |other: &super::Latency| {
            other.between == (from.clone(), to.clone()) || other.between == (to.clone(), from.clone())
        };
        if earlier.into_iter().any(same) {
            return Err(Broken::new(field, format!("the way between {from} and {to} is given twice"))
                .hint("a round-trip time counts in both directions"));
        }
    }
    Ok(())
}

fn clouds(scenario: &Scenario) -> Checked {
    let others = scenario.clouds.iter().enumerate();
    let others = others.map(|(index, cloud)| (format!("clouds[{index}]"), cloud));
    let first = scenario.cloud.iter().map(|cloud| ("cloud".to_owned(), cloud));
    let mut seen = BTreeSet::new();
    for (field, each) in first.chain(others) {
        cloud(scenario, &field, each)?;
        if !seen.insert(&each.name) {
            return Err(Broken::new(
                format!("{field}.name"),
                format!("{} is another cloud already", each.name),
            )
            .hint("each cloud needs a name of its own"));
        }
    }
    Ok(())
}

fn cloud(scenario: &Scenario, at: &str, cloud: &Cloud) -> Checked {
    name(&format!("{at}.name"), &cloud.name)?;
    if cloud.name == "hub" || scenario.clusters.iter().any(|each| each.name == cloud.name) {
        return Err(Broken::new(format!("{at}.name"), format!("{} is another cluster already", cloud.name)));
    }
    if cloud.machine_types.is_empty() {
        return Err(
            Broken::new(format!("{at}.machineTypes"), "there are none").hint("nodes are made of them")
        );
    }
    let boots = cloud
        .machine_types
        .iter()
        .enumerate()
        .map(|(index, each)| (format!("{at}.machineTypes[{index}].boot"), &each.boot));
    let own = [
        (format!("{at}.infrastructure"), &cloud.infrastructure),
        (format!("{at}.controlPlane.boot"), &cloud.control_plane.boot),
    ];
    for (field, boot) in boots.chain(own) {
        if boot.least > boot.most {
            return Err(Broken::new(
                field,
                format!("least is {}, which is more than most, {}", boot.least, boot.most),
            ));
        }
    }
    for field in ["cloudClusterName", "machineTypes", "clusterClass", "clusterTemplate"] {
        if cloud.provisioner.contains_key(field) {
            return Err(Broken::new(format!("{at}.provisioner.{field}"), "it follows from the cloud itself")
                .hint("leave it out, and set name and machineTypes of the cloud"));
        }
    }
    Ok(())
}

fn object(scenario: &Scenario, field: &str, step: &Step) -> Checked {
    during(scenario, &format!("{field}.at"), step.at)?;
    step.to.iter().try_for_each(|cluster| member(scenario, &format!("{field}.to"), cluster))?;
    let manifest = match (&step.manifest, &step.delete) {
        (Some(manifest), None) => manifest,
        (None, Some(_)) => return Ok(()),
        (Some(_), Some(_)) | (None, None) => {
            return Err(Broken::new(field, "it must have either manifest or delete"));
        }
    };
    for part in ["/apiVersion", "/kind", "/metadata/name"] {
        if !manifest.pointer(part).is_some_and(serde_json::Value::is_string) {
            let path = part.replace('/', ".");
            return Err(Broken::new(format!("{field}.manifest{path}"), "it is missing or not a text"));
        }
    }
    if step.placed.is_empty() {
        return Ok(());
    }
    let field = format!("{field}.placed");
    if manifest["kind"] != "MultiClusterDeployment" || !step.to.is_empty() {
        return Err(Broken::new(field, "only a MultiClusterDeployment of the hub is placed"));
    }
    if !step.at.0.is_zero() {
        return Err(Broken::new(field, format!("the object comes at {}, after the beginning", step.at))
            .hint("leave placed out, and the controllers place it"));
    }
    step.placed.keys().try_for_each(|cluster| member(scenario, &field, cluster))
}

fn tasks(scenario: &Scenario) -> Checked {
    let Some(tasks) = &scenario.tasks else { return Ok(()) };
    let generator = match (&tasks.generator, &tasks.trace) {
        (Some(generator), None) => generator,
        (None, Some(_)) => return Ok(()),
        (Some(_), Some(_)) | (None, None) => {
            return Err(Broken::new("tasks", "it must have either generator or trace"));
        }
    };
    during(scenario, "tasks.generator.during", generator.during)?;
    for (index, location) in generator.locations.iter().enumerate() {
        member(scenario, &format!("tasks.generator.locations[{index}].cluster"), &location.cluster)?;
    }
    let count: u64 = generator.locations.iter().map(|location| u64::from(location.tasks)).sum();
    if !(1..=100_000).contains(&count) {
        return Err(Broken::new("tasks.generator.locations", format!("they have {count} tasks together"))
            .hint("a simulation has 1 to 100000 tasks"));
    }
    distribution("tasks.generator.duration", &generator.duration)?;
    distribution("tasks.generator.cpu", &generator.cpu)?;
    distribution("tasks.generator.memory", &generator.memory)
}

fn distribution<T: Drawn>(field: &str, distribution: &Distribution<T>) -> Checked {
    let Distribution::Quantiles(points) = distribution else { return Ok(()) };
    let field = format!("{field}.quantiles");
    let ends = (points.first().map(|point| point.percent), points.last().map(|point| point.percent));
    if ends != (Some(0.0), Some(100.0)) {
        return Err(Broken::new(field, "the first percent must be 0 and the last one 100"));
    }
    for (index, (low, high)) in points.iter().zip(points.iter().skip(1)).enumerate() {
        let field = format!("{field}[{}]", index + 1);
        if low.percent >= high.percent {
            return Err(Broken::new(
                field,
                format!("percent {} does not come after {}", high.percent, low.percent),
            ));
        }
        if low.value.number() > high.value.number() {
            return Err(Broken::new(field, "its value is less than the one before"));
        }
    }
    Ok(())
}

fn traffic(scenario: &Scenario) -> Checked {
    let mut seen = BTreeSet::new();
    for (index, traffic) in scenario.traffic.iter().enumerate() {
        let field = format!("traffic[{index}]");
        name(&format!("{field}.name"), &traffic.name)?;
        if !seen.insert(&traffic.name) {
            return Err(Broken::new(
                format!("{field}.name"),
                format!("{} is another source already", traffic.name),
            ));
        }
        member(scenario, &format!("{field}.from"), &traffic.from)?;
        if traffic.every.0 < std::time::Duration::from_secs(1) {
            return Err(Broken::new(format!("{field}.every"), format!("{} is less than 1s", traffic.every)));
        }
        match &traffic.load {
            Load::Steps(points) => load(&format!("{field}.load.steps"), points)?,
            Load::Line(points) => load(&format!("{field}.load.line"), points)?,
            Load::Wave(wave) => {
                let field = format!("{field}.load.wave");
                let times = [wave.rise_from, wave.rise_to, wave.fall_from, wave.fall_to];
                if times.windows(2).any(|pair| pair[0] > pair[1]) {
                    return Err(Broken::new(
                        field,
                        "riseFrom, riseTo, fallFrom and fallTo must follow each other",
                    ));
                }
                if wave.low < 0.0 || wave.high < 0.0 || !(0.0..=100.0).contains(&wave.noise_percent) {
                    return Err(Broken::new(
                        field,
                        "low and high must not be negative, and noisePercent is 0 to 100",
                    ));
                }
            }
        }
    }
    Ok(())
}

fn load(field: &str, points: &[Point]) -> Checked {
    if points.is_empty() {
        return Err(Broken::new(field, "it has no points"));
    }
    for (index, point) in points.iter().enumerate() {
        if point.requests_per_second < 0.0 {
            return Err(Broken::new(
                format!("{field}[{index}].requestsPerSecond"),
                format!("{} is less than 0", point.requests_per_second),
            ));
        }
    }
    match points.windows(2).position(|pair| pair[0].at >= pair[1].at) {
        Some(index) => {
            Err(Broken::new(format!("{field}[{}].at", index + 1), "it does not come after the point before"))
        }
        None => Ok(()),
    }
}

fn faults(scenario: &Scenario) -> Checked {
    for (index, fault) in scenario.faults.iter().enumerate() {
        let field = format!("faults[{index}]");
        during(scenario, &format!("{field}.at"), fault.at)?;
        match &fault.event {
            Event::CutOff { cluster }
            | Event::Heal { cluster }
            | Event::LoseCluster { cluster }
            | Event::RestoreCluster { cluster } => {
                member(scenario, &format!("{field}.event.cluster"), cluster)?
            }
            Event::LoseNode { cluster, node } | Event::RestoreNode { cluster, node } => {
                member(scenario, &format!("{field}.event.cluster"), cluster)?;
                let count = scenario.nodes_of(cluster).len();
                if scenario.node_name(cluster, node).is_none() {
                    return Err(Broken::new(
                        format!("{field}.event.node"),
                        format!("{cluster} has {count} nodes, and this is {node}"),
                    )
                    .hint("the first node has number 1; names are those of nodeList"));
                }
            }
            Event::RefuseClusters(refusal) => {
                named_clouds(scenario, &field, refusal.cloud.as_deref())?;
            }
            Event::CloudRecovers => _ = named_clouds(scenario, &field, None)?,
            Event::RefuseMachines { cloud, machine_type, .. } => {
                let clouds = named_clouds(scenario, &field, cloud.as_deref())?;
                let mut types = clouds.iter().flat_map(|cloud| &cloud.machine_types);
                if !types.any(|each| each.name == *machine_type) {
                    return Err(Broken::new(
                        format!("{field}.event.machineType"),
                        format!("the cloud has no machine type {machine_type}"),
                    ));
                }
            }
        }
    }
    Ok(())
}

/// The cloud of this name, or all of them; there is at least one.
fn named_clouds<'a>(
    scenario: &'a Scenario,
    field: &str,
    name: Option<&str>,
) -> Result<Vec<&'a Cloud>, Broken> {
    let all: Vec<&Cloud> = scenario.all_clouds().collect();
    if all.is_empty() {
        return Err(Broken::new(format!("{field}.event"), "the scenario has no cloud"));
    }
    let named: Vec<&Cloud> =
        all.iter().copied().filter(|cloud| name.is_none_or(|name| cloud.name == name)).collect();
    if named.is_empty() {
        let names: Vec<&str> = all.iter().map(|cloud| cloud.name.as_str()).collect();
        let problem = format!("there is no cloud {:?}", name.unwrap_or_default());
        return Err(Broken::new(format!("{field}.event.cloud"), problem)
            .hint(format!("the clouds are: {}", names.join(", "))));
    }
    Ok(named)
}

fn member(scenario: &Scenario, field: &str, cluster: &str) -> Checked {
    if scenario.clusters.iter().any(|each| each.name == cluster) {
        return Ok(());
    }
    let known: Vec<&str> = scenario.clusters.iter().map(|each| each.name.as_str()).collect();
    Err(Broken::new(field, format!("there is no cluster {cluster:?}"))
        .hint(format!("the clusters are: {}", known.join(", "))))
}

fn during(scenario: &Scenario, field: &str, at: Duration) -> Checked {
    if at > scenario.duration {
        return Err(Broken::new(field, format!("{at} is after the end, {}", scenario.duration)));
    }
    Ok(())
}
