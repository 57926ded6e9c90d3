//! What clusters offer to each other, as a table: what this one offers, and what it is offered.

use crate::cli::{GetArgs, GetFormat};
use crate::failure::Failure;
use crate::human::{age, share};
use crate::kind::Kind;
use crate::{clean, connection, output};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::api::ListParams;
use portolan_api::ForeignCluster;
use portolan_api::conditions::{self, ConditionType};
use portolan_api::placement::Resources;
use serde_json::{Value, json};

/// The words that offers are asked for by.
const NAMES: [&str; 5] =
    ["offer", "offers", "resourceoffer", "resourceoffers", "resourceoffers.portolan.dev"];

/// Resources that have a column of their own.
const COLUMNS: [&str; 3] = ["cpu", "memory", "pods"];

/// Whether a kind is that of offers.
pub(super) fn is_asked_for(kind: &str) -> bool {
    NAMES.contains(&kind.to_lowercase().as_str())
}

/// One offer.
struct Offer {
    cluster: String,
    /// `to` a consumer, `from` a provider.
    direction: &'static str,
    state: Option<Condition>,
    offered: Resources,
    used: Resources,
    expires: Option<Timestamp>,
}

pub(super) async fn get(args: &GetArgs) -> Result<(), Failure> {
    if args.watch {
        return Err(Failure::input("offers cannot be watched")
            .hint("`portolan get offers` shows them; `portolan get clusters --watch` follows the clusters"));
    }
    let (hub, _) = connection::answering(&args.cluster).await?;
    let params = args.selector.iter().fold(ListParams::default(), |params, labels| params.labels(labels));
    let mut offers = Vec::new();
    for object in Kind::Cluster.list(&hub, None, &params).await? {
        let cluster: ForeignCluster =
            serde_json::from_value(clean::object(object)).map_err(Failure::other)?;
        offers.extend(of(&cluster));
    }
    if let Some(missing) = args.names.iter().find(|name| !offers.iter().any(|each| each.cluster == **name)) {
        return Err(Failure::other(format!("there is no offer to or from cluster {missing:?}"))
            .hint("`portolan get offers` lists all"));
    }
    offers.retain(|offer| args.names.is_empty() || args.names.contains(&offer.cluster));
    let data: Vec<Value> = offers.iter().map(data).collect();
    match args.output {
        Some(GetFormat::Json) => output::json(&data, args.names.len() != 1),
        Some(GetFormat::Yaml) => output::yaml(&data),
        Some(GetFormat::Name) => {
            output::data(&offers.iter().map(|offer| format!("{}\n", offer.cluster)).collect::<String>())
        }
        None | Some(GetFormat::Wide) if offers.is_empty() => {
            eprintln!("No offers found: `portolan invite` lets another cluster peer with this one.");
            Ok(())
        }
        None | Some(GetFormat::Wide) => {
            let table = table(&offers, args.output == Some(GetFormat::Wide), Timestamp::now());
            let text = if args.no_headers { crate::table::body(&table) } else { crate::table::text(&table) };
            output::data(&text)
        }
    }
}

fn of(cluster: &ForeignCluster) -> Vec<Offer> {
    let status = cluster.status.clone().unwrap_or_default();
    let name = cluster.metadata.name.clone().unwrap_or_default();
    let state = |type_| conditions::find(&status.conditions, type_).cloned();
    let mut offers = Vec::new();
    if cluster.spec.incoming.is_some() {
        let incoming = status.incoming.clone().unwrap_or_default();
        offers.push(Offer {
            cluster: name.clone(),
            direction: "to",
            state: state(ConditionType::Sharing),
            offered: incoming.offered,
            used: incoming.used,
            expires: None,
        });
    }
    if cluster.spec.outgoing.is_some() {
        let outgoing = status.outgoing.clone().unwrap_or_default();
        offers.push(Offer {
            cluster: name,
            direction: "from",
            state: state(ConditionType::OfferAccepted),
            offered: outgoing.offered,
            used: outgoing.used,
            expires: outgoing.expires_at.map(|time| time.0),
        });
    }
    offers
}

fn data(offer: &Offer) -> Value {
    json!({
        "cluster": offer.cluster, "direction": offer.direction, "offered": offer.offered, "used": offer.used,
        "reason": offer.state.as_ref().map(|state| &state.reason),
        "message": offer.state.as_ref().map(|state| &state.message),
        "expiresAt": offer.expires,
    })
}

fn table(offers: &[Offer], wide: bool, now: Timestamp) -> comfy_table::Table {
    let mut header = vec!["CLUSTER", "DIRECTION", "STATE", "CPU", "MEMORY", "PODS", "OTHER"];
    if wide {
        header.extend(["EXPIRES-IN", "MESSAGE"]);
    }
    let mut table = crate::table::table(&header);
    for offer in offers {
        let state = offer.state.as_ref();
        let mut cells = vec![
            offer.cluster.clone(),
            offer.direction.to_owned(),
            state.map_or_else(|| "Unknown".to_owned(), |state| state.reason.clone()),
        ];
        cells.extend(COLUMNS.map(|name| share(name, &offer.used, &offer.offered)));
        let others = offer.offered.keys().filter(|name| !COLUMNS.contains(&name.as_str()));
        let others: Vec<String> =
            others.map(|name| format!("{name}:{}", share(name, &offer.used, &offer.offered))).collect();
        cells.push(if others.is_empty() { "-".to_owned() } else { others.join(",") });
        if wide {
            cells.push(offer.expires.map_or_else(|| "-".to_owned(), |ends| age(Some(now), ends)));
            cells.push(state.map(|state| state.message.clone()).unwrap_or_default());
        }
        table.add_row(cells);
    }
    table
}

/// Both offers of a cluster as lines of its status.
pub(in crate::commands) fn lines(cluster: &ForeignCluster) -> Vec<String> {
    let line = |offer: &Offer| {
        let numbers = COLUMNS.map(|name| format!("{name} {}", share(name, &offer.used, &offer.offered)));
        let side = if offer.direction == "to" { "offered to it" } else { "offered by it" };
        let state = offer.state.as_ref().map_or("not known yet", |state| state.message.as_str());
        format!("{side}: {} used ({state})", numbers.join(", "))
    };
    of(cluster).iter().map(line).collect()
}
