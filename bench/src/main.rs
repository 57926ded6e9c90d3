//! How fast and how large: `cargo xtask bench [NAME…]`. Each measurement is a process of its own, so that the memory it
//! prints is its own.

mod decisions;
mod fleet;
mod lab;
mod measure;
mod memory;
mod peering;
mod placement;
mod sandbox;
mod simulate;

use std::process::{Command, ExitCode, Stdio};

use anyhow::{Context, Result, bail};
use measure::{Measurement, Report};

/// As in the binary that is measured.
#[cfg(not(target_env = "msvc"))]
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

/// Everything that can be measured, at one size and at ten times that size.
const MEASUREMENTS: &[Measurement] = &[
    Measurement { name: "writes", of: "objects of 1 KB", sizes: &[1_000, 10_000], run: sandbox::writes },
    Measurement { name: "clusters", of: "clusters of 5 nodes", sizes: &[100, 1_000], run: sandbox::clusters },
    Measurement { name: "pods", of: "pods", sizes: &[10_000, 100_000], run: sandbox::pods },
    Measurement { name: "idle", of: "clusters, an idle virtual hour", sizes: &[5, 50], run: sandbox::idle },
    Measurement {
        name: "large",
        of: "clusters of 5,000 nodes to decide over",
        sizes: &[10, 100],
        run: decisions::over_large,
    },
    Measurement {
        name: "many",
        of: "clusters of 50 nodes to decide over",
        sizes: &[100, 1_000],
        run: decisions::over_many,
    },
    Measurement {
        name: "burst",
        of: "workloads created at once",
        sizes: &[100, 1_000],
        run: placement::burst,
    },
    Measurement { name: "one", of: "workloads, one at a time", sizes: &[100], run: placement::one },
    Measurement { name: "steady", of: "workloads, 20 a second", sizes: &[600], run: placement::steady },
    Measurement {
        name: "relabel",
        of: "workloads that move",
        sizes: &[1_000, 10_000],
        run: placement::relabel,
    },
    Measurement {
        name: "memory",
        of: "workloads, 100 clusters",
        sizes: &[100, 1_000],
        run: memory::controller,
    },
    Measurement { name: "paper", of: "playing paper-1", sizes: &[1], run: simulate::paper },
    Measurement { name: "day", of: "playing day", sizes: &[1], run: simulate::day },
    Measurement { name: "figures", of: "the experiments of the paper", sizes: &[1], run: simulate::figures },
    Measurement { name: "lab-burst", of: "workloads on real clusters", sizes: &[1_000], run: lab::burst },
    Measurement {
        name: "lab-peering",
        of: "installed and peered on real clusters",
        sizes: &[1],
        run: peering::peering,
    },
    Measurement { name: "lab-table", of: "the paper's Table IV", sizes: &[1], run: lab::table },
];

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let outcome = match words.as_slice() {
        ["--measure", name, size] => measure_here(name, size),
        ["--controller", kubeconfig] => memory::run_controller(kubeconfig),
        names => measure_all(names),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// Measures in this process and prints the report as JSON.
fn measure_here(name: &str, size: &str) -> Result<()> {
    let found =
        MEASUREMENTS.iter().find(|known| known.name == name).context("there is no such measurement")?;
    let report = (found.run)(size.parse()?)?;
    println!("{}", serde_json::to_string(&report)?);
    Ok(())
}

fn measure_all(names: &[&str]) -> Result<()> {
    if let Some(unknown) = names.iter().find(|name| MEASUREMENTS.iter().all(|known| known.name != **name)) {
        let known: Vec<&str> = MEASUREMENTS.iter().map(|known| known.name).collect();
        bail!("there is no measurement {unknown:?}; there are {}", known.join(", "));
    }
    let mut missed = Vec::new();
    for measurement in MEASUREMENTS {
        // Those on the lab take root and minutes: only when asked for.
        let asked = names.contains(&measurement.name);
        if !asked && (!names.is_empty() || measurement.name.starts_with("lab-")) {
            continue;
        }
        println!("\n{}: {}", measurement.name, measurement.of);
        let mut smaller: Option<Report> = None;
        for size in measurement.sizes {
            let report = in_process_of_its_own(measurement.name, *size)?;
            print!("{}", report.text(*size, smaller.as_ref()));
            missed.extend(report.missed().map(|what| format!("{} {size}: {what}", measurement.name)));
            smaller = Some(report);
        }
    }
    if missed.is_empty() {
        return Ok(());
    }
    bail!("targets missed:\n  {}", missed.join("\n  "))
}

fn in_process_of_its_own(name: &str, size: usize) -> Result<Report> {
    let mut command = Command::new(std::env::current_exe()?);
    command.args(["--measure", name, &size.to_string()]).stderr(Stdio::inherit());
    let output = command.output().with_context(|| format!("cannot measure {name}"))?;
    if !output.status.success() {
        bail!("{name} {size}: {}", output.status);
    }
    let text = String::from_utf8_lossy(&output.stdout);
    let last = text.lines().last().with_context(|| format!("{name} {size} printed nothing"))?;
    serde_json::from_str(last).with_context(|| format!("{name} {size} printed {last:?}"))
}
