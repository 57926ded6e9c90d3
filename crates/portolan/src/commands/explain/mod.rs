//! `portolan explain`

mod show;

use super::review;
use crate::cli::{DataFormat, ExplainArgs};
use crate::failure::Failure;
use crate::kind::Kind;
use crate::{connection, output};
use portolan_api::convert::{to_json, to_yaml};
use portolan_api::placementreview::{ReviewResult, ReviewTarget, ReviewedKind};
use portolan_api::{PlacementReviewSpec, Reason};
use std::process::ExitCode;

/// Something has no cluster, or a member refuses it.
const PENDING: u8 = 4;

/// What can be explained.
const KINDS: &str = "give mcd/NAME, mcj/NAME or mcs/NAME";

pub(super) fn run(args: &ExplainArgs) -> Result<ExitCode, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(Box::pin(explain(args)))
}

async fn explain(args: &ExplainArgs) -> Result<ExitCode, Failure> {
    let target = target(&args.workload)?;
    let (kind, name) = (target.kind, target.name.clone());
    let (hub, _) = connection::answering(&args.cluster).await?;
    let namespace = args.namespace.clone().unwrap_or_else(|| hub.default_namespace().to_owned());
    let spec = PlacementReviewSpec { explain: Some(target), ..PlacementReviewSpec::default() };
    let answers = review::ask(&hub, &namespace, "explain", spec, args.timeout.0).await?;
    let Some(answer) = answers.into_iter().next() else {
        return Err(Failure::other(format!("the controller says nothing of {} {name}", kind.as_str())));
    };
    if answer.errors.iter().any(|error| Reason::parse(&error.reason) == Some(Reason::NotFound)) {
        let kind = kind.as_str().to_lowercase();
        return Err(Failure::other(format!("{kind} {namespace}/{name} does not exist"))
            .hint("-n NAMESPACE looks in another namespace"));
    }
    match args.output {
        Some(DataFormat::Json) => {
            output::data(&to_json(&[review::as_json(&namespace, &answer)?]).map_err(Failure::other)?)?;
        }
        Some(DataFormat::Yaml) => {
            output::data(&to_yaml(&[review::as_json(&namespace, &answer)?]).map_err(Failure::other)?)?;
        }
        None => show::explanation(&namespace, &answer),
    }
    Ok(match answer.result {
        ReviewResult::Unchanged | ReviewResult::Changes => ExitCode::SUCCESS,
        ReviewResult::Pending | ReviewResult::Removes | ReviewResult::Invalid => ExitCode::from(PENDING),
    })
}

/// Reads `mcd/web` and `mcd web`.
fn target(words: &[String]) -> Result<ReviewTarget, Failure> {
    let text = words.join(" ");
    let (kind, name) = Kind::parse_one(words)?;
    if name.contains('/') {
        return Err(Failure::input(format!("{text:?} is not one workload")).hint(KINDS));
    }
    let kind = match kind {
        Kind::Deployment => ReviewedKind::MultiClusterDeployment,
        Kind::Job => ReviewedKind::MultiClusterJob,
        Kind::Service => ReviewedKind::MultiClusterService,
        kind => {
            let instead = format!("`portolan status {}/{name}` shows its state", kind.short());
            let message = format!("{text:?} is no workload: a {} has no placement", kind.singular());
            return Err(Failure::input(message).hint(KINDS).hint(instead));
        }
    };
    Ok(ReviewTarget { kind, name })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_workload_is_named_in_one_word_or_in_two() {
        let words = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
        let expected = ReviewTarget { kind: ReviewedKind::MultiClusterDeployment, name: "web".into() };
        assert_eq!(target(&words("mcd/web")).unwrap(), expected);
        assert_eq!(target(&words("mcd web")).unwrap(), expected);
        for wrong in ["mcd", "mcd/", "mcd/web x", "clusters/c2", "web"] {
            assert!(target(&words(wrong)).is_err(), "{wrong}");
        }
        for (other, instead) in [
            ("mchpa web", "portolan status mchpa/web"),
            ("cp/burst", "portolan status cp/burst"),
            ("mcr/home", "portolan status mcr/home"),
            ("clusters/c2", "portolan status clusters/c2"),
        ] {
            let failure = target(&words(other)).unwrap_err();
            assert!(failure.message().contains("has no placement"), "{}", failure.message());
            assert!(failure.hints().iter().any(|hint| hint.contains(instead)), "{:?}", failure.hints());
        }
        for several in ["mcd/web mcd/shop", "mcd web/shop"] {
            let failure = target(&words(several)).unwrap_err();
            assert!(
                failure.message().starts_with(&format!("{several:?} is not one")),
                "{}",
                failure.message()
            );
        }
    }
}
