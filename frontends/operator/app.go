package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"os"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/go-logr/logr"
	"github.com/urfave/cli/v2"
	"k8s.io/klog/v2"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/vmop/sdk/frontends/operator/controller"
	"github.com/vmop/sdk/vmop/operatorconfig"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

const (
	exitOK    = 0
	exitError = 1
	exitUsage = 2
)

// Main runs the program, with its name in args[0], until the context ends, and returns the exit
// code.
func Main(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	if err := app(stdout, stderr).RunContext(ctx, args); err != nil {
		fmt.Fprintf(stderr, "vm-operator: %v\n", err)
		if errors.As(err, new(usageError)) {
			return exitUsage
		}
		return exitError
	}
	return exitOK
}

func app(stdout, stderr io.Writer) *cli.App {
	return &cli.App{
		Name:      "vm-operator",
		Usage:     "look after the virtual machines of a Kubernetes cluster",
		UsageText: "vm-operator [flags]",
		Description: "Runs until TERM or INT. Exit codes: 0 it was asked to end, 1 it cannot go on,\n2 wrong usage or configuration. Options of the configuration file can be given as\nenvironment variables too: " +
			strings.Join(slices.Sorted(maps.Keys(operatorconfig.Variables())), ", ") + ".",
		HideHelpCommand: true,
		HideVersion:     true,
		Writer:          stdout,
		ErrWriter:       stderr,
		ExitErrHandler:  func(*cli.Context, error) {},
		OnUsageError: func(_ *cli.Context, err error, _ bool) error {
			return usageError{fmt.Errorf("%w\nSee: vm-operator --help", err)}
		},
		Flags: []cli.Flag{
			&cli.PathFlag{Name: flagConfig, Aliases: []string{"c"}, Usage: "read the configuration `FILE`; VM-Operator's is understood"},
			&cli.PathFlag{Name: flagFormerConfig, Usage: "read VM-Operator's own configuration `FILE` first, if it exists; --config wins over it"},
			&cli.PathFlag{Name: flagKubeconfig, Usage: "connect as `FILE` says, default: $KUBECONFIG, the pod's service account or ~/.kube/config"},
			&cli.StringSliceFlag{Name: flagNamespace, Aliases: []string{"n"}, Usage: "look after the machines of `NAMESPACE` only; can be given more than once; wins over the configuration file"},
			&cli.StringSliceFlag{Name: flagWithout, Usage: "look after the machines of all namespaces but `NAMESPACE`; can be given more than once, but not beside namespaces to look after"},
			&cli.StringFlag{Name: flagMetrics, Value: ":8080", Usage: "serve Prometheus metrics at `ADDRESS`/metrics; 0 for not at all"},
			&cli.StringFlag{Name: flagProbes, Value: ":8081", Usage: "serve /healthz and /readyz at `ADDRESS`; 0 for not at all"},
			&cli.BoolFlag{Name: flagElect, Usage: "of several operators let one work and the others wait"},
			&cli.StringFlag{Name: flagLease, Value: "vm-operator.vmoperator.jdrupes.org", Usage: "`NAME` of the lease by which they agree"},
			&cli.StringFlag{Name: flagLeaseSpace, Usage: "`NAMESPACE` of the lease, default: the operator's own"},
			&cli.StringFlag{Name: flagIdentity, Usage: "be `NAME` to other operators that look after the same machines, as in team/vm-operator; replicas of one are one. default: the namespace and name of the service account, outside of a pod host/ and the host's name"},
			&cli.IntFlag{Name: flagConcurrency, Usage: fmt.Sprintf("reconcile `N` machines at the same time, default: %d; wins over the configuration file", controller.DefaultConcurrency)},
			&cli.Float64Flag{Name: flagQPS, Value: -1, Usage: "send at most `N` requests per second to the API server, which itself sees to it that nobody asks too much; negative for no limit"},
			&cli.IntFlag{Name: flagBurst, Value: 100, Usage: "with a limit, `N` requests may follow each other without delay"},
			&cli.StringFlag{Name: flagLogFormat, Value: "text", Usage: "log as `FORMAT`: text or json"},
			&cli.BoolFlag{Name: flagVerbose, Aliases: []string{"v"}, Usage: "log every write"},
			&cli.BoolFlag{Name: flagVersion, Usage: "print the version and end", DisableDefaultText: true},
		},
		Action: func(c *cli.Context) error { return run(c, stdout, stderr) },
	}
}

func run(c *cli.Context, stdout, stderr io.Writer) error {
	if c.Bool(flagVersion) || c.NArg() == 1 && c.Args().First() == flagVersion {
		_, err := fmt.Fprintln(stdout, "vm-operator", version())
		return err
	}
	if c.NArg() > 0 {
		return usageError{fmt.Errorf("unexpected argument %q\nSee: vm-operator --help", c.Args().First())}
	}
	log, err := logger(c, stderr)
	if err != nil {
		return err
	}
	options, err := readOptions(c, log)
	if err != nil {
		return err
	}
	config, err := clusterConfig(c)
	if err != nil {
		return err
	}
	options.Quiet = debug.FreeOSMemory
	o, err := controller.New(config, options)
	if err != nil {
		return err
	}
	controllers, clients := o.Logs()
	ctrllog.SetLogger(controllers)
	klog.SetLogger(clients)
	if os.Getenv("GOGC") == "" { // takes precedence over the default
		debug.SetGCPercent(controller.GCPercent)
	}
	log.Info("starting", "version", options.Settings.Version, "namespaces", scope(options.Namespaces), "without", strings.Join(options.Without, ", "), "leaderElection", options.LeaderElection != nil)
	if err := o.Start(c.Context); err != nil {
		return err
	}
	log.Info("ended")
	return nil
}

func logger(c *cli.Context, stderr io.Writer) (logr.Logger, error) {
	o := &slog.HandlerOptions{Level: slog.LevelInfo}
	if c.Bool(flagVerbose) {
		o.Level = slog.Level(-1) // logr's V(1); higher levels are the client's details
	}
	switch format := c.String(flagLogFormat); format {
	case "text":
		return logr.FromSlogHandler(slog.NewTextHandler(stderr, o)), nil
	case "json":
		return logr.FromSlogHandler(slog.NewJSONHandler(stderr, o)), nil
	default:
		return logr.Logger{}, usageError{fmt.Errorf("--%s: found %q, want text or json", flagLogFormat, format)}
	}
}

func clusterConfig(c *cli.Context) (*rest.Config, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = c.Path(flagKubeconfig)
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, nil).ClientConfig()
	if err != nil {
		return nil, usageError{fmt.Errorf("kubeconfig: %w", err)}
	}
	config.QPS, config.Burst = float32(c.Float64(flagQPS)), c.Int(flagBurst)
	config.UserAgent = "vm-operator/" + version()
	return config, nil
}
