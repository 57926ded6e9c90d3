//! The metrics of an autoscaler, checked.

use crate::capacity::milli;
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use portolan_api::Reason;
use portolan_api::autoscaling::{Metric, MetricTarget, MetricTargetType, MetricType, ResourceMetric};

/// The utilization that is aimed at if no metric is given, in percent.
const DEFAULT_UTILIZATION: i32 = 80;

/// What a metric measures, and what it is to be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Source<'a> {
    pub(super) type_: MetricType,
    /// The name of the resource or the metric.
    pub(super) name: &'a str,
    /// The container, if only that one counts.
    pub(super) container: Option<&'a str>,
    /// The kind of the object that is measured, if there is one.
    pub(super) object: Option<&'a str>,
    pub(super) goal: Goal,
}

/// What a metric is to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Goal {
    /// In percent of the requests.
    Utilization(u64),
    /// On average over all pods, in thousandths.
    Average(u64),
    /// As a value, in thousandths.
    Value(u64),
}

/// The metrics of the spec; CPU if there is none.
#[must_use]
pub fn effective(metrics: &[Metric]) -> Vec<Metric> {
    if !metrics.is_empty() {
        return metrics.to_vec();
    }
    let target = MetricTarget { average_utilization: Some(DEFAULT_UTILIZATION), ..MetricTarget::default() };
    vec![Metric { resource: Some(ResourceMetric { name: "cpu".into(), target }), ..Metric::default() }]
}

/// The reason for not knowing a metric of this type.
pub(super) fn unknown(type_: MetricType) -> Reason {
    match type_ {
        MetricType::Resource => Reason::FailedGetResourceMetric,
        MetricType::ContainerResource => Reason::FailedGetContainerResourceMetric,
        MetricType::Pods => Reason::FailedGetPodsMetric,
        MetricType::Object => Reason::FailedGetObjectMetric,
        MetricType::External => Reason::FailedGetExternalMetric,
    }
}

impl<'a> Source<'a> {
    /// # Errors
    /// A sentence about what is missing. The schema lets no such metric pass.
    pub(super) fn of(metric: &'a Metric) -> Result<Self, String> {
        let type_ = metric.type_;
        let absent = || format!("the metric of type {type_:?} has no field for that type");
        let (name, container, object, target) = match type_ {
            MetricType::Resource => {
                let resource = metric.resource.as_ref().ok_or_else(absent)?;
                (&resource.name, None, None, &resource.target)
            }
            MetricType::ContainerResource => {
                let resource = metric.container_resource.as_ref().ok_or_else(absent)?;
                (&resource.name, Some(resource.container.as_str()), None, &resource.target)
            }
            MetricType::Pods => {
                let pods = metric.pods.as_ref().ok_or_else(absent)?;
                (&pods.metric.name, None, None, &pods.target)
            }
            MetricType::Object => {
                let object = metric.object.as_ref().ok_or_else(absent)?;
                (&object.metric.name, None, Some(object.described_object.kind.as_str()), &object.target)
            }
            MetricType::External => {
                let external = metric.external.as_ref().ok_or_else(absent)?;
                (&external.metric.name, None, None, &external.target)
            }
        };
        Ok(Self { type_, name, container, object, goal: goal(name, target)? })
    }

    /// Whether the first minutes of a pod say nothing about its load: starting takes CPU, but little else.
    pub(super) fn is_cpu(&self) -> bool {
        matches!(self.type_, MetricType::Resource | MetricType::ContainerResource) && self.name == "cpu"
    }

    /// The metric in the words of the HorizontalPodAutoscaler.
    pub(super) fn describe(&self) -> String {
        let name = self.name;
        let percent = match self.goal {
            Goal::Utilization(_) => " utilization (percentage of request)",
            Goal::Average(_) | Goal::Value(_) => "",
        };
        match self.type_ {
            MetricType::Resource => format!("{name} resource{percent}"),
            MetricType::ContainerResource => format!("{name} container resource{percent}"),
            MetricType::Pods => format!("pods metric {name}"),
            MetricType::Object => format!("{} metric {name}", self.object.unwrap_or("object")),
            MetricType::External => format!("external metric {name}"),
        }
    }
}

fn goal(name: &str, target: &MetricTarget) -> Result<Goal, String> {
    let positive =
        |value: Option<i64>| value.and_then(|value| u64::try_from(value).ok()).filter(|value| *value > 0);
    let read = |quantity: Option<&Quantity>| positive(quantity.and_then(|quantity| milli(&quantity.0).ok()));
    let goal = match target.type_ {
        MetricTargetType::Utilization => {
            positive(target.average_utilization.map(i64::from)).map(Goal::Utilization)
        }
        MetricTargetType::AverageValue => read(target.average_value.as_ref()).map(Goal::Average),
        MetricTargetType::Value => read(target.value.as_ref()).map(Goal::Value),
    };
    goal.ok_or_else(|| format!("the target of {name} is not a number greater than 0"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpu_is_the_metric_if_there_is_none() {
        let metrics = effective(&[]);
        let source = Source::of(&metrics[0]).unwrap();
        assert_eq!((source.goal, source.is_cpu()), (Goal::Utilization(80), true));
        assert_eq!(source.describe(), "cpu resource utilization (percentage of request)");
    }

    #[test]
    fn a_metric_that_says_nothing_is_refused() {
        let broken = Metric { type_: MetricType::Pods, ..Metric::default() };
        assert!(Source::of(&broken).unwrap_err().contains("type Pods"));
        let target = MetricTarget {
            type_: MetricTargetType::AverageValue,
            average_value: Some(Quantity("0".into())),
            ..MetricTarget::default()
        };
        let zero =
            Metric { resource: Some(ResourceMetric { name: "cpu".into(), target }), ..Metric::default() };
        assert!(Source::of(&zero).unwrap_err().contains("greater than 0"));
    }
}
