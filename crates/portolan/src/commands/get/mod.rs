//! `portolan get`

mod clusters;
mod elastic;
mod offers;
mod watch;
mod workloads;

pub(super) use clusters::{distances, health, is_orphaned, marks};
pub(super) use offers::lines as offer_lines;
pub(super) use workloads::{Part, parts, summary};

use crate::cli::{GetArgs, GetFormat};
use crate::failure::Failure;
use crate::kind::Kind;
use crate::{clean, connection, output};
use comfy_table::Table;
use kube::api::ListParams;
use serde_json::Value;

pub(super) fn run(args: &GetArgs) -> Result<(), Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(Box::pin(get(args)))
}

/// What is listed, and how.
struct Listing<'a> {
    args: &'a GetArgs,
    kind: Kind,
    names: Vec<String>,
    namespace: Option<String>,
}

async fn get(args: &GetArgs) -> Result<(), Failure> {
    if offers::is_asked_for(&args.kind) {
        return offers::get(args).await;
    }
    let (kind, mut names) = Kind::parse(&args.kind)?;
    names.extend(args.names.iter().cloned());
    let (hub, _) = connection::answering(&args.cluster).await?;
    let namespace = match (&args.place.namespace, args.place.all_namespaces) {
        _ if !kind.namespaced() => None,
        (_, true) => None,
        (Some(namespace), _) => Some(namespace.clone()),
        (None, _) => Some(hub.default_namespace().to_owned()),
    };
    let listing = Listing { args, kind, names, namespace };
    if args.watch {
        return watch::follow(&hub, &listing).await;
    }
    let mut params = ListParams::default();
    if let Some(selector) = &args.selector {
        params = params.labels(selector);
    }
    let mut objects = kind.list(&hub, listing.namespace.as_deref(), &params).await?;
    let missing = listing.names.iter().find(|wanted| !objects.iter().any(|object| name(object) == **wanted));
    if let Some(missing) = missing {
        return Err(kind.missing(listing.namespace.as_deref(), missing));
    }
    objects.retain(|object| listing.shows(object));
    match args.output {
        Some(GetFormat::Json) => output::json(&objects, listing.names.len() != 1),
        Some(GetFormat::Yaml) => output::yaml(&objects),
        Some(GetFormat::Name) => {
            output::data(&objects.iter().map(|object| listing.full_name(object)).collect::<String>())
        }
        None | Some(GetFormat::Wide) if objects.is_empty() => {
            let place = listing.namespace.map(|name| format!(" in namespace {name}")).unwrap_or_default();
            eprintln!("No {} found{place}.", kind.plural());
            Ok(())
        }
        None | Some(GetFormat::Wide) => {
            let table = listing.table(objects, false)?;
            let text = if args.no_headers { crate::table::body(&table) } else { crate::table::text(&table) };
            output::data(&text)
        }
    }
}

impl Listing<'_> {
    /// Whether the object is one of those asked for by name; without names, all are.
    fn shows(&self, object: &Value) -> bool {
        self.names.is_empty() || self.names.iter().any(|wanted| *wanted == name(object))
    }

    /// The objects as a table; in `one_column` what the clusters hold is one column, whatever they are.
    fn table(&self, objects: Vec<Value>, one_column: bool) -> Result<Table, Failure> {
        let objects: Vec<Value> = objects.into_iter().map(clean::object).collect();
        let wide = self.args.output == Some(GetFormat::Wide);
        let now = jiff::Timestamp::now();
        Ok(match self.kind {
            Kind::Cluster => clusters::table(&objects, wide, now)?,
            kind => {
                let namespace = kind.namespaced() && self.namespace.is_none();
                let columns = workloads::Columns { namespace, wide, one_column };
                if kind.is_workload() {
                    workloads::table(kind, &objects, columns, now)
                } else {
                    elastic::table(kind, &objects, columns, now)
                }
            }
        })
    }

    fn full_name(&self, object: &Value) -> String {
        format!("{}.portolan.dev/{}\n", self.kind.name(), clean::line(&name(object)))
    }
}

fn name(object: &Value) -> String {
    object["metadata"]["name"].as_str().unwrap_or_default().to_owned()
}
