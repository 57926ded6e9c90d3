//! `portolan simulate`: a scenario on simulated clusters in virtual time.

mod bar;
mod fleet;
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
    let given = args.scenario.as_deref().map(Source::find).transpose()?;
    let source = if args.from_fleet {
        let fleet = fleet::read(args, given)?;
        if let Some(file) = &args.write {
            return fleet.write(file);
        }
        fleet.source
    } else {
        refuse_flags_of_a_hub(args)?;
        given.unwrap_or_default()
    };
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

/// A simulation asks no cluster unless it is told to.
fn refuse_flags_of_a_hub(args: &SimulateArgs) -> Result<(), Failure> {
    let flags =
        [("--context", args.cluster.context.is_some()), ("--kubeconfig", args.cluster.kubeconfig.is_some())];
    match flags.into_iter().find(|(_, given)| *given) {
        Some((flag, _)) => Err(Failure::input(format!("{flag} names a hub, and a scenario file needs none"))
            .hint("give --from-fleet to begin with the fleet of that hub, or leave the flag out")),
        None => Ok(()),
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
    let plain = || Run { label: source.label.clone(), variant: None, baseline: None };
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
