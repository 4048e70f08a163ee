package controller

import (
	"net/http"
	"time"

	"github.com/go-logr/logr"
	"github.com/vmop/sdk/vmop/reconcile/objects"
	"github.com/vmop/sdk/vmop/reconcile/operation"
)

// Options configure an operator. The zero value looks after all namespaces, without leader
// election, and serves neither metrics nor probes.
type Options struct {
	// Settings are those for machines.
	Settings objects.Settings
	// Namespaces are those looked after; none means all but those in Without, which is allowed only
	// then.
	Namespaces, Without []string
	// Concurrency is the number of concurrent reconciliations of machines; 0 means
	// [DefaultConcurrency].
	Concurrency int
	// Operations selects which finished operations are kept.
	Operations operation.Cleanup
	// MetricsAddress and ProbeAddress are where metrics (/metrics) and probes (/healthz, /readyz)
	// are served, as in :8080; empty means nowhere.
	MetricsAddress, ProbeAddress string
	// LeaderElection is nil for an operator without replicas.
	LeaderElection *LeaderElection
	// Log is where the operator logs.
	Log logr.Logger
	// Quiet, if not nil, is called when little is left to do after much, such as after the first
	// look at all machines, so that a program can release the memory it needed for that.
	Quiet func()
	// WrapTransport, if not nil, wraps the transport of all requests, for tests and traces.
	WrapTransport func(http.RoundTripper) http.RoundTripper
}

// LeaderElection configures which of several operators acts.
type LeaderElection struct {
	// Namespace and Name are those of the Lease.
	Namespace, Name string
	// LeaseDuration is how long a leader that does not renew keeps the lease, RenewDeadline how
	// long it goes on without having renewed it, RetryPeriod how often all try. 0 means 15 s, 10 s
	// and 2 s.
	LeaseDuration, RenewDeadline, RetryPeriod time.Duration
}

// DefaultConcurrency is the default number of concurrent reconciliations of machines, which mostly
// wait for the API server, for up to eight writes at once each. One namespace has half of it at
// most. With more, machines are not there sooner, and others wait longer for the API server: see
// docs/scale.md.
const DefaultConcurrency = 8
