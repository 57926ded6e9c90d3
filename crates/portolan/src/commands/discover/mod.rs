//! `portolan discover`

mod candidates;
mod look;

use crate::cli::{DiscoverArgs, GetFormat};
use crate::failure::{Failure, NotShown};
use crate::{clean, connection, output};
use candidates::{Candidate, Flags, merge};
use comfy_table::Table;
use futures::{StreamExt, stream};
use portolan_control::peering::identity;
use serde_json::Value;

/// So many contexts are asked at a time.
const AT_A_TIME: usize = 16;

pub(super) fn run(args: &DiscoverArgs) -> Result<(), Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(Box::pin(discover(args)))
}

async fn discover(args: &DiscoverArgs) -> Result<(), Failure> {
    let names = match &args.remote_kubeconfig {
        Some(file) => connection::contexts(file)?,
        None => connection::context_names(args.cluster.kubeconfig.as_deref()),
    };
    let (hub, _) = connection::answering(&args.cluster).await?;
    let own = identity(&hub, "this cluster").await.map_err(super::peer::told)?;
    let mut not_shown = NotShown::default();
    let peers = not_shown.unless_forbidden(look::peers(&hub).await)?.unwrap_or_default();
    let profiles = not_shown.unless_forbidden(look::profiles(&hub).await)?.unwrap_or_default();
    let file = args.remote_kubeconfig.as_deref().or(args.cluster.kubeconfig.as_deref());
    let asked = names.into_iter().map(|name| look::context(file, name, args.timeout.0));
    let contexts = stream::iter(asked).buffered(AT_A_TIME).collect::<Vec<_>>().await;
    let flags = Flags {
        context: args.cluster.context.clone(),
        kubeconfig: args.cluster.kubeconfig.clone(),
        remote_kubeconfig: args.remote_kubeconfig.clone(),
    };
    let found = merge(&own, &peers, contexts, profiles, &flags);
    not_shown.report();
    show(args, &found)
}

fn show(args: &DiscoverArgs, found: &[Candidate]) -> Result<(), Failure> {
    let data = || -> Result<Vec<Value>, Failure> {
        found.iter().map(|each| serde_json::to_value(each).map_err(Failure::other)).collect()
    };
    match args.output {
        Some(GetFormat::Json) => output::json(&data()?, true),
        Some(GetFormat::Yaml) => output::yaml(&data()?),
        Some(GetFormat::Name) => {
            output::data(&found.iter().map(|each| clean::line(&each.reference) + "\n").collect::<String>())
        }
        None | Some(GetFormat::Wide) if found.is_empty() => {
            anstream::eprintln!(
                "No clusters found: the kubeconfig has no context, and this cluster has no ClusterProfile. \
                 `portolan invite` on another cluster makes a line for `portolan peer`."
            );
            Ok(())
        }
        None | Some(GetFormat::Wide) => {
            let table = table(found, args.output == Some(GetFormat::Wide));
            output::data(&if args.no_headers {
                crate::table::body(&table)
            } else {
                crate::table::text(&table)
            })
        }
    }
}

fn table(found: &[Candidate], wide: bool) -> Table {
    let mut header = vec!["CLUSTER", "STATE", "PEERED-AS", "VERSION", "FOUND-IN"];
    if wide {
        header.extend(["ID", "SERVER", "MESSAGE"]);
    }
    header.push("NEXT");
    let mut table = crate::table::table(&header);
    for each in found {
        let or_dash = |text: &Option<String>| clean::line(text.as_deref().unwrap_or("-"));
        let mut cells = vec![
            clean::line(&each.name),
            format!("{:?}", each.state),
            or_dash(&each.peered_as),
            or_dash(&each.version),
            clean::line(&each.found_in.join(", ")),
        ];
        if wide {
            cells.extend([&each.id, &each.server, &each.message].map(or_dash));
        }
        cells.push(or_dash(&each.next));
        table.add_row(cells);
    }
    table
}
