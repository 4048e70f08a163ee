# Makes the node's own view of the file system, within its namespaces: $1 is the
# node's folder, $2 its name. Everything here ends with the node.
mount --make-rprivate /
mount --make-rshared /
mount -t proc proc /proc
echo "$2" > /proc/sys/kernel/hostname
mount -t tmpfs -o mode=0755 tmpfs /run
mkdir -p "$1/state" /var/lib/kubelet /var/log
# Container layers need a file system that an overlay can stand on, which the
# host's own may not be.
mount -t tmpfs -o mode=0755 tmpfs "$1/state"
mkdir "$1/state/kubelet" "$1/state/log" "$1/state/containerd"
mount --bind "$1/state/log" /var/log
mount --bind "$1/state/kubelet" /var/lib/kubelet
mount --make-rshared /var/lib/kubelet
mkdir -p /run/containerd /run/netns /var/log/pods /var/log/containers
echo 1 > /proc/sys/net/ipv4/ip_forward
# Distributions let everybody open it: what may be done with it is decided later.
mknod -m 0666 "$1/state/tun" c 10 200
mount --bind "$1/state/tun" /dev/net/tun
