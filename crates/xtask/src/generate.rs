//! Generated files that are checked in.

use crate::steps::root;
use anyhow::{Context, Result, bail};
use clap::Args;
use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::sync::OnceLock;

#[derive(Args)]
pub(crate) struct GenerateArgs {
    /// Changes nothing; fails if a file is not current.
    #[arg(long)]
    check: bool,
    /// Instead, what the sandbox knows of the types of Kubernetes, from a lab that is started for it (root, Go).
    #[arg(long)]
    kubernetes: bool,
}

impl GenerateArgs {
    /// Only looks whether the files are current.
    pub(crate) fn checking() -> Self {
        Self { check: true, kubernetes: false }
    }
}

pub(crate) fn run(args: &GenerateArgs) -> Result<()> {
    if args.check && !args.kubernetes {
        crate::structure::check_stamp()?;
    }
    let (files, surplus) = if args.kubernetes {
        (crate::structure::make()?, Vec::new())
    } else {
        let files = files()?;
        let surplus = surplus(&files)?;
        (files, surplus)
    };
    let stale: Vec<_> =
        files.iter().filter(|(path, text)| fs::read_to_string(path).ok().as_ref() != Some(text)).collect();
    if args.check {
        let names = stale.iter().map(|(path, _)| *path).chain(&surplus);
        let names: Vec<_> = names.map(|path| format!("  {}", path.display())).collect();
        if !names.is_empty() {
            bail!("not current; run `cargo xtask generate` and commit:\n{}", names.join("\n"));
        }
        println!("{} generated files are current", files.len());
        return Ok(());
    }
    for (path, text) in stale {
        let folder = path.parent().context("a generated file has a folder")?;
        fs::create_dir_all(folder)?;
        fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))?;
        println!("wrote {}", path.display());
    }
    for path in surplus {
        fs::remove_file(&path).with_context(|| format!("cannot remove {}", path.display()))?;
        println!("removed {}", path.display());
    }
    Ok(())
}

fn files() -> Result<BTreeMap<PathBuf, String>> {
    let crds = crd_folder();
    let mut files: BTreeMap<_, _> =
        portolan_api::render_crds()?.into_iter().map(|(name, text)| (crds.join(name), text)).collect();
    let reference = root().join("docs/src/reference");
    files.insert(reference.join("command-line.md"), command_line()?);
    files.insert(reference.join("resources.md"), crate::reference::page(&portolan_api::crds()));
    files.insert(reference.join("scenario.md"), crate::scenario_page::page(&portolan_simulator::schema()));
    files.insert(reference.join("reasons.md"), crate::reasons_page::page());
    files.insert(reference.join("member-role.md"), portolan_control::peering::page());
    files.insert(reference.join("hub-role.md"), hub_role()?);
    files.insert(reference.join("metrics.md"), portolan_control::monitor::page());
    files.insert(reference.join("values.md"), values());
    files
        .extend(portolan_install::chart()?.into_iter().map(|(path, text)| (chart_folder().join(path), text)));
    Ok(files)
}

/// What an installation is made from.
fn values() -> String {
    format!(
        "# Values of an installation\n\n\
         This page is written by `cargo xtask generate` from the types. `portolan install` and `portolan upgrade` take these \
         values by `--set` and `--values`, and `helm` by flags of the same names; each has its default here. \
         [Install Portolan](../tasks/install.md) shows how they are used.\n\n```yaml\n{}```\n",
        portolan_install::values_yaml().lines().skip(1).map(|line| format!("{line}\n")).collect::<String>()
    )
}

/// What the controller may do in the hub.
fn hub_role() -> Result<String> {
    let mut yaml = String::new();
    for object in portolan_control::peering::hub_roles() {
        yaml.push_str("---\n");
        yaml.push_str(&serde_saphyr::to_string(&object)?);
    }
    let table = portolan_control::peering::hub_rights_table();
    Ok(format!(
        "# Roles in the hub\n\n\
         This page is written by `cargo xtask generate` from the table that `portolan crds --roles` prints the roles of. The \
         tests on real clusters run the controller with these rights alone, and hold them against the audit logs of API servers: no \
         right is missing, none is unused.\n\n\
         ## What the controller may do\n\n{table}\n\
         If the hub is a member of its own fleet, the controller needs the ClusterRole `portolan-hub-as-member` too:\n\n\
         ```sh\n\
         kubectl create clusterrolebinding portolan-hub-as-member --clusterrole portolan-hub-as-member \\\n  \
         --serviceaccount portolan:portolan-controller\n\
         ```\n\n\
         If it measures (`--measure-latency`), it needs the Role `portolan-measurement` too:\n\n\
         ```sh\n\
         kubectl create rolebinding portolan-measurement --namespace portolan --role portolan-measurement \\\n  \
         --serviceaccount portolan:portolan-controller\n\
         ```\n\n\
         If it reports the capacity of the cluster (`--report-capacity`), it needs the Role and the ClusterRole \
         `portolan-capacity-report` too:\n\n\
         ```sh\n\
         kubectl create rolebinding portolan-capacity-report --namespace portolan --role portolan-capacity-report \\\n  \
         --serviceaccount portolan:portolan-controller\n\
         kubectl create clusterrolebinding portolan-capacity-report --clusterrole portolan-capacity-report \\\n  \
         --serviceaccount portolan:portolan-controller\n\
         ```\n\n\
         ## All roles\n\n```yaml\n{yaml}```\n"
    ))
}

fn crd_folder() -> PathBuf {
    root().join("deploy/crds")
}

fn chart_folder() -> PathBuf {
    root().join("charts/portolan")
}

/// Definitions of kinds and templates of objects that no longer exist.
fn surplus(files: &BTreeMap<PathBuf, String>) -> Result<Vec<PathBuf>> {
    let mut surplus = Vec::new();
    for folder in [crd_folder(), crd_folder().join("experimental"), chart_folder().join("templates")] {
        let Ok(entries) = fs::read_dir(folder) else { continue };
        for entry in entries {
            let path = entry?.path();
            if path.is_file() && !files.contains_key(&path) {
                surplus.push(path);
            }
        }
    }
    Ok(surplus)
}

/// The reference of the command line, from the help texts themselves.
fn command_line() -> Result<String> {
    let mut text = String::from(
        "# Command line\n\n\
         This page is written by `cargo xtask generate` from the help texts of the commands.\n",
    );
    let mut pages = vec![Vec::<String>::new()];
    while let Some(path) = pages.pop() {
        let help = help("portolan", &path)?;
        let title = std::iter::once("portolan".to_owned()).chain(path.clone()).collect::<Vec<_>>().join(" ");
        text.push_str(&format!("\n## {title}\n\n```text\n{}\n```\n", help.trim_end()));
        for command in subcommands(&help).into_iter().rev() {
            pages.push(path.iter().cloned().chain([command]).collect());
        }
    }
    Ok(text)
}

/// What a command of ours prints when asked for help.
pub(crate) fn help(package: &str, path: &[String]) -> Result<String> {
    let output = Command::new(program(package)?)
        .args(path)
        .arg("--help")
        .env("COLUMNS", "100")
        .current_dir(root())
        .output()?;
    if !output.status.success() {
        bail!("`{package} {} --help`: {}", path.join(" "), String::from_utf8_lossy(&output.stderr));
    }
    Ok(String::from_utf8(output.stdout)?)
}

/// The file of a program of ours, as it is in the tree now.
pub(crate) fn program(package: &str) -> Result<PathBuf> {
    let this = std::env::current_exe()?;
    if package == env!("CARGO_PKG_NAME") {
        return Ok(this);
    }
    // All packages are selected for the same features, and so the same builds, as in the tests.
    let build = ["build", "--locked", "--quiet", "--workspace", "--bin", package];
    static BUILT: OnceLock<bool> = OnceLock::new();
    let built = *BUILT.get_or_init(|| {
        let status = Command::new(env!("CARGO")).args(build).current_dir(root()).status();
        status.is_ok_and(|status| status.success())
    });
    if !built {
        bail!("`cargo {}` failed", build.join(" "));
    }
    Ok(this.with_file_name(package))
}

/// The names under "Commands:" in a help text.
fn subcommands(help: &str) -> Vec<String> {
    let lines = help.lines().skip_while(|line| *line != "Commands:").skip(1);
    let entries = lines.take_while(|line| line.starts_with("  "));
    let named = entries.filter(|line| !line.starts_with("   "));
    let names = named.filter_map(|line| line.split_whitespace().next());
    names.filter(|name| *name != "help").map(str::to_owned).collect()
}
