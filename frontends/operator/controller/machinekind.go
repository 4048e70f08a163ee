package controller

import (
	"github.com/prometheus/client_golang/prometheus"
	machinekind "github.com/vmop/sdk/vmop/reconcile/machine"
	"github.com/vmop/sdk/vmop/reconcile/objects"
)

// machines is what an engine has to know of machines.
type machines struct {
	*reader
	settings objects.Settings
	starts   *starts
	ends     *prometheus.CounterVec
}

// observed is what was seen of a machine.
type observed = sight[machinekind.Snapshot]
