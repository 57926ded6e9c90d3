//! What may be in the way of Portolan in a cluster: admission webhooks and APIs that nobody serves.

use super::report::{Sheet, unasked};
use k8s_openapi::api::admissionregistration::v1::{
    MutatingWebhookConfiguration, RuleWithOperations, ValidatingWebhookConfiguration, WebhookClientConfig,
};
use k8s_openapi::api::core::v1::Service;
use k8s_openapi::api::discovery::v1::EndpointSlice;
use k8s_openapi::kube_aggregator::pkg::apis::apiregistration::v1::APIService;
use kube::api::ListParams;
use kube::{Api, Client};
use portolan_core::doctor::{ApiServices, Backend, Check, Evidence, Rule, Webhook, Webhooks};
use portolan_runtime::{CallError, call, foreign_text};
use std::collections::BTreeMap;

/// A list without end is not read to its end.
const LISTED: u32 = 500;

/// Checks both kinds of webhooks, and APIServices. `written` is what Portolan writes: group and resource.
pub(super) async fn check(sheet: &Sheet, client: &Client, written: Vec<(String, String)>) {
    let webhooks = async {
        let evidence = match webhooks(client).await {
            Ok(all) => Evidence::Webhooks(Webhooks { all, written }),
            Err(error) => unasked(
                &error,
                "list validatingwebhookconfigurations and mutatingwebhookconfigurations.admissionregistration.k8s.io",
            ),
        };
        sheet.add(Check::Webhooks, "", &evidence);
    };
    let services = async {
        let evidence = match api_services(client).await {
            Ok(services) => Evidence::ApiServices(services),
            Err(error) => unasked(&error, "list apiservices.apiregistration.k8s.io"),
        };
        sheet.add(Check::ApiServices, "", &evidence);
    };
    tokio::join!(webhooks, services);
}

/// A webhook before its backend is looked for.
struct Found {
    called: String,
    fails: bool,
    rules: Vec<Rule>,
    to: WebhookClientConfig,
}

async fn webhooks(client: &Client) -> Result<Vec<Webhook>, CallError> {
    let params = ListParams::default().limit(LISTED);
    let validating: Api<ValidatingWebhookConfiguration> = Api::all(client.clone());
    let mutating: Api<MutatingWebhookConfiguration> = Api::all(client.clone());
    let validating = call("list ValidatingWebhookConfigurations", validating.list(&params)).await?;
    let mutating = call("list MutatingWebhookConfigurations", mutating.list(&params)).await?;
    let mut found = Vec::new();
    for configuration in validating {
        let of = configuration.metadata.name.unwrap_or_default();
        for each in configuration.webhooks.into_iter().flatten() {
            let called = format!("ValidatingWebhookConfiguration {of}, webhook {}", each.name);
            found.push(Found::new(&called, each.failure_policy.as_deref(), each.rules, each.client_config));
        }
    }
    for configuration in mutating {
        let of = configuration.metadata.name.unwrap_or_default();
        for each in configuration.webhooks.into_iter().flatten() {
            let called = format!("MutatingWebhookConfiguration {of}, webhook {}", each.name);
            found.push(Found::new(&called, each.failure_policy.as_deref(), each.rules, each.client_config));
        }
    }
    let mut known = BTreeMap::new();
    let mut all = Vec::new();
    for Found { called, fails, rules, to } in found {
        let (target, backend) = match (&to.service, &to.url) {
            (Some(service), _) => {
                let place = (service.namespace.clone(), service.name.clone());
                let target = format!("{}/{}:{}", place.0, place.1, service.port.unwrap_or(443));
                if !known.contains_key(&place) {
                    known.insert(place.clone(), backend(client, &place.0, &place.1).await);
                }
                (target, known[&place].clone())
            }
            // What stands behind the host may be a secret.
            (None, url) => {
                let host =
                    url.as_deref().and_then(|url| Some(url.parse::<http::Uri>().ok()?.host()?.to_owned()));
                let host = foreign_text(&host.unwrap_or_else(|| "a URL that cannot be read".to_owned()));
                (host.clone(), Backend::Url(host))
            }
        };
        all.push(Webhook { called, fails, rules, target: foreign_text(&target), backend });
    }
    Ok(all)
}

impl Found {
    fn new(
        called: &str,
        policy: Option<&str>,
        rules: Option<Vec<RuleWithOperations>>,
        to: WebhookClientConfig,
    ) -> Self {
        let rule = |rule: RuleWithOperations| Rule {
            groups: rule.api_groups.unwrap_or_default(),
            resources: rule.resources.unwrap_or_default(),
        };
        let rules = rules.unwrap_or_default().into_iter().map(rule).collect();
        Self { called: foreign_text(called), fails: policy.unwrap_or("Fail") == "Fail", rules, to }
    }
}

/// What stands behind a Service.
async fn backend(client: &Client, namespace: &str, name: &str) -> Backend {
    let services: Api<Service> = Api::namespaced(client.clone(), namespace);
    match call("read the Service of a webhook", services.get_metadata(name)).await {
        Ok(_) => {}
        Err(error) if error.is_not_found() => return Backend::NoService,
        Err(_) => return Backend::Unknown(format!("get services in namespace {namespace}")),
    }
    let slices: Api<EndpointSlice> = Api::namespaced(client.clone(), namespace);
    let params = ListParams::default().labels(&format!("kubernetes.io/service-name={name}")).limit(LISTED);
    match call("list the endpoints of a webhook", slices.list(&params)).await {
        Ok(slices) => {
            let endpoints = slices.items.iter().flat_map(|slice| slice.endpoints.iter().flatten());
            let ready = |ready: Option<bool>| ready.unwrap_or(true);
            let ready = endpoints
                .filter(|each| ready(each.conditions.as_ref().and_then(|state| state.ready)))
                .count();
            Backend::Ready(ready)
        }
        Err(_) => Backend::Unknown(format!("list endpointslices.discovery.k8s.io in namespace {namespace}")),
    }
}

async fn api_services(client: &Client) -> Result<ApiServices, CallError> {
    let api: Api<APIService> = Api::all(client.clone());
    let list = call("list APIServices", api.list(&ListParams::default().limit(LISTED))).await?;
    let mut services = ApiServices { total: list.items.len(), ..ApiServices::default() };
    for each in list {
        let conditions = each.status.and_then(|status| status.conditions).unwrap_or_default();
        if let Some(condition) =
            conditions.iter().find(|condition| condition.type_ == "Available" && condition.status != "True")
        {
            let why = condition.message.clone().or(condition.reason.clone()).unwrap_or_default();
            let name = each.metadata.name.unwrap_or_default();
            services.unavailable.push((foreign_text(&name), foreign_text(&why)));
        }
    }
    Ok(services)
}
