//! Portolan as pods of real clusters: how soon it is installed and peered, and what an idle peer costs.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use portolan_lab::{Lab, PORTOLAN_IMAGE, portolan_binary, portolan_image};
use tokio::process::Command;

use crate::measure::{Report, memory_mib};

/// How long a peering is left alone before it counts as idle, and how long it is watched then.
const SETTLES: Duration = Duration::from_secs(60);
const WATCHED: Duration = Duration::from_secs(120);

/// Peerings after the first one.
const AGAIN: usize = 3;

pub(crate) fn peering(_: usize) -> Result<Report> {
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?.block_on(measure())
}

async fn measure() -> Result<Report> {
    let begun = Instant::now();
    let (binary, image) = (portolan_binary().await?, portolan_image().await?);
    let size = image.metadata()?.len();
    let lab = Lab::builder().clusters(2).start().await?;
    lab.load_image(&image).await?;
    let kubeconfig = lab.kubeconfig_path()?;
    let kubeconfig = kubeconfig.to_str().context("the path of the kubeconfig is text")?;
    let portolan = async |arguments: &[&str]| -> Result<(Duration, String)> {
        let started = Instant::now();
        let told = succeed(&binary, &[arguments, &["--kubeconfig", kubeconfig]].concat()).await?;
        Ok((started.elapsed(), told))
    };
    let (repository, tag) = PORTOLAN_IMAGE.rsplit_once(':').context("the image has a tag")?;
    let values = format!("image.repository={repository},image.tag={tag},image.pullPolicy=Never");
    let mut installed = Vec::new();
    for context in ["c1", "c2"] {
        installed.push(portolan(&["install", "--context", context, "--set", &values]).await?.0);
    }
    let mut peered = Vec::new();
    for _ in 0..=AGAIN {
        if !peered.is_empty() {
            portolan(&["unpeer", "c2", "--context", "c1"]).await?;
        }
        let invite = ["invite", "--context", "c2", "--sharing", "50%"];
        let (_, line) = portolan(&invite).await?;
        let started = Instant::now();
        portolan(&["peer", line.trim(), "--context", "c1"]).await?;
        let ready = ["wait", "--for=condition=Ready", "foreigncluster/c2", "--timeout=60s"];
        lab.cluster("c1")?.kubectl(&ready).await?;
        peered.push(started.elapsed());
    }
    tokio::time::sleep(SETTLES).await;
    let address = lab.cluster("c2")?.control_plane().address().to_string();
    let controllers = controllers()?;
    ensure!(controllers.len() == 2, "there are {} controllers", controllers.len());
    let before = bytes(&controllers, &address).await?;
    tokio::time::sleep(WATCHED).await;
    let after = bytes(&controllers, &address).await?;
    let grown: u64 = after.iter().map(|(socket, bytes)| bytes - before.get(socket).unwrap_or(&0)).sum();
    let memory = controllers.iter().map(|process| memory_mib(*process)).collect::<Result<Vec<_>>>()?;
    let report = Report::new(begun.elapsed())?
        .figure("image", size as f64 / 1e6, "MB")
        .at_most("install, the first cluster", installed[0].as_secs_f64(), "s", 10.0)
        .at_most("install, the second cluster", installed[1].as_secs_f64(), "s", 10.0)
        .at_most("peering by invitation until Ready", peered[0].as_secs_f64(), "s", 2.0);
    let report = peered.iter().skip(1).fold(report, |report, again| {
        report.at_most("peering once more until Ready", again.as_secs_f64(), "s", 2.0)
    });
    let report = memory.iter().fold(report, |report, memory| {
        report.at_most("resident memory of an idle peer", *memory, "MiB", 30.0)
    });
    lab.down()?;
    let rate = grown as f64 / WATCHED.as_secs_f64() / 1000.0;
    Ok(report.at_most("idle traffic to a peer", rate, "kB/s", 1.0))
}

async fn succeed(program: &Path, arguments: &[&str]) -> Result<String> {
    let output = Command::new(program).args(arguments).stdin(Stdio::null()).output().await?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let told = || format!("{}{}", text(&output.stdout), text(&output.stderr));
    ensure!(output.status.success(), "{} {}: {}", program.display(), arguments.join(" "), told());
    Ok(text(&output.stdout))
}

/// The processes of this machine that run the program of the image.
fn controllers() -> Result<Vec<u32>> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir("/proc")? {
        let entry = entry?;
        let Some(process) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else { continue };
        if std::fs::read_link(entry.path().join("exe")).is_ok_and(|exe| exe == Path::new("/portolan")) {
            found.push(process);
        }
    }
    Ok(found)
}

/// What went over each connection of these processes to an address, both ways, without headers.
async fn bytes(processes: &[u32], address: &str) -> Result<BTreeMap<String, u64>> {
    let mut all = BTreeMap::new();
    for process in processes {
        let mut list = Command::new("nsenter");
        list.args(["-t", &process.to_string(), "-n", "ss", "-tinOH", "dst", address]);
        let output = list.output().await.context("cannot run nsenter and ss")?;
        ensure!(output.status.success(), "ss: {}", String::from_utf8_lossy(&output.stderr));
        for line in String::from_utf8_lossy(&output.stdout).lines() {
            let words: Vec<&str> = line.split_whitespace().collect();
            let socket = words.get(3).context("ss names the local address")?;
            let counted = words.iter().filter_map(|word| {
                word.strip_prefix("bytes_sent:").or_else(|| word.strip_prefix("bytes_received:"))
            });
            let sum = counted.filter_map(|number| number.parse::<u64>().ok()).sum();
            all.insert(format!("{process} {socket}"), sum);
        }
    }
    Ok(all)
}
