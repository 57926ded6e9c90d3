//! etcd, kube-apiserver, kube-controller-manager, kube-scheduler and kwok.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use anyhow::{Context, Result};
use rcgen::KeyPair;
use serde_json::json;

use super::words;
use crate::node::Node;
use crate::pki::{Authority, Identity};
use crate::state::ClusterState;

/// Where the API server keeps its audit log, in the node.
pub(crate) const AUDIT_LOG: &str = "/lab/log/audit.log";

/// Writes keys, certificates and configuration of the control plane into the first node; returns the administrator's
/// kubeconfig.
pub(crate) fn write_control_plane_files(
    cluster: &ClusterState,
    node: &Node,
    ca: &Authority,
) -> Result<String> {
    let etc = node.dir().join("etc");
    let front = Authority::new(&format!("{}-front-proxy", cluster.name))?;
    let service_accounts = KeyPair::generate().context("cannot make a key for service accounts")?;
    let server = ca.server(
        "kube-apiserver",
        None,
        &[
            "kubernetes",
            "kubernetes.default",
            "kubernetes.default.svc",
            "kubernetes.default.svc.cluster.local",
            "localhost",
        ],
        &[node.address(), cluster.services.address(1)?, [127, 0, 0, 1].into()],
    )?;
    write(&etc.join("ca.crt"), &ca.certificate)?;
    write(&etc.join("ca.key"), &ca.key)?;
    write(&etc.join("front-proxy-ca.crt"), &front.certificate)?;
    write_identity(&etc, "front-proxy-client", &front.client("front-proxy-client", None)?)?;
    write_identity(&etc, "apiserver", &server)?;
    write_identity(
        &etc,
        "apiserver-kubelet-client",
        &ca.client("kube-apiserver-kubelet-client", Some("system:masters"))?,
    )?;
    write(&etc.join("service-accounts.key"), &service_accounts.serialize_pem())?;
    write(&etc.join("service-accounts.pub"), &service_accounts.public_key_pem())?;

    let local = "https://127.0.0.1:6443";
    for user in ["kube-controller-manager", "kube-scheduler"] {
        let identity = ca.client(&format!("system:{user}"), None)?;
        write(&etc.join(format!("{user}.kubeconfig")), &ca.kubeconfig(&cluster.name, local, &identity)?)?;
    }
    let admin = ca.client("kubernetes-admin", Some("system:masters"))?;
    write(&etc.join("admin.kubeconfig"), &ca.kubeconfig(&cluster.name, local, &admin)?)?;
    let scheduler = json!({
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "leaderElection": { "leaderElect": false },
        "clientConnection": { "kubeconfig": "/lab/etc/kube-scheduler.kubeconfig", "qps": 1000, "burst": 1000 },
    });
    write(&etc.join("kube-scheduler.json"), &scheduler.to_string())?;
    let audit = json!({
        "apiVersion": "audit.k8s.io/v1",
        "kind": "Policy",
        "omitStages": ["RequestReceived"],
        "rules": [{ "level": "Metadata" }],
    });
    write(&etc.join("audit-policy.json"), &audit.to_string())?;
    ca.kubeconfig(&cluster.name, &format!("https://{}:6443", node.address()), &admin)
}

pub(super) fn etcd(node: &Node) -> Vec<String> {
    let flags = [
        "/usr/bin/etcd".to_owned(),
        "--data-dir=/var/lib/etcd".to_owned(),
        // What is lost when the machine loses power is a lab.
        "--unsafe-no-fsync".to_owned(),
        "--backend-batch-interval=1s".to_owned(),
        // There is no other to tell that it lives.
        "--heartbeat-interval=500".to_owned(),
        "--election-timeout=5000".to_owned(),
        "--listen-client-urls=http://127.0.0.1:2379".to_owned(),
        "--advertise-client-urls=http://127.0.0.1:2379".to_owned(),
        "--listen-peer-urls=http://127.0.0.1:2380".to_owned(),
        format!("--listen-metrics-urls=http://{}:2381", node.address()),
        "--log-level=warn".to_owned(),
    ];
    flags.to_vec()
}

pub(super) fn api_server(cluster: &ClusterState, node: &Node) -> Vec<String> {
    let etc = "/lab/etc";
    let audit =
        [format!("--audit-policy-file={etc}/audit-policy.json"), format!("--audit-log-path={AUDIT_LOG}")];
    let mut words = words(
        "kube-apiserver",
        &[
            format!("--advertise-address={}", node.address()),
            "--secure-port=6443".to_owned(),
            "--etcd-servers=http://127.0.0.1:2379".to_owned(),
            format!("--service-cluster-ip-range={}", cluster.services),
            format!("--client-ca-file={etc}/ca.crt"),
            format!("--tls-cert-file={etc}/apiserver.crt"),
            format!("--tls-private-key-file={etc}/apiserver.key"),
            format!("--kubelet-certificate-authority={etc}/ca.crt"),
            format!("--kubelet-client-certificate={etc}/apiserver-kubelet-client.crt"),
            format!("--kubelet-client-key={etc}/apiserver-kubelet-client.key"),
            "--kubelet-preferred-address-types=InternalIP".to_owned(),
            format!("--requestheader-client-ca-file={etc}/front-proxy-ca.crt"),
            "--requestheader-allowed-names=front-proxy-client".to_owned(),
            "--requestheader-extra-headers-prefix=X-Remote-Extra-".to_owned(),
            "--requestheader-group-headers=X-Remote-Group".to_owned(),
            "--requestheader-username-headers=X-Remote-User".to_owned(),
            format!("--proxy-client-cert-file={etc}/front-proxy-client.crt"),
            format!("--proxy-client-key-file={etc}/front-proxy-client.key"),
            "--service-account-issuer=https://kubernetes.default.svc.cluster.local".to_owned(),
            format!("--service-account-key-file={etc}/service-accounts.pub"),
            format!("--service-account-signing-key-file={etc}/service-accounts.key"),
            "--authorization-mode=Node,RBAC".to_owned(),
            "--enable-admission-plugins=NodeRestriction".to_owned(),
            "--enable-bootstrap-token-auth".to_owned(),
            "--allow-privileged".to_owned(),
        ],
    );
    if cluster.audit {
        words.extend(audit);
    }
    words
}

pub(super) fn controller_manager(cluster: &ClusterState) -> Vec<String> {
    let etc = "/lab/etc";
    let mut flags = vec![
        format!("--kubeconfig={etc}/kube-controller-manager.kubeconfig"),
        format!("--authentication-kubeconfig={etc}/kube-controller-manager.kubeconfig"),
        format!("--authorization-kubeconfig={etc}/kube-controller-manager.kubeconfig"),
        "--leader-elect=false".to_owned(),
        "--use-service-account-credentials".to_owned(),
        "--controllers=*,bootstrap-signer-controller,token-cleaner-controller".to_owned(),
        format!("--service-account-private-key-file={etc}/service-accounts.key"),
        format!("--root-ca-file={etc}/ca.crt"),
        format!("--cluster-signing-cert-file={etc}/ca.crt"),
        format!("--cluster-signing-key-file={etc}/ca.key"),
        // The lab gives each node its pods' addresses before the node exists.
        "--allocate-node-cidrs=false".to_owned(),
        format!("--cluster-cidr={}", cluster.pods),
        format!("--service-cluster-ip-range={}", cluster.services),
        "--kube-api-qps=1000".to_owned(),
        "--kube-api-burst=1000".to_owned(),
    ];
    if let Some(seconds) = cluster.silence {
        flags.push(format!("--node-monitor-grace-period={seconds}s"));
        flags.push("--node-monitor-period=1s".to_owned());
    }
    words("kube-controller-manager", &flags)
}

pub(super) fn scheduler() -> Vec<String> {
    words(
        "kube-scheduler",
        &[
            "--config=/lab/etc/kube-scheduler.json".to_owned(),
            "--authentication-kubeconfig=/lab/etc/kube-scheduler.kubeconfig".to_owned(),
            "--authorization-kubeconfig=/lab/etc/kube-scheduler.kubeconfig".to_owned(),
        ],
    )
}

/// kwok simulates the nodes that say so in an annotation, and leaves real ones alone.
pub(super) fn kwok(node: &Node) -> Result<Vec<String>> {
    let mut flags = vec![
        "--kubeconfig=/lab/etc/admin.kubeconfig".to_owned(),
        format!("--manage-nodes-with-annotation-selector={}", crate::kwok::ANNOTATION),
        format!("--node-ip={}", node.address()),
        "--server-address=0.0.0.0:10247".to_owned(),
        "--node-lease-duration-seconds=40".to_owned(),
    ];
    let stages = node.dir().join("etc/kwok");
    let mut files = Vec::new();
    for entry in fs::read_dir(&stages).with_context(|| format!("cannot read {}", stages.display()))? {
        files.push(entry?.file_name().to_string_lossy().into_owned());
    }
    files.sort();
    flags.extend(files.iter().map(|file| format!("--config=/lab/etc/kwok/{file}")));
    Ok(words("kwok", &flags))
}

pub(crate) fn write_identity(etc: &Path, name: &str, identity: &Identity) -> Result<()> {
    write(&etc.join(format!("{name}.crt")), &identity.certificate)?;
    write(&etc.join(format!("{name}.key")), &identity.key)
}

/// Writes a file that only root may read: most of them hold keys.
pub(super) fn write(path: &Path, text: &str) -> Result<()> {
    fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))?;
    fs::set_permissions(path, fs::Permissions::from_mode(0o600))
        .with_context(|| format!("cannot set the mode of {}", path.display()))
}
