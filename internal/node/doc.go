// Package node runs one real Kubernetes node for tests: the control plane of
// package controlplane, and containerd, kubelet and kube-proxy in namespaces of
// their own, with pods that are reached from the test by their addresses. It
// needs root, Linux and a few packages, see [Check].
//
//	n, err := node.Start(ctx, node.Options{Progress: os.Stderr})
//	...
//	defer n.Stop()
//	err = n.Import(ctx, image)
//	out, err := n.Kubectl(ctx, "apply", "-f", "pod.yaml")
//
// # What it touches
//
// The node is a process with its own mount, network, process, host name and IPC
// namespaces. Its mounts, its firewall and its processes end with it, and it
// ends with the test, however the test ends. Outside of the namespaces there are
// a network interface and a route to the pods, which the kernel removes with the
// namespace, and control groups, loop devices and a folder, which the next start
// removes if the test could not. Several tests may have a node at the same time:
// each takes a slot, by which interface, addresses, control groups and folder
// are called.
//
// # Volumes
//
// A storage class of [Node.AddStorageClass] provisions a volume for every claim: a loop device
// for a block volume, a folder for a file system. A class may have an image with which new
// block volumes begin. Volumes grow with their claims.
//
// [Node.StartCSI] adds a CSI driver, with the usual sidecars, for clones and snapshots.
package node
