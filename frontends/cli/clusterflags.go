package main

import (
	"github.com/urfave/cli/v2"
)

// clusterFlags are kubectl's, for commands that only a cluster has.
func clusterFlags(flags ...cli.Flag) []cli.Flag {
	return append([]cli.Flag{
		&cli.StringFlag{Name: "namespace", Aliases: []string{"n"}, Usage: "the `NAMESPACE` of the machine, which NAME can also say as NAMESPACE/NAME (default: the context's)"},
		&cli.StringFlag{Name: "kubeconfig", Usage: "`FILE` that describes the cluster (default: $KUBECONFIG or ~/.kube/config)"},
		&cli.StringFlag{Name: "context", Usage: "`NAME` of the context in it (default: the current one)"},
		// Other commands need it, so it is accepted here, too.
		&cli.BoolFlag{Name: "cluster", Hidden: true, DisableDefaultText: true},
	}, flags...)
}

// eitherFlags are for commands that work with machines of this host or of a cluster.
func eitherFlags(flags ...cli.Flag) []cli.Flag {
	return append(flags,
		&cli.BoolFlag{Name: "cluster", Usage: "in the cluster of the current context instead of this host", DisableDefaultText: true},
		&cli.StringFlag{Name: "kubeconfig", Usage: "in the cluster that `FILE` describes"},
		&cli.StringFlag{Name: "context", Usage: "in the cluster of this context, by `NAME`"},
	)
}

// inCluster reports whether a command with eitherFlags refers to a cluster. An environment variable
// alone never does: the same command would stop another machine.
func inCluster(c *cli.Context) bool {
	return c.Bool("cluster") || c.String("kubeconfig") != "" || c.String("context") != ""
}
