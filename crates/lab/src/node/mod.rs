//! A node: its own network, mount, pid, uts, ipc and cgroup namespaces on a Debian root, like a node of kind.

mod boot;

use std::fs;
use std::io::ErrorKind;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use nix::errno::Errno;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tokio::net::{TcpStream, UnixStream};

pub(crate) use boot::boot;

use crate::cgroup::Hierarchies;
use crate::command::{run_shown, run_with_input};
use crate::component::{CONTAINERD_SOCKET, Component};
use crate::process::{self, MARKER};
use crate::state::{LabState, NodeState};
use crate::wait::{Seen, until};

const PATH_IN_NODE: &str = "/opt/lab/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
/// By how many percent the heaps of Go programs may grow between two collections. With five clusters on two cores it is
/// time that is short, not memory: API servers spend a fifth of theirs on collections when it is 100.
const HEAP_GROWS_BY: &str = "400";
/// How long a component may take to end when it is asked to.
const GRACE: Duration = Duration::from_secs(5);
/// How long the kernel may take to end a killed one.
const END_LIMIT: Duration = Duration::from_secs(120);

/// A node of a cluster.
#[derive(Clone, Debug)]
pub struct Node {
    lab: PathBuf,
    dir: PathBuf,
    group: String,
    state: NodeState,
}

impl Node {
    pub(crate) fn new(lab: &LabState, cluster: &str, state: &NodeState) -> Result<Self> {
        let dir = lab.dir()?;
        Ok(Node {
            dir: dir.join(cluster).join(&state.name),
            lab: dir,
            group: format!("{}/{}", lab.traces().cgroup(), state.name),
            state: state.clone(),
        })
    }

    /// Name of the node, as in `kubectl get nodes`.
    pub fn name(&self) -> &str {
        &self.state.name
    }

    /// Address of the node in the lab network, reachable from the host and from all other clusters.
    pub fn address(&self) -> Ipv4Addr {
        self.state.address
    }

    /// What is written down about it.
    pub(crate) fn state(&self) -> &NodeState {
        &self.state
    }

    /// Directory of the node on the host; in the node it is `/lab`.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Path on the host of a file in the node.
    pub fn path(&self, in_node: &str) -> Result<PathBuf> {
        Ok(PathBuf::from(format!("/proc/{}/root", self.init_pid()?)).join(in_node.trim_start_matches('/')))
    }

    /// Runs a command in the node and returns what it printed.
    pub async fn exec(&self, command: &[&str]) -> Result<String> {
        run_shown(&command.join(" "), self.command(command)?)
            .await
            .with_context(|| format!("on node {}", self.name()))
    }

    /// [`exec`](Self::exec) with text on standard input.
    pub async fn exec_with_input(&self, command: &[&str], input: &str) -> Result<String> {
        run_with_input(self.command(command)?, input)
            .await
            .with_context(|| format!("on node {}", self.name()))
    }

    /// A command that runs in the node, for those who want to hold its streams themselves.
    pub fn command(&self, command: &[&str]) -> Result<Command> {
        let mut shell = self.entering();
        // nsenter enters a cgroup namespace but no cgroup.
        let script = r#"for file in $LAB_CGROUPS; do echo $$ >"$file" || exit 1; done
            unset LAB_CGROUPS; init=$1; shift
            exec nsenter -t "$init" -m -u -i -n -p -C -r -w -- "$@""#;
        shell.args(["-c", script, "sh", &self.init_pid()?.to_string()]).args(command);
        let entries = Hierarchies::of_host()?.entries(&self.group);
        shell.env("LAB_CGROUPS", join_paths(&entries)?);
        Ok(shell)
    }

    /// Starts a component; its output is appended to its log.
    pub(crate) async fn spawn(&self, component: Component, argv: &[String]) -> Result<()> {
        if let Some(pid) = self.pid_of(component) {
            bail!("{component} already runs on node {} (process {pid})", self.name());
        }
        self.spawn_program(component.name(), argv).await
    }

    /// Starts a program that is no part of a cluster; its output is appended to the log of that name. It ends with the node.
    pub(crate) async fn spawn_program(&self, name: &str, argv: &[String]) -> Result<()> {
        let script = r#"exec >>"/lab/log/$0.log" 2>&1 </dev/null
            setsid "$@" &
            echo $! >"/lab/run/$0.pid""#;
        let mut command = vec!["sh", "-c", script, name];
        command.extend(argv.iter().map(String::as_str));
        self.exec(&command).await.with_context(|| format!("cannot start {name}"))?;
        Ok(())
    }

    /// The last lines of the log of a program that was started by its name.
    pub(crate) fn program_log_tail(&self, name: &str, lines: usize) -> String {
        tail(&self.dir.join("log").join(format!("{name}.log")), lines)
    }

    /// Fails with the end of its log if a program that was started by its name runs no longer.
    pub(crate) fn ensure_program_runs(&self, name: &str) -> Result<()> {
        ensure!(
            self.pid_of_program(name).is_some(),
            "{name} on node {} has ended; the end of its log:\n{}",
            self.name(),
            self.program_log_tail(name, 15)
        );
        Ok(())
    }

    /// Puts a program of the host into the node, as `/lab/NAME`.
    pub(crate) fn provide(&self, program: &Path, name: &str) -> Result<()> {
        let to = self.dir.join(name);
        if !to.exists() && fs::hard_link(program, &to).is_err() {
            fs::copy(program, &to).with_context(|| format!("cannot copy {}", program.display()))?;
        }
        Ok(())
    }

    /// The host's process id of a component, if it runs.
    pub fn pid_of(&self, component: Component) -> Option<u32> {
        self.pid_of_program(component.name())
    }

    fn pid_of_program(&self, name: &str) -> Option<u32> {
        let text = fs::read_to_string(self.dir.join("run").join(format!("{name}.pid"))).ok()?;
        process::host_pid(self.init_pid().ok()?, text.trim().parse().ok()?)
    }

    /// Whether a component answers connections; the error says why not.
    pub(crate) async fn listens(&self, component: Component) -> Result<()> {
        match component.port() {
            Some(port) => {
                let connect = TcpStream::connect((self.address(), port));
                tokio::time::timeout(Duration::from_secs(1), connect)
                    .await
                    .context("no answer within 1 s")??;
            }
            None => {
                UnixStream::connect(self.path(CONTAINERD_SOCKET)?).await?;
            }
        }
        Ok(())
    }

    /// Imports an image archive of the host into containerd.
    pub async fn load_image(&self, archive: &Path) -> Result<()> {
        let name = archive
            .file_name()
            .with_context(|| format!("{} is not a file", archive.display()))?
            .to_string_lossy()
            .into_owned();
        let copy = self.dir.join("run").join(&name);
        fs::copy(archive, &copy).with_context(|| format!("cannot read {}", archive.display()))?;
        let imported = self.import_image(&format!("/lab/run/{name}")).await;
        fs::remove_file(&copy).with_context(|| format!("cannot remove {}", copy.display()))?;
        imported
    }

    /// Imports an image archive that lies in the node.
    pub(crate) async fn import_image(&self, archive: &str) -> Result<()> {
        self.exec(&["ctr", "--namespace", "k8s.io", "images", "import", "--local", archive]).await?;
        Ok(())
    }

    /// Whether the node itself runs.
    pub fn is_running(&self) -> bool {
        self.init_pid().is_ok()
    }

    /// Resident memory in bytes of a component, if it runs.
    pub fn memory_of(&self, component: Component) -> Option<u64> {
        process::resident_bytes(self.pid_of(component)?)
    }

    /// Asks a component to end and ends it if it takes too long over it, as init systems do: an API server waits a
    /// minute for watches to go away.
    pub(crate) async fn stop(&self, component: Component) -> Result<()> {
        let process = self.running(component)?;
        self.signal(component, process, Signal::SIGTERM)?;
        if self.wait_until_gone(component, process, GRACE).await.is_err() {
            self.signal(component, process, Signal::SIGKILL)?;
        }
        self.wait_until_gone(component, process, END_LIMIT).await
    }

    /// Ends a component at once.
    pub(crate) async fn kill(&self, component: Component) -> Result<()> {
        let process = self.running(component)?;
        self.signal(component, process, Signal::SIGKILL)?;
        self.wait_until_gone(component, process, END_LIMIT).await
    }

    /// Ends everything on the node at once.
    pub(crate) async fn power_off(&self) -> Result<()> {
        let hierarchies = Hierarchies::of_host()?;
        hierarchies.thaw(&self.group);
        let pid = self.init_pid()?;
        kill(Pid::from_raw(pid.cast_signed()), Signal::SIGKILL)
            .with_context(|| format!("cannot end the first process {pid} of node {}", self.name()))?;
        let what = format!("everything on node {} has ended", self.name());
        until(&what, END_LIMIT, Duration::from_millis(10), async || {
            let left = hierarchies.processes(&self.group);
            Ok(if left.is_empty() { Seen::Ready(()) } else { Seen::NotYet(format!("processes {left:?}")) })
        })
        .await
    }

    /// Ends everything on the node, and removes its groups and its files.
    pub(crate) async fn remove(&self) -> Result<()> {
        if self.is_running() {
            self.power_off().await?;
        }
        let (group, dir) = (self.group.clone(), self.dir.clone());
        tokio::task::spawn_blocking(move || {
            Hierarchies::of_host()?.remove(&group, END_LIMIT)?;
            match fs::remove_dir_all(&dir) {
                Err(error) if error.kind() != ErrorKind::NotFound => {
                    Err(error).with_context(|| format!("cannot remove {}", dir.display()))
                }
                _ => Ok(()),
            }
        })
        .await?
    }

    /// Process id and start time of a running component.
    fn running(&self, component: Component) -> Result<(u32, u64)> {
        let running = self.pid_of(component).and_then(|pid| Some((pid, process::start_time(pid)?)));
        running.with_context(|| format!("{component} does not run on node {}", self.name()))
    }

    fn signal(&self, component: Component, (pid, _): (u32, u64), signal: Signal) -> Result<()> {
        match kill(Pid::from_raw(pid.cast_signed()), signal) {
            // It ended by itself meanwhile.
            Ok(()) | Err(Errno::ESRCH) => Ok(()),
            Err(error) => Err(error).with_context(|| {
                format!("cannot send {signal} to {component} (process {pid}) on node {}", self.name())
            }),
        }
    }

    /// Waits until the process was reaped: only then are the ports of all its threads free again.
    async fn wait_until_gone(
        &self,
        component: Component,
        (pid, start_time): (u32, u64),
        limit: Duration,
    ) -> Result<()> {
        let what = format!("{component} on node {} has ended", self.name());
        until(&what, limit, Duration::from_millis(10), async || {
            let there = process::start_time(pid) == Some(start_time);
            Ok(if there { Seen::NotYet(format!("process {pid} is still there")) } else { Seen::Ready(()) })
        })
        .await
    }

    /// File with the log of a component.
    pub fn log_file(&self, component: Component) -> PathBuf {
        self.dir.join("log").join(format!("{component}.log"))
    }

    /// The last lines of the log of a component.
    pub fn log_tail(&self, component: Component, lines: usize) -> String {
        tail(&self.log_file(component), lines)
    }

    /// The host's process id of the node's first process.
    pub(crate) fn init_pid(&self) -> Result<u32> {
        let file = self.dir.join("init.pid");
        let text = fs::read_to_string(&file).with_context(|| {
            format!("node {} was not started: cannot read {}", self.name(), file.display())
        })?;
        let pid = text.trim().parse().with_context(|| format!("{} holds no process id", file.display()))?;
        ensure!(
            process::may_be_of_lab(pid, &self.lab),
            "node {} no longer runs (its first process {pid} is gone)",
            self.name()
        );
        Ok(pid)
    }

    /// A shell with the environment that all processes of the node share.
    fn entering(&self) -> Command {
        let mut shell = Command::new("sh");
        shell.env_clear().env("PATH", PATH_IN_NODE).env("HOME", "/root").env(MARKER, &self.lab);
        shell.env("GOGC", HEAP_GROWS_BY);
        shell
    }
}

fn tail(file: &Path, lines: usize) -> String {
    match fs::read(file) {
        Err(error) => format!("({}: {error})", file.display()),
        Ok(bytes) => {
            let text = String::from_utf8_lossy(&bytes);
            let all: Vec<&str> = text.lines().collect();
            all[all.len().saturating_sub(lines)..].join("\n")
        }
    }
}

fn join_paths(paths: &[PathBuf]) -> Result<String> {
    let mut words = Vec::new();
    for path in paths {
        let word = path.to_str().filter(|word| !word.contains(char::is_whitespace));
        words.push(word.with_context(|| format!("the cgroup path {} has a space in it", path.display()))?);
    }
    Ok(words.join(" "))
}
