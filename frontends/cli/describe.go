package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/vmop/sdk/frontends/cli/cluster"
	"github.com/vmop/sdk/internal/textout"
	"github.com/vmop/sdk/vmop/host"
	"github.com/vmop/sdk/vmop/inspect"
	"github.com/vmop/sdk/vmop/live"
	machinekind "github.com/vmop/sdk/vmop/reconcile/machine"
	"github.com/vmop/sdk/vmop/spec"
)

func (p *program) describeCommand() *cli.Command {
	return &cli.Command{
		Name:      "describe",
		Usage:     "say on one page what a machine is, what it waits for and what to do next",
		ArgsUsage: "NAME",
		Description: "The machine is one of this host, or of a cluster with --cluster. For programs, there\n" +
			"is vmop-cli inspect -o json.\n\n" +
			"Examples:\n" +
			"  vmop-cli describe hello\n" +
			"  vmop-cli describe --cluster -n shop web",
		Flags:  eitherFlags(machineFlags()...),
		Action: p.describe,
	}
}

func (p *program) describe(c *cli.Context) error {
	if !inCluster(c) {
		m, err := p.findOne(c)
		if err != nil {
			return err
		}
		var wanted *inspect.Wanted
		if o, err := m.Object(); err == nil {
			wanted = inspect.WantedOf(o.VirtualMachine)
		} else if !errors.Is(err, host.ErrNoManifest) {
			p.note("%v", err)
		}
		return textout.Properties(p.stdout, hostPage(&m, wanted, func(verb string) string { return p.hint(c, verb, m.FullName()) }))
	}
	return p.withMachine(c, func(_ context.Context, _ *cluster.Client, vm *spec.VirtualMachine) error {
		return textout.Properties(p.stdout, clusterPage(vm, time.Now(), nextSteps{
			hint:    func(words ...string) string { return p.hint(c, words...) },
			kubectl: func(words ...string) string { return p.kubectl(c, words...) },
		}))
	})
}

// page collects the lines of a description.
type page [][]string

// add adds a line, unless it is empty.
func (p *page) add(name, value string) {
	if value != "" {
		*p = append(*p, []string{name, value})
	}
}

// amount is what a machine has of processors and memory, in words.
func amount(cpus int, ram int64) string {
	return textout.Counted(cpus, "CPU") + ", " + textout.Size(ram)
}

// nextSteps make command lines of words: of this program, and of kubectl.
type nextSteps struct {
	hint, kubectl func(words ...string) string
}

// clusterPage describes a machine of a cluster.
func clusterPage(vm *spec.VirtualMachine, now time.Time, next nextSteps) page {
	var out page
	command := func(words ...string) string { return next.hint(append(words, "-n", vm.Namespace, vm.Name)...) }
	s := &vm.Status
	out.add("Machine", fullName(vm.Namespace, vm.Name))
	is := textout.OrNone(s.Phase)
	if s.NodeName != "" {
		is += " on " + s.NodeName
	}
	out.add("It is", is)
	if vm.Spec.RunPolicy != "" {
		out.add("It should be", powerText(vm))
	} else {
		out.add("It should be", fmt.Sprintf("%s (spec.vm.state)", orRunning(vm)))
	}
	if s.CPUs > 0 && s.RAM != nil {
		out.add("It has", amount(int(s.CPUs), spec.Bytes(*s.RAM)))
	}
	out.add("Address", s.IPAddress)
	if st := s.Stats; st != nil && st.LastStartTime != nil {
		out.add("Last start", textout.Age(now, st.LastStartTime.Time)+" ago"+launchText(machinekind.LaunchOf(s)))
	}
	if e := s.LastEnd; e != nil {
		out.add("Last end", fmt.Sprintf("%s ago, %s: %s", textout.Age(now, e.Time.Time), e.Cause, e.Message))
	}
	progress := machinekind.ProgressOf(vm)
	out.add("It waits for", progress.Waiting)
	said := map[string]bool{progress.Waiting: true}
	for _, c := range s.Conditions {
		if mustBe(c.Type) && c.Status == metav1.ConditionFalse && vm.ShouldRun() && !said[c.Message] {
			said[c.Message] = true
			out.add(c.Type, fmt.Sprintf("%s: %s", c.Reason, c.Message))
		}
	}
	if n := len(s.RestartAwaitingChanges); n > 0 {
		out.add("Restart", fmt.Sprintf("%d of its changes wait for one", n))
	}
	switch policy := vm.Spec.RunPolicy; {
	case s.Phase == "":
		out.add("Next", "see that the operator runs: "+next.kubectl("get", "deployment", "-n", "vmop-system", "vmop-operator"))
	case vm.DeletionTimestamp != nil:
		out.add("Next", "it goes when its guest has ended; "+command("stop", "--force")+" does not wait for that")
	case policy == spec.RunPolicyAlwaysOff:
		out.add("Next", "spec.runPolicy AlwaysOff keeps it stopped; another one lets it start")
	case s.Phase == spec.PhaseStopped && !vm.ShouldRun():
		out.add("Next", command("start"))
	case progress.Waiting != "":
		out.add("Next", command("events")+" says what happened")
	case spec.ConditionIsTrue(s.Conditions, spec.ConditionAwaitingRestart):
		out.add("Next", command("changes")+" lists what waits; "+command("restart")+" applies it")
	default:
		out.add("Next", "nothing needs to be done")
	}
	return out
}

// launchText says how long the steps of a start took; empty if nobody knows.
func launchText(l *spec.LaunchTimeDuration) string {
	if l == nil {
		return ""
	}
	var steps []string
	for _, step := range []struct {
		seconds *int64
		until   string
	}{
		{l.WaitingForDependenciesSeconds, "until a node took it"}, {l.VirtualMachineStartingSeconds, "until the guest executed"},
		{l.GuestOSAgentStartingSeconds, "until the guest agent answered"},
	} {
		if step.seconds != nil {
			steps = append(steps, duration.HumanDuration(time.Duration(*step.seconds)*time.Second)+" "+step.until)
		}
	}
	if len(steps) == 0 {
		return ""
	}
	return ": " + strings.Join(steps, ", ")
}

// orRunning is spec.vm.state, whose default the API server may have left out.
func orRunning(vm *spec.VirtualMachine) spec.MachineState {
	if vm.ShouldRun() {
		return spec.StateRunning
	}
	return spec.StateStopped
}

// mustBe reports whether a machine that runs is not as it should be while a condition of
// this type is False.
func mustBe(kind string) bool {
	switch kind {
	case spec.ConditionConfigurationApplied, spec.ConditionPodReady, spec.ConditionRunning, spec.ConditionGuestExecuting, spec.ConditionAccelerated:
		return true
	}
	return false
}

// hostPage describes a machine of this host; command is one for it.
func hostPage(m *host.Machine, wanted *inspect.Wanted, command func(verb string) string) page {
	var out page
	out.add("Machine", m.FullName())
	out.add("It is", string(m.Status))
	if s := &m.State; m.Running() && s.CPUs > 0 {
		out.add("It has", amount(s.CPUs, s.RAM))
	}
	if wanted != nil {
		out.add("It should have", amount(wanted.CPUs.Plugged, wanted.Memory.Actual))
		for _, n := range wanted.Networks {
			out.add("Ports", n.Forwards())
		}
	}
	out.add("Files", m.Data)
	out.add("Message", textout.OneLine(m.Message()))
	if m.Running() {
		for _, c := range m.State.Conditions {
			if c.Status == live.True && c.Type == live.RestartRequired || c.Status == live.False && c.Type != live.RestartRequired && c.Message != m.Message() {
				out.add(c.Type, strings.TrimPrefix(c.Reason+": "+c.Message, ": "))
			}
		}
	}
	switch m.Status {
	case host.StatusStopped:
		out.add("Next", command("start"))
	case host.StatusFailed, host.StatusDied:
		out.add("Next", command("logs")+" says why; "+command("start"))
	case host.StatusOrphaned:
		out.add("Next", command("stop")+", and "+command("start")+": nobody looks after its guest")
	case host.StatusPaused:
		out.add("Next", command("resume"))
	case host.StatusRunning:
		next := "nothing needs to be done; " + command("console")
		if slices.ContainsFunc(m.State.Conditions, func(c live.Condition) bool { return c.Type == live.RestartRequired && c.Status == live.True }) {
			next = command("changes") + " lists what waits; " + command("restart") + " applies it"
		}
		out.add("Next", next)
	default:
		out.add("Next", command("wait")+" waits until it runs")
	}
	return out
}
