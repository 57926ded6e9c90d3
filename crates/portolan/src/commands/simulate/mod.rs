//! `portolan simulate`: a scenario on simulated clusters in virtual time.

mod bar;
mod show;
mod source;
mod write;

use crate::cli::{BaselineArg, SimulateArgs, SimulateFormat};
use crate::failure::Failure;
use crate::output;
use bar::Bar;
use portolan_simulator::{Baseline, Options, Record, ScenarioError, SimulationError, load, schema, simulate};
use source::Source;

pub(super) fn run(args: &SimulateArgs) -> Result<(), Failure> {
    if args.schema {
        let text = serde_json::to_string_pretty(&schema()).map_err(Failure::other)?;
        return output::data(&(text + "\n"));
    }
    if args.list {
        return output::data(&show::list()?);
    }
    let source = Source::find(args.scenario.as_deref().unwrap_or_default())?;
    let mut records = Vec::new();
    for run in runs(args, &source)? {
        records.push(play(args, &source, &run)?);
    }
    if let Some(folder) = &args.output_dir {
        write::write(folder, &records)?;
    }
    match args.output {
        SimulateFormat::Table => output::data(&show::table(&records)),
        SimulateFormat::Json => {
            let text = serde_json::to_string_pretty(&records).map_err(Failure::other)?;
            output::data(&(text + "\n"))
        }
    }
}

/// One way to play a scenario.
struct Run {
    label: String,
    variant: Option<String>,
    baseline: Option<Baseline>,
}

/// The runs that are shown side by side.
fn runs(args: &SimulateArgs, source: &Source) -> Result<Vec<Run>, Failure> {
    let of =
        |variant: &str| Run { label: variant.to_owned(), variant: Some(variant.to_owned()), baseline: None };
    let plain = || Run { label: source.stem(), variant: None, baseline: None };
    let mut runs = match args.compare.as_deref().map(|text| text.split_once(':').ok_or(text)) {
        None => vec![plain()],
        Some(Err(variant)) => vec![plain(), of(variant)],
        Some(Ok((first, second))) => vec![of(first), of(second)],
    };
    match args.baseline {
        Some(BaselineArg::Kubefed) => {
            runs.push(Run { label: "kubefed".to_owned(), variant: None, baseline: Some(Baseline::KubeFed) })
        }
        None => {}
    }
    // A mistake in the last one is told before the first one is played.
    for run in &runs {
        load(&source.name, &source.text, run.variant.as_deref()).map_err(|error| wrong(&error))?;
    }
    Ok(runs)
}

fn play(args: &SimulateArgs, source: &Source, run: &Run) -> Result<Record, Failure> {
    let scenario = load(&source.name, &source.text, run.variant.as_deref()).map_err(|error| wrong(&error))?;
    let options = Options {
        seed: args.seed,
        baseline: run.baseline,
        folder: source.folder.clone(),
        label: run.label.clone(),
    };
    let mut bar = Bar::new(&run.label);
    let record = simulate(&scenario, &options, &mut |done, total| bar.show(done, total));
    bar.end();
    record.map_err(|error| match error {
        SimulationError::Scenario(error) => wrong(&error),
        SimulationError::NothingToCompare(_) => Failure::input(error)
            .hint("leave --baseline out, or use --compare with a variant of the scenario"),
        SimulationError::Refused { .. } => Failure::input(format!("{}: {error}", source.name)),
        SimulationError::SetUp { .. } | SimulationError::Runtime(_) => Failure::other(error),
    })
}

fn wrong(error: &ScenarioError) -> Failure {
    let failure = Failure::input(error);
    match &error.hint {
        Some(hint) => failure.hint(hint),
        None => failure,
    }
}
