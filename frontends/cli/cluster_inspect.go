package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/urfave/cli/v2"
	corev1 "k8s.io/api/core/v1"

	"github.com/vmop/sdk/frontends/cli/cluster"
	"github.com/vmop/sdk/internal/textout"
	"github.com/vmop/sdk/vmop/names"
	"github.com/vmop/sdk/vmop/spec"
)

type clusterReport struct {
	clusterListed
	UUID          string
	WantedState   spec.MachineState
	RunnerVersion string
	Pod           *podReport
	Conditions    []spec.Condition
	Awaiting      []spec.AwaitingChange
	LastEnd       *spec.MachineEnd
	GuestPanics   int64
	Console       string
	User          string
}

func (p *program) clusterInspect(c *cli.Context, format string) error {
	return p.withMachine(c, func(ctx context.Context, client *cluster.Client, vm *spec.VirtualMachine) error {
		pod, err := client.MachinePod(ctx, vm)
		if err != nil && !errors.Is(err, cluster.ErrNoPod) {
			return err
		}
		r := reportMachine(vm, pod)
		if forPrograms(format) {
			printed := printedFromCluster(vm, r.Pod)
			return p.printOne(format, &printed)
		}
		return p.writeClusterReport(&r)
	})
}

func reportMachine(vm *spec.VirtualMachine, pod *corev1.Pod) clusterReport {
	s := &vm.Status
	r := clusterReport{
		clusterListed: listMachine(vm), UUID: vm.Spec.VM.MachineUUID, WantedState: vm.Spec.VM.State,
		RunnerVersion: s.RunnerVersion, Conditions: s.Conditions, Awaiting: s.RestartAwaitingChanges,
		LastEnd: s.LastEnd, GuestPanics: s.GuestPanics, Console: s.ConsoleClient, User: s.LoggedInUser,
	}
	if pod == nil {
		return r
	}
	r.Pod = &podReport{Phase: pod.Status.Phase, Node: pod.Spec.NodeName, IP: pod.Status.PodIP}
	if len(pod.Spec.Containers) > 0 {
		r.Pod.Image = pod.Spec.Containers[0].Image
	}
	for _, v := range pod.Spec.Volumes {
		if v.PersistentVolumeClaim != nil && v.PersistentVolumeClaim.ClaimName != names.ImageRepositoryClaim {
			r.Pod.Claims = append(r.Pod.Claims, v.PersistentVolumeClaim.ClaimName)
		}
	}
	return r
}

func (p *program) writeClusterReport(r *clusterReport) error {
	rows := [][]string{
		{"Machine", fullName(r.Namespace, r.Name)}, {"Status", textout.OrNone(r.Status)}, {"Wanted", string(r.WantedState)},
	}
	add := func(name, value string) {
		if value != "" {
			rows = append(rows, []string{name, value})
		}
	}
	add("Waiting", r.Message)
	add("Node", r.Node)
	add("Address", r.Address)
	if r.CPUs > 0 {
		add("CPUs", strconv.Itoa(int(r.CPUs)))
		add("Memory", textout.Size(r.RAM))
	}
	add("Console", r.Console)
	add("User", r.User)
	add("Runner", r.RunnerVersion)
	if r.Pod != nil {
		add("Pod", string(r.Pod.Phase))
		add("Image", r.Pod.Image)
		for _, claim := range r.Pod.Claims {
			add("Claim", claim)
		}
	}
	now := time.Now()
	if e := r.LastEnd; e != nil {
		add("Last end", textout.Age(now, e.Time.Time)+" ago, "+e.Cause+": "+e.Message)
	}
	if n := r.GuestPanics; n > 0 {
		add("Guest panics", fmt.Sprint(n))
	}
	if err := textout.Properties(p.stdout, rows); err != nil {
		return err
	}
	rows = nil
	for _, c := range r.Conditions {
		since := textout.None
		if c.LastTransitionTime.Unix() != 0 {
			since = textout.Age(now, c.LastTransitionTime.Time)
		}
		rows = append(rows, []string{c.Type, string(c.Status), c.Reason, since, c.Message})
	}
	if err := textout.Section(p.stdout, []string{"CONDITION", "STATUS", "REASON", "SINCE", "MESSAGE"}, rows); err != nil {
		return err
	}
	rows = nil
	for _, a := range r.Awaiting {
		row := []string{a.Path, a.Operation, textout.None, textout.None}
		if a.CurrentValue != nil {
			row[2] = changed(a.Path, a.CurrentValue.Raw)
		}
		if a.DesiredValue != nil {
			row[3] = changed(a.Path, a.DesiredValue.Raw)
		}
		rows = append(rows, row)
	}
	return textout.Section(p.stdout, []string{"WAITS FOR RESTART", "OPERATION", "CURRENT", "DESIRED"}, rows)
}
