package main

import (
	"fmt"
	"os"

	"github.com/go-logr/logr"
	"github.com/urfave/cli/v2"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/vmop/sdk/frontends/operator/config"
	"github.com/vmop/sdk/frontends/operator/controller"
)

// readOptions reads the configuration file and the flags, which win over it.
func readOptions(c *cli.Context, log logr.Logger) (controller.Options, error) {
	o := controller.Options{
		MetricsAddress: c.String(flagMetrics), ProbeAddress: c.String(flagProbes), Log: log,
	}
	if file := c.Path(flagConfig); file != "" {
		data, err := os.ReadFile(file)
		if err != nil {
			return o, usageError{fmt.Errorf("configuration: %w", err)}
		}
		parsed, remarks, err := config.Parse(file, data)
		if err != nil {
			return o, usageError{err}
		}
		for _, w := range remarks.Warnings {
			log.Info("configuration: warning", "problem", w.String())
		}
		for _, n := range remarks.Notes {
			log.Info("configuration: note", "note", n.String())
		}
		o.Settings, o.Namespaces, o.Concurrency = parsed.Settings, parsed.Namespaces, parsed.Concurrency
	}
	o.Settings.Version = version()
	if n := c.StringSlice(flagNamespace); len(n) > 0 {
		o.Namespaces = distinct(n)
	}
	for _, n := range o.Namespaces {
		if errs := validation.IsDNS1123Label(n); len(errs) > 0 {
			return o, usageError{fmt.Errorf("namespace %q: %s", n, errs[0])}
		}
	}
	if c.IsSet(flagConcurrency) {
		if o.Concurrency = c.Int(flagConcurrency); o.Concurrency < 1 {
			return o, usageError{fmt.Errorf("--%s: found %d, want at least 1", flagConcurrency, o.Concurrency)}
		}
	}
	if c.Bool(flagElect) {
		o.LeaderElection = &controller.LeaderElection{Namespace: leaseNamespace(c.String(flagLeaseSpace)), Name: c.String(flagLease)}
	}
	return o, nil
}
