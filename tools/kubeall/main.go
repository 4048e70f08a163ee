// Command kubeall is a whole Kubernetes cluster for tests in one program: etcd,
// the control plane and the node agents share one copy of what they are made of.
// The name that it is called by, or its first argument, says which of them it is:
//
//	kubeall kube-apiserver --help
//	ln -s kubeall kubelet && ./kubelet --version
package main

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"go.etcd.io/etcd/server/v3/etcdmain"
	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/logs/json/register"          // --logging-format=json
	_ "k8s.io/component-base/metrics/prometheus/clientgo" // metrics of the clients
	_ "k8s.io/component-base/metrics/prometheus/version"  // kubernetes_build_info
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	controllermanager "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	proxy "k8s.io/kubernetes/cmd/kube-proxy/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
	kubelet "k8s.io/kubernetes/cmd/kubelet/app"
)

const etcd = "etcd"

// commands are the components; etcd has no cobra command and stands apart.
var commands = map[string]func() *cobra.Command{
	"kube-apiserver":          apiserver.NewAPIServerCommand,
	"kube-controller-manager": controllermanager.NewControllerManagerCommand,
	"kube-proxy":              proxy.NewProxyCommand,
	"kube-scheduler":          func() *cobra.Command { return scheduler.NewSchedulerCommand() },
	"kubelet":                 func() *cobra.Command { return kubelet.NewKubeletCommand(context.Background()) },
}

func main() {
	name := filepath.Base(os.Args[0])
	if !known(name) {
		if len(os.Args) < 2 || !known(os.Args[1]) {
			names := append(slices.Collect(maps.Keys(commands)), etcd)
			slices.Sort(names)
			fmt.Fprintf(os.Stderr, "kubeall: the first argument, or the name of a link to this program, must be one of %s\n", strings.Join(names, ", "))
			os.Exit(2)
		}
		name = os.Args[1]
		os.Args = os.Args[1:]
	}
	if name == etcd {
		etcdmain.Main(os.Args)
		return
	}
	os.Exit(cli.Run(commands[name]()))
}

func known(name string) bool {
	_, ok := commands[name]
	return ok || name == etcd
}
