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
		Description: "The machine is one of this host, or of a cluster with --cluster. With -o json or yaml\n" +
			"it is printed as by list, with the next step in observed.nextStep; inspect asks its QEMU, too.\n\n" +
			"Examples:\n" +
			"  vmop-cli describe hello\n" +
			"  vmop-cli describe hello -o json\n" +
			"  vmop-cli describe --cluster -n shop web",
		Flags:  eitherFlags(machineFlags(outputFlag("", formatText))...),
		Action: p.describe,
	}
}

func (p *program) describe(c *cli.Context) error {
	format, err := outputFormat(c, formatText)
	if err != nil {
		return err
	}
	if !inCluster(c) {
		m, err := p.findOne(c)
		if err != nil {
			return err
		}
		command := func(verb string) string { return p.hint(c, verb, m.FullName()) }
		if forPrograms(format) {
			h, err := p.host(c)
			if err != nil {
				return err
			}
			out := p.printedHere(h, &m)
			out.Observed.NextStep = hostNext(&m, command)
			return p.printOne(format, &out)
		}
		var wanted *inspect.Wanted
		if o, err := m.Object(); err == nil {
			wanted = inspect.WantedOf(o.VirtualMachine)
		} else if !errors.Is(err, host.ErrNoManifest) {
			p.note("%v", err)
		}
		return textout.Properties(p.stdout, hostPage(&m, wanted, command))
	}
	return p.withMachine(c, func(_ context.Context, _ *cluster.Client, vm *spec.VirtualMachine) error {
		next := nextSteps{
			hint:    func(words ...string) string { return p.hint(c, words...) },
			kubectl: func(words ...string) string { return p.kubectl(c, words...) },
		}
		if forPrograms(format) {
			out := printedFromCluster(vm, nil)
			out.Observed.NextStep = clusterNext(vm, next)
			return p.printOne(format, &out)
		}
		return textout.Properties(p.stdout, clusterPage(vm, time.Now(), next))
	})
}

type page [][]string

// add omits an empty value.
func (p *page) add(name, value string) {
	if value != "" {
		*p = append(*p, []string{name, value})
	}
}

func amount(cpus int, ram int64) string {
	return textout.Counted(cpus, "CPU") + ", " + textout.Size(ram)
}

// nextSteps build command lines, of this program and of kubectl.
type nextSteps struct {
	hint, kubectl func(words ...string) string
}

func clusterPage(vm *spec.VirtualMachine, now time.Time, next nextSteps) page {
	var out page
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
	if n := s.GuestPanics; n > 0 {
		out.add("Guest panics", fmt.Sprint(n))
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
	out.add("Next", clusterNext(vm, next))
	return out
}

func clusterNext(vm *spec.VirtualMachine, next nextSteps) string {
	command := func(words ...string) string { return next.hint(append(words, "-n", vm.Namespace, vm.Name)...) }
	switch s := &vm.Status; {
	case s.Phase == "":
		return "see that the operator runs: " + next.kubectl("get", "deployment", "-n", "vmop-system", "vmop-operator")
	case vm.DeletionTimestamp != nil:
		return "it goes when its guest has ended; " + command("stop", "--force") + " does not wait for that"
	case vm.Spec.RunPolicy == spec.RunPolicyAlwaysOff:
		return "spec.runPolicy AlwaysOff keeps it stopped; another one lets it start"
	case s.Phase == spec.PhaseStopped && !vm.ShouldRun():
		return command("start")
	case machinekind.ProgressOf(vm).Waiting != "":
		return command("events") + " says what happened"
	case len(s.RestartAwaitingChanges) > 0, spec.ConditionIsTrue(s.Conditions, spec.ConditionAwaitingRestart):
		return command("changes") + " lists what waits; " + command("restart") + " applies it"
	}
	return "nothing needs to be done"
}

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

// orRunning returns spec.vm.state, whose default may be missing.
func orRunning(vm *spec.VirtualMachine) spec.MachineState {
	if vm.ShouldRun() {
		return spec.StateRunning
	}
	return spec.StateStopped
}

// mustBe reports whether a condition of this type must be True for a running machine.
func mustBe(kind string) bool {
	switch kind {
	case spec.ConditionConfigurationApplied, spec.ConditionPodReady, spec.ConditionRunning, spec.ConditionGuestExecuting, spec.ConditionAccelerated:
		return true
	}
	return false
}

// hostPage describes a machine of this host; command builds command lines for it.
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
	if n := m.State.GuestPanics; n > 0 {
		out.add("Guest panics", fmt.Sprint(n))
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
	out.add("Next", hostNext(m, command))
	return out
}

func hostNext(m *host.Machine, command func(verb string) string) string {
	switch m.Status {
	case host.StatusStopped:
		return command("start")
	case host.StatusFailed, host.StatusDied:
		return command("logs") + " says why; " + command("start")
	case host.StatusOrphaned:
		return command("stop") + ", and " + command("start") + ": nobody looks after its guest"
	case host.StatusPaused:
		if slices.ContainsFunc(m.State.Conditions, func(c live.Condition) bool { return c.Type == live.GuestExecuting && c.Reason == live.ReasonDiskFull }) {
			return "make room where its disk is, and it goes on by itself; " + command("resume") + " says whether there is enough"
		}
		return command("resume")
	case host.StatusRunning:
		if slices.ContainsFunc(m.State.Conditions, func(c live.Condition) bool { return c.Type == live.RestartRequired && c.Status == live.True }) {
			return command("changes") + " lists what waits; " + command("restart") + " applies it"
		}
		return "nothing needs to be done; " + command("console")
	}
	return command("wait") + " waits until it runs"
}
