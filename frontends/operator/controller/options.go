package controller

import (
	"net/http"
	"time"

	"github.com/go-logr/logr"
	"github.com/vmop/sdk/vmop/reconcile/objects"
	"github.com/vmop/sdk/vmop/reconcile/operation"
)

// Options choose how machines are looked after. The zero value looks after all
// namespaces, alone, and serves neither metrics nor probes.
type Options struct {
	// Settings are what concerns machines.
	Settings objects.Settings
	// Namespaces are those that are looked after; none means all but those in
	// Without, of which there may be some only then.
	Namespaces, Without []string
	// Concurrency is how many machines are reconciled at the same time; 0 means
	// [DefaultConcurrency].
	Concurrency int
	// Operations says which finished operations are kept.
	Operations operation.Cleanup
	// MetricsAddress and ProbeAddress are where metrics (/metrics) and probes
	// (/healthz, /readyz) are served, as in :8080; empty means nowhere.
	MetricsAddress, ProbeAddress string
	// LeaderElection is nil for an operator that is alone.
	LeaderElection *LeaderElection
	// Log is where the operator tells what it does.
	Log logr.Logger
	// Quiet, if not nil, is called when the operator has hardly anything to do after it
	// had much, such as to look at all machines for the first time. A program can give
	// memory back then that it needed for that.
	Quiet func()
	// WrapTransport, if not nil, is around all requests, for tests and traces.
	WrapTransport func(http.RoundTripper) http.RoundTripper
}

// LeaderElection is how several operators agree which of them works.
type LeaderElection struct {
	// Namespace and Name are those of the Lease.
	Namespace, Name string
	// LeaseDuration is how long a leader that is not heard of keeps its place,
	// RenewDeadline how long it goes on without having renewed it, RetryPeriod
	// how often all try. 0 means 15 s, 10 s and 2 s.
	LeaseDuration, RenewDeadline, RetryPeriod time.Duration
}

// DefaultConcurrency is how many machines are reconciled at the same time: most
// of the time a reconciliation waits for the API server. One namespace has half of
// it at most.
const DefaultConcurrency = 16
