package main

import (
	buildversion "github.com/vmop/sdk/internal/version"
)

const (
	flagConfig = "config"
	// flagFormerConfig names VM-Operator's own file, of a cluster that is taken over.
	flagFormerConfig = "vm-operator-config"
	flagKubeconfig   = "kubeconfig"
	flagNamespace    = "namespace"
	flagWithout      = "exclude-namespace"
	flagMetrics      = "metrics-bind-address"
	flagProbes       = "health-probe-bind-address"
	flagElect        = "leader-elect"
	flagLease        = "leader-election-id"
	flagLeaseSpace   = "leader-election-namespace"
	flagIdentity     = "identity"
	flagConcurrency  = "concurrency"
	flagQPS          = "kube-api-qps"
	flagBurst        = "kube-api-burst"
	flagLogFormat    = "log-format"
	flagVerbose      = "verbose"
	flagVersion      = "version"
)

func version() string { return buildversion.String() }

type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }
