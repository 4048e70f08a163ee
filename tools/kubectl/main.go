// Command kubectl is kubectl alone, for tests, which call it some thousand times. As a part of
// kubeall it would prepare, each time, what the others need.
package main

import (
	"os"

	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/metrics/prometheus/clientgo" // as kubectl's own main has it
	"k8s.io/kubectl/pkg/cmd"
)

func main() { os.Exit(cli.Run(cmd.NewDefaultKubectlCommand())) }
