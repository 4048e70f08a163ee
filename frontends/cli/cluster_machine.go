package main

import (
	"time"

	"github.com/vmop/sdk/vmop/output"
	machinekind "github.com/vmop/sdk/vmop/reconcile/machine"
	"github.com/vmop/sdk/vmop/spec"

	corev1 "k8s.io/api/core/v1"
)

type clusterListed struct {
	Namespace string
	Name      string
	Status    string
	// Ready is the status of the condition Ready.
	Ready   string
	Node    string
	Address string
	CPUs    int32
	RAM     int64
	Created time.Time
	// NeedRestart reports whether changes wait for the machine's next start.
	NeedRestart bool
	Message     string
	// Ports are those that lead to the guest; for the wide table.
	Ports string
}

func listMachine(vm *spec.VirtualMachine) clusterListed {
	s := &vm.Status
	m := clusterListed{
		Namespace: vm.Namespace, Name: vm.Name, Status: s.Phase, Node: s.NodeName, Address: s.IPAddress,
		CPUs: s.CPUs, Created: vm.CreationTimestamp.Time, NeedRestart: len(s.RestartAwaitingChanges) > 0,
		Message: machinekind.ProgressOf(vm).Waiting, Ports: ports(vm, ""),
	}
	if c := spec.FindCondition(s.Conditions, spec.ConditionReady); c != nil {
		m.Ready = string(c.Status)
	}
	if s.RAM != nil {
		m.RAM = spec.Bytes(*s.RAM)
	}
	return m
}

type podReport struct {
	Phase  corev1.PodPhase
	Node   string
	IP     string
	Image  string
	Claims []string
}

// printedFromCluster takes a nil pod if it was not read.
func printedFromCluster(vm *spec.VirtualMachine, pod *podReport) output.Machine {
	out := output.Machine{VirtualMachine: *vm, Observed: output.Observed{Message: machinekind.ProgressOf(vm).Waiting, UUID: vm.Spec.VM.MachineUUID}}
	out.ManagedFields = nil // kubectl does not show them either
	if pod != nil {
		out.Observed.Pod = &output.Pod{Phase: pod.Phase, NodeName: pod.Node, PodIP: pod.IP, Image: pod.Image, Claims: pod.Claims}
	}
	return out
}
