//! `portolan get`

mod clusters;
mod workloads;

pub(super) use clusters::health;
pub(super) use workloads::{Part, parts, summary};

use crate::cli::{GetArgs, GetFormat};
use crate::failure::Failure;
use crate::kind::Kind;
use crate::{connection, output};
use kube::api::ListParams;
use portolan_api::convert::{to_json, to_yaml};
use serde_json::Value;

pub(super) fn run(args: &GetArgs) -> Result<(), Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(Box::pin(get(args)))
}

async fn get(args: &GetArgs) -> Result<(), Failure> {
    let (kind, mut names) = Kind::parse(&args.kind)?;
    names.extend(args.names.iter().cloned());
    let (hub, _) = connection::answering(&args.cluster).await?;
    let namespace = match (&args.place.namespace, args.place.all_namespaces) {
        _ if !kind.namespaced() => None,
        (_, true) => None,
        (Some(namespace), _) => Some(namespace.clone()),
        (None, _) => Some(hub.default_namespace().to_owned()),
    };
    let mut params = ListParams::default();
    if let Some(selector) = &args.selector {
        params = params.labels(selector);
    }
    let mut objects = kind.list(&hub, namespace.as_deref(), &params).await?;
    if !names.is_empty() {
        let name = |object: &Value| object["metadata"]["name"].as_str().unwrap_or_default().to_owned();
        let missing = names.iter().find(|wanted| !objects.iter().any(|object| name(object) == **wanted));
        if let Some(missing) = missing {
            return Err(Failure::other(format!("{} {missing:?} is not there", kind.name())).hint(
                match &namespace {
                    Some(namespace) => format!("it was looked for in namespace {namespace}"),
                    None => format!("`portolan get {}` lists all", kind.short()),
                },
            ));
        }
        objects.retain(|object| names.contains(&name(object)));
    }
    let wide = args.output == Some(GetFormat::Wide);
    match args.output {
        Some(GetFormat::Json) => output::data(&to_json(&objects).map_err(Failure::other)?),
        Some(GetFormat::Yaml) => output::data(&to_yaml(&objects).map_err(Failure::other)?),
        Some(GetFormat::Name) => {
            let line = |object: &Value| {
                format!(
                    "{}.portolan.dev/{}\n",
                    kind.name(),
                    object["metadata"]["name"].as_str().unwrap_or_default()
                )
            };
            output::data(&objects.iter().map(line).collect::<String>())
        }
        None | Some(GetFormat::Wide) if objects.is_empty() => {
            let place = namespace.map(|name| format!(" in namespace {name}")).unwrap_or_default();
            eprintln!("No {} found{place}.", kind.plural());
            Ok(())
        }
        None | Some(GetFormat::Wide) => {
            let now = jiff::Timestamp::now();
            let table = match kind {
                Kind::Cluster => clusters::table(&objects, wide, now)?,
                workload => workloads::table(workload, &objects, namespace.is_none(), wide, now),
            };
            output::data(&crate::table::text(&table))
        }
    }
}
