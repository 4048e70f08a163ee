package controller

import (
	"github.com/prometheus/client_golang/prometheus"
	machinekind "github.com/vmop/sdk/vmop/reconcile/machine"
	"github.com/vmop/sdk/vmop/reconcile/objects"
)

type machines struct {
	*reader
	settings objects.Settings
	starts   *starts
	ends     *prometheus.CounterVec
}

type observed = sight[machinekind.Snapshot]
