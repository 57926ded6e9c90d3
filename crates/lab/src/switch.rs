//! The network between nodes: a bridge in a namespace of its own, and one link from the host into it.
//!
//! The namespace has no name; it lives as long as the process that keeps it, and all links die with it.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, ensure};

use crate::cidr::Cidr;
use crate::command::{run, run_blocking, run_with_input};
use crate::process::{self, MARKER};
use crate::state::{self, LabState, Traces};
use crate::wait::{Seen, until};

/// All labs of the machine share this range, which is reserved for tests of network devices (RFC 2544).
const ALL_LABS: &str = "198.18.0.0/15";
const PREFIX: u8 = 20;
const LABS: u32 = 32;

/// Addresses in a lab's range that belong to one cluster.
pub(crate) const PER_CLUSTER: u32 = 64;
/// How many clusters a lab's range has room for: the first share belongs to the host and the switch.
pub(crate) const MAX_CLUSTERS: u32 = (1 << (32 - PREFIX)) / PER_CLUSTER - 1;
/// How many nodes of one cluster a lab's range has room for.
pub(crate) const MAX_NODES: u32 = PER_CLUSTER - 2;

const KEEPER_PID: &str = "switch.pid";

/// Chooses a number and a range that neither another lab nor the host uses. Call it under [`state::lock`].
pub(crate) async fn choose_slot() -> Result<(u32, Cidr)> {
    let routes = host_routes().await?;
    let links = run(ip(&["-o", "link", "show"])).await?;
    let mut used = Vec::new();
    for name in state::names()? {
        used.extend(Traces::read(&name)?.map(|traces| traces.slot));
    }
    let all: Cidr = ALL_LABS.parse()?;
    for slot in 0..LABS {
        let subnet = all.subnet(PREFIX, slot)?;
        let link_taken =
            links.contains(&format!(": plab{slot}@")) || links.contains(&format!(": plab{slot}:"));
        if !used.contains(&slot) && !link_taken && !routes.iter().any(|route| route.overlaps(&subnet)) {
            return Ok((slot, subnet));
        }
    }
    anyhow::bail!(
        "no room for another lab: all {LABS} ranges of {ALL_LABS} are used by labs ({}) or by routes of this host; \
         `cargo xtask lab down NAME` frees one",
        state::names()?.join(", ")
    )
}

/// Destinations the host has routes for, but the default one.
async fn host_routes() -> Result<Vec<Cidr>> {
    let listed = run(ip(&["-4", "-o", "route", "show", "table", "all"])).await?;
    Ok(listed.lines().filter_map(destination).collect())
}

fn destination(route: &str) -> Option<Cidr> {
    let kinds =
        ["unicast", "local", "broadcast", "blackhole", "unreachable", "prohibit", "throw", "multicast"];
    let word = route.split_whitespace().find(|word| !kinds.contains(word))?;
    let word = if word.contains('/') { word.to_owned() } else { format!("{word}/32") };
    word.parse().ok().filter(|range: &Cidr| range.prefix() > 0)
}

/// Makes the switch and the host's link to it.
pub(crate) async fn start(lab: &LabState) -> Result<()> {
    let dir = lab.dir()?;
    let script = format!(
        "setsid unshare --net sh -c 'echo $$ >{KEEPER_PID}.new && mv {KEEPER_PID}.new {KEEPER_PID} && exec sleep infinity' \
         </dev/null >/dev/null 2>&1 &"
    );
    let mut keeper = Command::new("sh");
    keeper.args(["-c", &script]).current_dir(&dir).env(MARKER, &dir);
    run(keeper).await?;
    let pid = until(
        "the switch's namespace exists",
        Duration::from_secs(60),
        Duration::from_millis(5),
        async || {
            Ok(match keeper_pid(&dir) {
                Ok(pid) => Seen::Ready(pid),
                Err(error) => Seen::NotYet(format!("{error:#}")),
            })
        },
    )
    .await?;

    let link = lab.traces().host_link();
    let inside = format!(
        "link set lo up\nlink add br0 type bridge forward_delay 0\nlink set host master br0\nlink set host up\n\
         addr add {}/{PREFIX} dev br0\nlink set br0 up\n",
        lab.subnet.address(2)?
    );
    let outside = format!("addr add {}/{PREFIX} dev {link}\nlink set {link} up\n", lab.host_address()?);
    run(ip(&["link", "add", &link, "type", "veth", "peer", "name", "host", "netns", &pid.to_string()]))
        .await?;
    run_with_input(in_switch(pid, &["ip", "-batch", "-"]), &inside).await?;
    run_with_input(ip(&["-batch", "-"]), &outside).await?;
    Ok(())
}

/// Gives the network namespace of process `node` a link `eth0` to the switch; `port` is its other end.
pub(crate) async fn plug(dir: &Path, port: &str, node: u32) -> Result<()> {
    let add = format!(
        "link add {port} type veth peer name eth0 netns {node}\nlink set {port} master br0\nlink set {port} up\n"
    );
    run_with_input(in_switch(keeper_pid(dir)?, &["ip", "-batch", "-"]), &add).await?;
    Ok(())
}

/// The ports of all nodes that are linked to the switch: that of a node goes with its network namespace.
pub(crate) async fn ports(dir: &Path) -> Result<Vec<String>> {
    let listed = run(in_switch(keeper_pid(dir)?, &["ip", "-o", "link", "show", "master", "br0"])).await?;
    let names =
        listed.lines().filter_map(|line| line.split([':', '@']).nth(1)).map(|name| name.trim().to_owned());
    Ok(names.filter(|name| name != "host").collect())
}

/// Drops all packets between each of the pairs of sets of ports, both ways, and nothing else.
pub(crate) async fn set_cuts(lab: &LabState, cuts: &[(Vec<String>, Vec<String>)]) -> Result<()> {
    let mut rules = String::new();
    for (a, b) in cuts {
        let (a, b) = (a.join(", "), b.join(", "));
        rules +=
            &format!("iifname {{ {a} }} oifname {{ {b} }} drop\niifname {{ {b} }} oifname {{ {a} }} drop\n");
    }
    // One transaction: the table is made if it is missing, emptied, and filled again.
    let table = format!(
        "table bridge cuts\ndelete table bridge cuts\ntable bridge cuts {{\nchain forward {{\n\
         type filter hook forward priority 0;\n{rules}}}\n}}\n"
    );
    let pid = keeper_pid(&lab.dir()?)?;
    let root = lab.root.to_string_lossy();
    run_with_input(in_switch(pid, &["chroot", root.as_ref(), "/usr/sbin/nft", "-f", "-"]), &table).await?;
    Ok(())
}

/// Removes the host's link, if it is there.
pub(crate) fn remove_host_link(link: &str) -> Result<()> {
    let exists = || Path::new("/sys/class/net").join(link).exists();
    if exists()
        && let Err(error) = run_blocking(ip(&["link", "del", link]))
        && exists()
    {
        return Err(error);
    }
    Ok(())
}

fn keeper_pid(dir: &Path) -> Result<u32> {
    let file = dir.join(KEEPER_PID);
    let text = std::fs::read_to_string(&file).with_context(|| format!("cannot read {}", file.display()))?;
    let pid = text.trim().parse().with_context(|| format!("{} holds no process id", file.display()))?;
    ensure!(process::is_running(pid), "the process {pid} that keeps the switch of the lab no longer runs");
    Ok(pid)
}

fn in_switch(pid: u32, command: &[&str]) -> Command {
    let mut nsenter = Command::new("nsenter");
    nsenter.args(["-t", &pid.to_string(), "-n", "--"]).args(command);
    nsenter
}

fn ip(args: &[&str]) -> Command {
    let mut command = Command::new("ip");
    command.args(args);
    command
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn destinations_of_routes() {
        let of = |line| destination(line).map(|range| range.to_string());
        assert_eq!(of("192.0.2.0/24 dev eth0 proto kernel scope link"), Some("192.0.2.0/24".into()));
        assert_eq!(of("local 127.0.0.1 dev lo table local"), Some("127.0.0.1/32".into()));
        assert_eq!(of("blackhole 10.0.0.0/8"), Some("10.0.0.0/8".into()));
        assert_eq!(of("default via 192.0.2.1 dev eth0"), None);
    }

    #[test]
    fn labs_fill_their_common_range_exactly() {
        let all: Cidr = ALL_LABS.parse().unwrap();
        assert!(all.subnet(PREFIX, LABS - 1).is_ok());
        assert!(all.subnet(PREFIX, LABS).is_err());
        assert_eq!((MAX_CLUSTERS, MAX_NODES), (63, 62));
    }
}
