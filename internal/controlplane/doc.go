// Package controlplane runs a real Kubernetes API for tests: etcd and
// kube-apiserver as processes of the test, on free ports of the loopback
// interface, with certificates of their own; on request kube-controller-manager
// and kube-scheduler too. It needs no privileges and no cluster.
//
// Their programs are built from the nested module tools/ when they are used for
// the first time, see [Ensure]. A package's tests share one control plane:
//
//	func TestMain(m *testing.M) { os.Exit(run(m)) }
//
//	func run(m *testing.M) int {
//		cluster, err := controlplane.Start(context.Background(), controlplane.Options{Progress: os.Stderr})
//		...
//		defer cluster.Stop()
//		return m.Run()
//	}
//
// It is ready in about three seconds and needs about 350 MiB of memory.
package controlplane
