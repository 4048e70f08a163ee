package main

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/go-logr/logr"
	"github.com/urfave/cli/v2"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/vmop/sdk/frontends/operator/controller"
	"github.com/vmop/sdk/vmop/operatorconfig"
	machinekind "github.com/vmop/sdk/vmop/reconcile/machine"
)

func readConfig(c *cli.Context, log logr.Logger) (operatorconfig.Config, error) {
	var config operatorconfig.Config
	for _, flag := range []string{flagFormerConfig, flagConfig} {
		file := c.Path(flag)
		if file == "" {
			continue
		}
		data, err := os.ReadFile(file)
		if flag == flagFormerConfig && errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return config, fmt.Errorf("configuration: %w", err)
		}
		var remarks operatorconfig.Remarks
		if config, remarks, err = operatorconfig.ParseOver(config, file, data); err != nil {
			return config, err
		}
		tell(log, remarks)
	}
	config, remarks, err := operatorconfig.ParseEnvironment(config, os.Environ())
	if err != nil {
		return config, err
	}
	tell(log, remarks)
	return config, nil
}

func tell(log logr.Logger, remarks operatorconfig.Remarks) {
	for _, w := range remarks.Warnings {
		log.Info("configuration: warning", "problem", w.String())
	}
	for _, n := range remarks.Notes {
		log.Info("configuration: note", "note", n.String())
	}
}

// readOptions reads the configuration file, the environment and the flags, in increasing
// precedence.
func readOptions(c *cli.Context, log logr.Logger) (controller.Options, error) {
	o := controller.Options{
		MetricsAddress: c.String(flagMetrics), ProbeAddress: c.String(flagProbes), Log: log,
	}
	configured, err := readConfig(c, log)
	if err != nil {
		return o, usageError{err}
	}
	o.Settings, o.Namespaces, o.Concurrency = configured.Settings, configured.Namespaces, configured.Concurrency
	o.Operations = configured.Operations
	if o.Settings.RunnerImage == "" {
		log.Info("configuration: warning", "problem", "there is no runnerImage: machines whose manifest names no image get VM-Operator's runner, which cannot run in their pods")
	}
	o.Settings.Version, o.Settings.Operator = version(), identity(ownToken)
	if c.IsSet(flagIdentity) {
		name := c.String(flagIdentity)
		if err := validIdentity(name); err != nil {
			return o, usageError{fmt.Errorf("--%s: found %q, %w", flagIdentity, name, err)}
		}
		o.Settings.Operator = name
	}
	if n := c.StringSlice(flagNamespace); len(n) > 0 {
		o.Namespaces = distinct(n)
	}
	o.Without = configured.ExcludeNamespaces
	if n := c.StringSlice(flagWithout); len(n) > 0 {
		o.Without = distinct(n)
	}
	if len(o.Namespaces) > 0 && len(o.Without) > 0 {
		return o, usageError{fmt.Errorf("--%s (excludeNamespaces in the configuration, VMOP_EXCLUDE_NAMESPACES): it cannot be combined with namespaces to look after, here %s; take one of the two", flagWithout, scope(o.Namespaces))}
	}
	for _, n := range slices.Concat(o.Namespaces, o.Without) {
		if errs := validation.IsDNS1123Label(n); len(errs) > 0 {
			return o, usageError{fmt.Errorf("namespace %q: %s", n, errs[0])}
		}
	}
	if o.Settings.ImageNamespace == "" {
		o.Settings.ImageNamespace = leaseNamespace("")
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

const ownToken = "/var/run/secrets/kubernetes.io/serviceaccount/token"

// maxIdentity limits the name of an operator, which occurs in messages.
const maxIdentity = 128

func validIdentity(name string) error {
	wrong := func(r rune) bool { return r <= ' ' || r > '~' }
	switch {
	case name == "" || len(name) > maxIdentity || strings.ContainsFunc(name, wrong):
		return fmt.Errorf("want 1 to %d printable ASCII characters without spaces, as in team/vm-operator", maxIdentity)
	case name == machinekind.FormerOperator:
		return errors.New("which is how VM-Operator's own operator is told of")
	}
	return nil
}

// identity distinguishes operators that feel responsible for the same machines: by service account,
// as in vmop-system/vmop-operator, so that all replicas are one, and outside of a cluster by host.
func identity(token string) string {
	if data, err := os.ReadFile(token); err == nil {
		var claims struct {
			Subject string `json:"sub"`
		}
		// The token is the operator's own, so its signature need not be verified.
		if parts := strings.Split(string(data), "."); len(parts) == 3 {
			if payload, err := base64.RawURLEncoding.DecodeString(parts[1]); err == nil && json.Unmarshal(payload, &claims) == nil {
				if account, is := strings.CutPrefix(claims.Subject, "system:serviceaccount:"); is {
					return strings.Replace(account, ":", "/", 1)
				}
			}
		}
	}
	name, err := os.Hostname()
	if err != nil {
		name = "unknown"
	}
	return "host/" + name
}

func scope(namespaces []string) string {
	if len(namespaces) == 0 {
		return "all"
	}
	return strings.Join(namespaces, ", ")
}

// leaseNamespace is that of the operator, or "default" outside of a cluster.
func leaseNamespace(given string) string {
	if given != "" {
		return given
	}
	if data, err := os.ReadFile(ownNamespace); err == nil {
		return strings.TrimSpace(string(data))
	}
	return "default"
}

const ownNamespace = "/var/run/secrets/kubernetes.io/serviceaccount/namespace"

func distinct(list []string) []string {
	list = slices.Clone(list)
	slices.Sort(list)
	return slices.Compact(list)
}
