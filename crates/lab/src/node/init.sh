#!/bin/sh
# First process of a node, started in namespaces of its own: builds the node's file system, moves into it and then
# reaps what is orphaned there. When it dies, the kernel ends everything in the node and takes all mounts back.
#
# Given: LAB_NODE (name), LAB_NODE_DIR, LAB_ROOT (Debian root), LAB_BIN, LAB_IMAGES, LAB_HIERARCHIES (cgroup mounts).
set -eu

# /proc is still the host's, so this is the number by which the host knows this process.
read -r host_pid _ </proc/self/stat
echo "$host_pid" >"$LAB_NODE_DIR/init.pid.new"
mv "$LAB_NODE_DIR/init.pid.new" "$LAB_NODE_DIR/init.pid"

top=$LAB_NODE_DIR/root
mount -t tmpfs -o mode=0755 tmpfs "$top"
mkdir "$top/upper" "$top/work" "$top/merged"
mount -t overlay -o "lowerdir=$LAB_ROOT,upperdir=$top/upper,workdir=$top/work" overlay "$top/merged"
cd "$top/merged"
mkdir -p dev proc sys run mnt lab opt/lab/bin opt/lab/images

mount -t proc proc proc
mount -t sysfs sysfs sys
mount -t tmpfs -o mode=0755 tmpfs run
mkdir -p run/lock run/sysctl

mount -t tmpfs -o mode=0755,nosuid tmpfs dev
mkdir dev/pts dev/shm dev/mqueue dev/net
for device in null zero full random urandom tty kmsg fuse; do
    if [ -e "/dev/$device" ]; then cp -a "/dev/$device" "dev/$device"; fi
done
mknod -m 0666 dev/net/tun c 10 200
mount -t devpts -o newinstance,ptmxmode=0666,mode=0620,gid=5 devpts dev/pts
mount -t tmpfs -o nosuid,nodev tmpfs dev/shm
mount -t mqueue mqueue dev/mqueue
ln -s pts/ptmx dev/ptmx
ln -s /proc/self/fd dev/fd
ln -s fd/0 dev/stdin
ln -s fd/1 dev/stdout
ln -s fd/2 dev/stderr

if [ "$LAB_HIERARCHIES" = v2 ]; then
    mount -t cgroup2 cgroup2 sys/fs/cgroup
else
    mount -t tmpfs -o mode=0755 tmpfs sys/fs/cgroup
    for hierarchy in $LAB_HIERARCHIES; do
        mkdir "sys/fs/cgroup/${hierarchy%%:*}"
        mount -t cgroup -o "${hierarchy#*:}" cgroup "sys/fs/cgroup/${hierarchy%%:*}"
    done
fi

# Their files are too many, or too much of an overlay themselves, for the node's root.
for dir in containerd kubelet etcd; do
    mkdir -p "var/lib/$dir" "$LAB_NODE_DIR/var/$dir"
    mount --bind "$LAB_NODE_DIR/var/$dir" "var/lib/$dir"
done
mkdir -p var/log/pods "$LAB_NODE_DIR/var/pods"
mount --bind "$LAB_NODE_DIR/var/pods" var/log/pods
mount --bind "$LAB_NODE_DIR" lab
mount --bind -o ro "$LAB_BIN" opt/lab/bin
mount --bind -o ro "$LAB_IMAGES" opt/lab/images

# The kubelet sets these to its liking, for the whole machine. It sees what it wants to see, and the machine's stay.
cover() {
    if [ -e "proc/sys/$1" ]; then
        file=run/sysctl/$(echo "$1" | tr / .)
        echo "$2" >"$file"
        mount --bind "$file" "proc/sys/$1"
    fi
}
cover vm/overcommit_memory 1
cover vm/panic_on_oom 0
cover kernel/panic 10
cover kernel/panic_on_oops 1
cover kernel/keys/root_maxkeys 1000000
cover kernel/keys/root_maxbytes 25000000

echo "$LAB_NODE" >proc/sys/kernel/hostname
echo "$LAB_NODE" >etc/hostname
printf '127.0.0.1 localhost\n127.0.1.1 %s\n' "$LAB_NODE" >etc/hosts
: >etc/resolv.conf
rm -f etc/machine-id
tr -d - <proc/sys/kernel/random/uuid >etc/machine-id
echo 1 >proc/sys/net/ipv4/ip_forward
# Replies between pods behind one bridge must pass through netfilter, which translated their service's address.
echo 1 >proc/sys/net/bridge/bridge-nf-call-iptables

pivot_root . mnt
cd /
umount -l /mnt
mount --make-rshared /
exec /bin/sh -c 'echo ready >/lab/ready.new && mv /lab/ready.new /lab/ready; while :; do sleep 86400 & wait; done'
