//! Metrics and behavior of the autoscaler, in the shape of autoscaling/v2.

use k8s_openapi::apimachinery::pkg::{
    api::resource::Quantity,
    apis::meta::v1::{LabelSelector, Time},
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::{
    quantity::quantity_schema,
    schema::{Rule, rule, rules},
    selector::label_selector_schema,
};

/// One metric that replicas are computed from.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = rules(&[METRIC_RULES])))]
pub struct Metric {
    /// Which of the other fields is given.
    #[serde(rename = "type")]
    pub type_: MetricType,
    /// The use of a resource by the pods, compared with their requests or with a value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resource: Option<ResourceMetric>,
    /// The use of a resource by one container of each pod.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub container_resource: Option<ContainerResourceMetric>,
    /// A custom metric of the pods, averaged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pods: Option<PodsMetric>,
    /// A metric of another object in the same namespace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub object: Option<ObjectMetric>,
    /// A metric from outside the clusters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub external: Option<ExternalMetric>,
}

const METRIC_RULES: &[Rule] = &[
    rule(
        "(self.type == 'Resource') == has(self.resource)",
        "resource goes with, and only with, type Resource",
    ),
    rule(
        "(self.type == 'ContainerResource') == has(self.containerResource)",
        "containerResource goes with, and only with, type ContainerResource",
    ),
    rule("(self.type == 'Pods') == has(self.pods)", "pods goes with, and only with, type Pods"),
    rule("(self.type == 'Object') == has(self.object)", "object goes with, and only with, type Object"),
    rule(
        "(self.type == 'External') == has(self.external)",
        "external goes with, and only with, type External",
    ),
    rule(
        "!has(self.resource) || self.resource.target.type != 'Value'",
        "a Resource metric needs a target of type Utilization or AverageValue",
    ),
    rule(
        "!has(self.containerResource) || self.containerResource.target.type != 'Value'",
        "a ContainerResource metric needs a target of type Utilization or AverageValue",
    ),
    rule(
        "!has(self.pods) || self.pods.target.type == 'AverageValue'",
        "a Pods metric needs a target of type AverageValue",
    ),
    rule(
        "(!has(self.object) || self.object.target.type != 'Utilization') \
         && (!has(self.external) || self.external.target.type != 'Utilization')",
        "an Object or External metric needs a target of type Value or AverageValue",
    ),
];

/// Where a metric comes from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum MetricType {
    /// The CPU or memory of whole pods.
    #[default]
    Resource,
    /// The CPU or memory of one container of each pod.
    ContainerResource,
    /// A custom metric of the pods.
    Pods,
    /// A metric of another object.
    Object,
    /// A metric from outside the clusters.
    External,
}

/// The use of a resource by the pods.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ResourceMetric {
    /// The name of the resource, such as cpu or memory.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
    /// The value that is aimed at.
    pub target: MetricTarget,
}

/// The use of a resource by one container of each pod.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ContainerResourceMetric {
    /// The name of the resource, such as cpu or memory.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
    /// The name of the container.
    #[schemars(length(min = 1, max = 63))]
    pub container: String,
    /// The value that is aimed at.
    pub target: MetricTarget,
}

/// A custom metric of the pods.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PodsMetric {
    /// Which metric.
    pub metric: MetricIdentifier,
    /// The value that is aimed at.
    pub target: MetricTarget,
}

/// A metric of another object.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ObjectMetric {
    /// The object.
    pub described_object: DescribedObject,
    /// Which metric.
    pub metric: MetricIdentifier,
    /// The value that is aimed at.
    pub target: MetricTarget,
}

/// A metric from outside the clusters.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = rules(&[EXTERNAL_RULES])))]
pub struct ExternalMetric {
    /// Which metric. With a query, its name is only shown.
    pub metric: MetricIdentifier,
    /// A query to the Prometheus of the hub, whose result is one value for all clusters together. If it is not given,
    /// each member is asked for the metric (external.metrics.k8s.io), and its value counts for that cluster.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 4096))]
    pub query: Option<String>,
    /// The value that is aimed at.
    pub target: MetricTarget,
}

const EXTERNAL_RULES: &[Rule] = &[rule(
    "!has(self.query) || !has(self.metric.selector)",
    "a query selects its series itself: leave metric.selector out",
)];

/// An object that a metric is about.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DescribedObject {
    /// The API version of the object.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 253))]
    pub api_version: Option<String>,
    /// The kind of the object.
    #[schemars(length(min = 1, max = 63))]
    pub kind: String,
    /// The name of the object.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
}

/// A metric by name and labels.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MetricIdentifier {
    /// The name of the metric.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
    /// The labels of the series that are read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "label_selector_schema")]
    pub selector: Option<LabelSelector>,
}

/// The value of a metric that is aimed at.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = rules(&[TARGET_RULES])))]
pub struct MetricTarget {
    /// Which of the other fields is given.
    #[serde(rename = "type")]
    pub type_: MetricTargetType,
    /// The average over all pods, in percent of their requests.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 100_000))]
    pub average_utilization: Option<i32>,
    /// The average over all pods.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "quantity_schema")]
    pub average_value: Option<Quantity>,
    /// The value itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "quantity_schema")]
    pub value: Option<Quantity>,
}

const TARGET_RULES: &[Rule] = &[
    rule(
        "(self.type == 'Utilization') == has(self.averageUtilization)",
        "averageUtilization goes with, and only with, type Utilization",
    ),
    rule(
        "(self.type == 'AverageValue') == has(self.averageValue)",
        "averageValue goes with, and only with, type AverageValue",
    ),
    rule("(self.type == 'Value') == has(self.value)", "value goes with, and only with, type Value"),
    rule(
        "(!has(self.averageValue) || quantity(string(self.averageValue)).isGreaterThan(quantity('0'))) \
         && (!has(self.value) || quantity(string(self.value)).isGreaterThan(quantity('0')))",
        "a target must be greater than 0",
    ),
];

/// How a target is given.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum MetricTargetType {
    /// In percent of what the pods request.
    #[default]
    Utilization,
    /// As an average over all pods.
    AverageValue,
    /// As a value.
    Value,
}

/// How fast replicas may change.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Behavior {
    /// How fast replicas may grow. If no window is given, they grow without waiting; if no policy is given, by 4 or by
    /// 100 percent in 15 seconds, whichever is more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scale_up: Option<ScalingRules>,
    /// How fast replicas may shrink. If no window is given, it is 600 seconds: the cool-down of mck8s. If no policy is
    /// given, they may shrink by any number then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scale_down: Option<ScalingRules>,
}

/// How fast replicas may change in one direction.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ScalingRules {
    /// For how many seconds past recommendations are looked at, so that replicas do not go up and down.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 3600))]
    pub stabilization_window_seconds: Option<i32>,
    /// Which of several policies counts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub select_policy: Option<SelectPolicy>,
    /// By how much replicas may change in which time.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 10), extend("x-kubernetes-list-type" = "atomic"))]
    pub policies: Vec<ScalingPolicy>,
    /// By which fraction a metric may differ from its target before replicas change, such as 0.1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "quantity_schema")]
    pub tolerance: Option<Quantity>,
}

/// Which of several policies counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum SelectPolicy {
    /// The one that allows the largest change.
    #[default]
    Max,
    /// The one that allows the smallest change.
    Min,
    /// None: replicas do not change in this direction.
    Disabled,
}

/// A bound on the change of replicas.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ScalingPolicy {
    /// What value counts.
    #[serde(rename = "type")]
    pub type_: ScalingPolicyType,
    /// How many pods or percent.
    #[schemars(range(min = 1))]
    pub value: i32,
    /// In how many seconds.
    #[schemars(range(min = 1, max = 1800))]
    pub period_seconds: i32,
}

/// What the value of a scaling policy counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum ScalingPolicyType {
    /// Replicas.
    Pods,
    /// Percent of the present replicas.
    Percent,
}

/// A larger minimum of replicas for some time of the day, the week or the year.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = rules(&[SCHEDULE_RULES])))]
pub struct MinimumSchedule {
    /// The name of the schedule, for messages.
    #[schemars(length(min = 1, max = 63))]
    pub name: String,
    /// When the minimum begins to hold, in the syntax of a CronJob: minute, hour, day of the month, month, day of the
    /// week. For example 0 8 * * MON-FRI.
    #[schemars(length(min = 1, max = 128), extend("x-kubernetes-validations" = cron_rules()))]
    pub start: String,
    /// When the minimum ends to hold, in the same syntax.
    #[schemars(length(min = 1, max = 128), extend("x-kubernetes-validations" = cron_rules()))]
    pub end: String,
    /// The time zone of both, by its name in the IANA database, such as Europe/Paris.
    #[serde(default = "utc")]
    #[schemars(length(min = 1, max = 64), extend("x-kubernetes-validations" = [{
        "rule": "self.matches('^[A-Za-z0-9_+-]+(/[A-Za-z0-9_+-]+){0,2}$')",
        "message": "must be the name of a time zone in the IANA database, such as Europe/Paris",
    }]))]
    pub time_zone: String,
    /// The least value that the workload's replicas are set to while the schedule holds. The largest of all minimums
    /// that hold counts.
    #[schemars(range(min = 0, max = 1_000_000))]
    pub min_replicas: i32,
}

/// Refuses what is no cron expression when it is written, not when it is used.
fn cron_rules() -> Value {
    let field = |value: &str| {
        let part = format!("([*?]|{value}(-{value})?)(/[1-9][0-9]?)?");
        format!("{part}(,{part})*")
    };
    let fields = [
        "[0-5]?[0-9]",
        "([01]?[0-9]|2[0-3])",
        "(0?[1-9]|[12][0-9]|3[01])",
        "(0?[1-9]|1[0-2]|(?i:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec))",
        "([0-7]|(?i:sun|mon|tue|wed|thu|fri|sat))",
    ];
    let fields = fields.map(field).join(" +");
    let short = "@(yearly|annually|monthly|weekly|daily|midnight|hourly)";
    json!([{
        "rule": format!("self.matches('^ *({short}|{fields}) *$')"),
        "message": "must be a cron expression such as 0 8 * * MON-FRI: minute (0-59), hour (0-23), day of the month \
                    (1-31), month (1-12 or JAN-DEC), day of the week (0-7 or SUN-SAT)",
    }])
}

fn utc() -> String {
    "Etc/UTC".to_owned()
}

const SCHEDULE_RULES: &[Rule] =
    &[rule("self.start != self.end", "start and end must differ: the schedule would have no length")];

/// A number of replicas that was recommended at some time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Recommendation {
    /// How many replicas.
    pub replicas: i32,
    /// When they were last recommended.
    pub time: Time,
}

/// A change of the workload's replicas by the autoscaler.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ScaleEvent {
    /// By how many replicas the number was changed. It is negative if there are fewer.
    pub change: i32,
    /// When it was changed.
    pub time: Time,
}

/// A metric as last read.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CurrentMetric {
    /// Where it comes from.
    #[serde(rename = "type")]
    pub type_: MetricType,
    /// The name of the resource or metric.
    pub name: String,
    /// The container, for a ContainerResource.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub container: Option<String>,
    /// The average over all pods, in percent of their requests.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub average_utilization: Option<i32>,
    /// The average over all pods.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "quantity_schema")]
    pub average_value: Option<Quantity>,
    /// The value itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "quantity_schema")]
    pub value: Option<Quantity>,
}
