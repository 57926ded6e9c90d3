//! What a member tells of the load of one workload.

use super::hung::Hung;
use super::resource::Use;
use super::{custom, external, pods};
use crate::fleet::Member;
use jiff::Timestamp;
use portolan_api::autoscaling::{Metric, MetricType};
use portolan_core::autoscale::{ClusterSnapshot, MemberClock, Reading};

/// Which pods are read, and which metrics.
pub(super) struct Wanted<'a> {
    pub(super) namespace: &'a str,
    /// What selects the pods.
    pub(super) selector: &'a str,
    pub(super) metrics: &'a [Metric],
}

/// Reads pods and metrics in a member that is to run so many replicas, and whose clock stood so.
///
/// # Errors
/// Its pods cannot be read: then all that is known is old.
pub(super) async fn read(
    member: &Member,
    wanted: &Wanted<'_>,
    replicas: u32,
    hung: &Hung,
    clock: MemberClock,
    now: Timestamp,
) -> Result<ClusterSnapshot, String> {
    let pods = pods::list(&member.client, wanted.namespace, wanted.selector);
    let pods = hung.ask(&member.name, "pods", pods);
    let (pods, readings) = futures::future::join(pods, readings(member, wanted, hung)).await;
    Ok(ClusterSnapshot {
        name: member.name.clone(),
        replicas,
        reachable: true,
        error: None,
        observed_at: Some(now),
        clock: clock.after(&readings, now),
        pods: pods?,
        readings,
    })
}

/// What is read for each metric, in their order. Those of resources are read together.
async fn readings(member: &Member, wanted: &Wanted<'_>, hung: &Hung) -> Vec<Reading> {
    let of_resources =
        |metric: &Metric| matches!(metric.type_, MetricType::Resource | MetricType::ContainerResource);
    let used = if wanted.metrics.iter().any(of_resources) {
        let used = async { Ok(Use::read(&member.client, wanted.namespace, wanted.selector).await) };
        Some(hung.ask(&member.name, "metrics.k8s.io", used).await.unwrap_or_else(Use::unknown))
    } else {
        None
    };
    let each = wanted.metrics.iter().map(async |metric| {
        let about = match metric.type_ {
            MetricType::Resource | MetricType::ContainerResource => "the use of resources",
            MetricType::Pods | MetricType::Object => "custom.metrics.k8s.io",
            MetricType::External => "external.metrics.k8s.io",
        };
        let reading = async { Ok(reading(member, wanted, metric, used.as_ref()).await) };
        hung.ask(&member.name, about, reading).await.unwrap_or_else(Reading::Failed)
    });
    futures::future::join_all(each).await
}

async fn reading(member: &Member, wanted: &Wanted<'_>, metric: &Metric, used: Option<&Use>) -> Reading {
    let (client, namespace) = (&member.client, wanted.namespace);
    if let (Some(resource), Some(used)) = (&metric.resource, used) {
        used.of(None, &resource.name)
    } else if let (Some(resource), Some(used)) = (&metric.container_resource, used) {
        used.of(Some(&resource.container), &resource.name)
    } else if let Some(pods) = &metric.pods {
        custom::of_pods(client, namespace, wanted.selector, &pods.metric).await
    } else if let Some(object) = &metric.object {
        custom::of_object(client, namespace, &object.described_object, &object.metric).await
    } else if let Some(external) = metric.external.as_ref().filter(|external| external.query.is_none()) {
        external::read(client, namespace, &external.metric).await
    } else {
        // A query is asked once for all clusters. The schema lets nothing else come here.
        Reading::Failed("it is not read in clusters".to_owned())
    }
}
