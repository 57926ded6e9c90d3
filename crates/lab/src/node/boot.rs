//! Starting a node: namespaces, file system, link to the switch, routes.

use std::fs;
use std::io::ErrorKind;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::time::Duration;

use anyhow::{Context, Result, bail};

use super::{Node, join_paths, tail};
use crate::cgroup::Hierarchies;
use crate::command::run;
use crate::state::{ClusterState, LabState};
use crate::switch;
use crate::wait::{Seen, until};

const BOOT_LIMIT: Duration = Duration::from_secs(120);
/// Seen gone at so many looks in a row, a node has not started.
const GONE_FOR_GOOD: u32 = 20;

/// Starts the node; when this returns, commands and components can run in it.
pub(crate) async fn boot(lab: &LabState, cluster: &ClusterState, node: &Node) -> Result<()> {
    for dir in ["etc", "log", "run", "root", "var"] {
        let dir = node.dir.join(dir);
        fs::create_dir_all(&dir).with_context(|| format!("cannot make {}", dir.display()))?;
    }
    // A node that was on before has left them.
    for mark in ["ready", "init.pid"] {
        match fs::remove_file(node.dir.join(mark)) {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                return Err(error).with_context(|| format!("cannot remove {mark} of node {}", node.name()));
            }
            _ => {}
        }
    }
    let script = node.dir.join("init.sh");
    fs::write(&script, include_str!("init.sh"))
        .with_context(|| format!("cannot write {}", script.display()))?;

    let hierarchies = Hierarchies::of_host()?;
    let entries = hierarchies.make(&node.group)?;
    let mut shell = node.entering();
    shell
        .args([
            "-c",
            r#"for file in $LAB_CGROUPS; do echo $$ >"$file" || exit 1; done
            unset LAB_CGROUPS
            setsid unshare --mount --net --pid --fork --kill-child --uts --ipc --cgroup --propagation private \
                sh "$LAB_NODE_DIR/init.sh" </dev/null >"$LAB_NODE_DIR/log/init.log" 2>&1 &"#,
        ])
        .env("LAB_CGROUPS", join_paths(&entries)?)
        .env("LAB_HIERARCHIES", hierarchies.mounts_in_node())
        .env("LAB_NODE", node.name())
        .env("LAB_NODE_DIR", &node.dir)
        .env("LAB_ROOT", &lab.root)
        .env("LAB_BIN", &lab.bin)
        .env("LAB_IMAGES", &lab.images);
    run(shell).await.with_context(|| format!("cannot start node {}", node.name()))?;

    let log = node.dir.join("log/init.log");
    // A process that is just replacing its program can look as if it were gone, for a moment.
    let looks_gone = AtomicU32::new(0);
    until(&format!("node {} has started", node.name()), BOOT_LIMIT, Duration::from_millis(10), async || {
        if node.dir.join("ready").exists() {
            return Ok(Seen::Ready(()));
        }
        let said = tail(&log, 5);
        let gone = node.dir.join("init.pid").exists() && !node.is_running();
        let times = if gone { looks_gone.load(Relaxed) + 1 } else { 0 };
        looks_gone.store(times, Relaxed);
        if times == GONE_FOR_GOOD {
            bail!("node {} did not start: {said}", node.name());
        }
        Ok(Seen::NotYet(said))
    })
    .await?;
    hierarchies.settle(&node.group)?;
    connect(lab, cluster, node).await
}

/// Links the node to the switch and tells it where the pods of the other nodes are.
async fn connect(lab: &LabState, cluster: &ClusterState, node: &Node) -> Result<()> {
    switch::plug(&node.lab, &node.state.port, node.init_pid()?).await?;
    let mut batch = format!(
        "link set lo up\naddr add {}/{} dev eth0\nlink set eth0 up\nroute add default via {}\n",
        node.address(),
        lab.subnet.prefix(),
        lab.subnet.address(2)?,
    );
    for other in cluster.nodes.iter().filter(|other| other.name != node.name()) {
        batch += &format!("route add {} via {}\n", other.pods, other.address);
    }
    node.exec_with_input(&["ip", "-batch", "-"], &batch).await?;
    // Pods keep their addresses among themselves and take the node's towards everybody else.
    let pods = cluster.pods;
    let rules = format!(
        "table ip lab {{\nchain postrouting {{\ntype nat hook postrouting priority srcnat + 10;\n\
         ip saddr {pods} ip daddr != {pods} masquerade\n}}\n}}\n"
    );
    node.exec_with_input(&["nft", "-f", "-"], &rules).await?;
    Ok(())
}
