package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/urfave/cli/v2"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/vmop/sdk/frontends/cli/cluster"
	"github.com/vmop/sdk/internal/textout"
	"github.com/vmop/sdk/vmop/conditions"
	"github.com/vmop/sdk/vmop/names"
	"github.com/vmop/sdk/vmop/output"
	machinekind "github.com/vmop/sdk/vmop/reconcile/machine"
	"github.com/vmop/sdk/vmop/spec"
)

func operateFlags() []cli.Flag {
	return []cli.Flag{
		&cli.BoolFlag{Name: "all", Usage: "all machines of the namespace; in a cluster only", DisableDefaultText: true},
		&cli.StringFlag{Name: "selector", Aliases: []string{"l"}, Usage: "the machines of the namespace that the label `SELECTOR` chooses; in a cluster only"},
		&cli.BoolFlag{Name: "dry-run", Usage: "say what would be asked for, of which machines; in a cluster only", DisableDefaultText: true},
		&cli.BoolFlag{Name: "yes", Aliases: []string{"y"}, Usage: "do not ask whether all of them are meant", DisableDefaultText: true},
		outputFlag("the result in a cluster", formatText),
		&cli.BoolFlag{Name: "wait", Aliases: []string{"w"}, Usage: "wait until it is done, which is the default; in a cluster only", DisableDefaultText: true},
		&cli.BoolFlag{Name: "no-wait", Usage: "only ask for it; in a cluster only", DisableDefaultText: true},
	}
}

func notHere(c *cli.Context) error {
	for _, flag := range []string{"all", "selector", "dry-run", "output", "yes", "wait", "no-wait"} {
		if c.IsSet(flag) {
			return usagef(c, "--%s is for a cluster (--cluster, --context or --kubeconfig)", flag)
		}
	}
	return nil
}

// operated is the result for one machine.
type operated struct {
	Machine   string
	Namespace string
	// Operation is the name of the operation, if there is one.
	Operation string
	Type      string
	Force     bool
	// Phase is that of the operation, NotNeeded if the machine is already as requested, or DryRun.
	Phase   string
	Reason  string
	Message string

	failed bool
	// made is the last seen state of the operation; nil if there is none.
	made *spec.VirtualMachineOperation
}

// Used instead of a phase.
const (
	phaseNotNeeded = "NotNeeded"
	phaseDryRun    = "DryRun"
	phaseNotMade   = "NotMade"
	// phaseUnderWay: the machine is being changed, or the request was made without an operation.
	phaseUnderWay = "UnderWay"
)

// operating is one call of a command that starts, stops or restarts machines of a cluster.
type operating struct {
	*program
	c           *cli.Context
	client      *cluster.Client
	kind        spec.OperationType
	interrupted context.Context
	tell        func(string)
	// instead notes once that there are no operations.
	instead sync.Once
}

// operate creates operations for the chosen machines of a cluster, and waits until all have ended.
// It fails if one has failed.
func (p *program) operate(c *cli.Context, kind spec.OperationType) error {
	format, err := outputFormat(c, formatText)
	if err != nil {
		return err
	}
	if c.Bool("wait") && c.Bool("no-wait") {
		return usagef(c, "want --wait or --no-wait, not both")
	}
	if c.Duration("timeout") < 0 {
		return usagef(c, "--timeout %v: want 0 or more", c.Duration("timeout"))
	}
	newDisks := c.StringSlice("new-disk")
	if len(newDisks) > 0 && (c.NArg() != 1 || c.Bool("dry-run")) {
		return usagef(c, "--new-disk is for one machine")
	}
	client, err := p.connect(c)
	if err != nil {
		if m, merr := p.find(c, c.Args().First()); errors.Is(err, cluster.ErrNoCluster) && merr == nil {
			err = fmt.Errorf("%w; %s is a machine of this host", err, m.FullName())
		}
		return err
	}
	ctx, cancel := bounded(c, requestTimeout, "the API server did not answer")
	vms, err := p.chosen(ctx, c, client)
	cancel()
	if err != nil {
		return err
	}
	if err := p.confirmMany(c, kind, vms); err != nil {
		return err
	}
	signals, stop := signal.NotifyContext(c.Context, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	w := &operating{program: p, c: c, client: client, kind: kind, interrupted: signals, tell: func(string) {}}
	if len(newDisks) > 0 {
		if vms[0], err = w.newDisks(vms[0], newDisks); err != nil {
			return err
		}
	}
	alone := c.NArg() == 1 && !forPrograms(format) && !c.Bool("dry-run")
	what := string(w.verb()) + " of several machines"
	if alone {
		what = fullName(vms[0].Namespace, vms[0].Name) + ": " + string(w.verb())
	}
	g := p.begin(what)
	if alone {
		w.tell = func(text string) { g.set(fullName(vms[0].Namespace, vms[0].Name) + ": " + text) }
	}
	results := make([]operated, len(vms))
	var all sync.WaitGroup
	slots := make(chan struct{}, 8)
	for i, vm := range vms {
		all.Go(func() { results[i] = w.operate(vm, slots) })
	}
	all.Wait()
	g.end()
	if alone {
		return w.tellOne(results[0])
	}
	err = p.printOperated(results, format)
	if signals.Err() != nil {
		return errors.New("the wait has ended; what was asked for goes on")
	}
	return err
}

// newDisks requests new disks in place of a machine's missing ones.
func (w *operating) newDisks(vm *spec.VirtualMachine, disks []string) (*spec.VirtualMachine, error) {
	value, err := machinekind.NewDisks(vm, disks...)
	if err != nil {
		return nil, err
	}
	ctx, cancel := bounded(w.c, requestTimeout, "the API server did not answer")
	defer cancel()
	return w.client.Annotate(ctx, vm.Namespace, vm.Name, names.AnnotationNewDisk, value)
}

func (w *operating) verb() machinekind.Verb {
	return machinekind.Verb(strings.ToLower(string(w.kind)))
}

func (w *operating) state() spec.MachineState {
	if w.kind == spec.OperationStop {
		return spec.StateStopped
	}
	return spec.StateRunning
}

// operate handles one machine. slots limits concurrent requests to the API server, not the waits.
func (w *operating) operate(vm *spec.VirtualMachine, slots chan struct{}) operated {
	force := w.c.Bool("force") || w.c.Bool("now")
	// A guest may get some time to shut down before it is stopped by force.
	asks := w.kind == spec.OperationStop && !w.c.Bool("now") && w.c.Duration("timeout") > 0 && !w.c.Bool("no-wait")
	out, late := w.once(vm, force && !asks, slots)
	if !late || !force || !asks || w.interrupted.Err() != nil {
		return out
	}
	w.note("%s: the guest has not shut down in %v: by force now", fullName(vm.Namespace, vm.Name), w.c.Duration("timeout"))
	out, _ = w.once(vm, true, slots)
	return out
}

// once makes the request and waits. late reports whether the timeout came before the end.
func (w *operating) once(vm *spec.VirtualMachine, force bool, slots chan struct{}) (out operated, late bool) {
	slots <- struct{}{}
	out, wait := w.begin(vm, force)
	<-slots
	if wait == nil {
		return out, false
	}
	timeout := w.c.Duration("timeout")
	if timeout == 0 || w.c.Bool("force") && force && w.kind == spec.OperationStop {
		timeout = startReserve
		timeout += time.Duration(vm.Spec.ShutdownSeconds()) * time.Second
	}
	ctx, cancel := context.WithTimeoutCause(w.interrupted, timeout, errTimeout)
	defer cancel()
	var last lastWait
	telling := &telling{patience: operatorPatience, tell: func(text string) {
		last.set(text)
		w.tell(text)
	}}
	out, err := wait(ctx, out, telling)
	telling.end()
	if err == nil {
		return out, false
	}
	goesOn := "the machine goes on with it"
	if out.Operation != "" {
		goesOn = fmt.Sprintf("operation %s goes on; see %s", out.Operation, w.kubectl(w.c, "get", "vmop", "-n", vm.Namespace, out.Operation))
	}
	out.failed = true
	switch {
	case errors.Is(err, errTimeout):
		out.Message = fmt.Sprintf("it takes longer than %v: %s; %s", timeout, orUnknown(last.get()), goesOn)
		return out, true
	case w.interrupted.Err() != nil:
		out.Message = "the wait has ended: " + orUnknown(last.get()) + "; " + goesOn
	default:
		out.Message = err.Error()
	}
	return out, false
}

type lastWait struct {
	mu   sync.Mutex
	text string
}

func (l *lastWait) set(text string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.text = text
}

func (l *lastWait) get() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text
}

// waiter waits for the end of a request and shows what it waits for. An error means that the result
// is unknown.
type waiter func(ctx context.Context, out operated, tell *telling) (operated, error)

// begin makes the request, if it is necessary. The waiter is nil if there is nothing to wait for.
func (w *operating) begin(vm *spec.VirtualMachine, force bool) (operated, waiter) {
	out := operated{Machine: vm.Name, Namespace: vm.Namespace, Type: string(w.kind), Force: force}
	wants, progress := vm.ShouldRun() == (w.state() == spec.StateRunning), machinekind.ProgressOf(vm)
	switch {
	case w.kind != spec.OperationRestart && wants && progress.Reached:
		out.Phase, out.Message = phaseNotNeeded, "the machine runs"
		if w.kind == spec.OperationStop {
			out.Message = "the machine has stopped"
		}
		return out, nil
	case w.c.Bool("dry-run"): // the API server checks it below
	case w.kind == spec.OperationStop && vm.DeletionTimestamp != nil:
		return w.tellMachine(vm, force, out)
	case !force && wants && underWay(w.kind, vm):
		out.Phase, out.Message = phaseUnderWay, "the machine is on its way"
		return out, w.waiting(vm)
	}
	o := spec.NewOperation(vm.Namespace, vm.Name, w.kind)
	o.Spec.Force = force
	ctx, cancel := bounded(w.c, requestTimeout, "the API server did not answer")
	defer cancel()
	made, err := w.client.Operate(ctx, o, w.c.Bool("dry-run"))
	switch {
	case (errors.Is(err, cluster.ErrNoOperations) || errors.Is(err, cluster.ErrForbidden) ||
		errors.Is(err, cluster.ErrNamespaceTerminating) && w.kind == spec.OperationStop) && !w.c.Bool("dry-run"):
		w.instead.Do(func() { w.note("%v; the machine is told without one", err) })
		return w.tellMachine(vm, force, out)
	case err != nil:
		out.Phase, out.Message, out.failed = phaseNotMade, err.Error(), true
		return out, nil
	case w.c.Bool("dry-run"):
		out.Phase, out.Message = phaseDryRun, "it would be asked for"
		return out, nil
	}
	if out = reported(out, made); w.c.Bool("no-wait") {
		return out, nil
	}
	return out, func(ctx context.Context, out operated, tell *telling) (operated, error) {
		ctx, cancel := context.WithCancelCause(ctx)
		var showing sync.WaitGroup
		showing.Go(func() { w.show(ctx, vm, tell) })
		last, err := w.client.AwaitOperation(ctx, made, tell.operation)
		cancel(nil)
		showing.Wait()
		out = reported(out, last)
		out.failed = last.Status.Phase != spec.OperationCompleted
		return out, err
	}
}

// underWay reports whether a machine that is to become as requested has already acknowledged that:
// an operation would be refused, or would change nothing.
func underWay(kind spec.OperationType, vm *spec.VirtualMachine) bool {
	if vm.Status.ObservedGeneration < vm.Generation || !machinekind.Answered(vm) {
		return false
	}
	switch vm.Status.Phase {
	case spec.PhaseStarting, spec.PhasePending:
		return kind == spec.OperationStart
	case spec.PhaseStopping:
		return kind == spec.OperationStop
	}
	return false
}

func (w *operating) show(ctx context.Context, vm *spec.VirtualMachine, tell *telling) {
	// A failure to show progress must not fail the command.
	_ = w.client.Follow(ctx, vm, func(vm *spec.VirtualMachine) (bool, error) {
		tell.machine(machinekind.ProgressOf(vm))
		return false, nil
	})
}

// tellMachine writes the request to the machine itself, as an annotation or its state.
func (w *operating) tellMachine(vm *spec.VirtualMachine, force bool, out operated) (operated, waiter) {
	mark := ""
	if force {
		mark = unique()
	}
	ctx, cancel := bounded(w.c, requestTimeout, "the API server did not answer")
	defer cancel()
	told, err := w.client.Power(ctx, vm.Namespace, vm.Name, w.verb(), unique(), mark)
	if err != nil {
		out.Phase, out.Message, out.failed = phaseNotMade, err.Error(), true
		return out, nil
	}
	out.Phase, out.Message = phaseUnderWay, "the machine was told"
	if w.c.Bool("no-wait") {
		return out, nil
	}
	return out, w.waiting(told)
}

func (w *operating) waiting(vm *spec.VirtualMachine) waiter {
	if w.c.Bool("no-wait") {
		return nil
	}
	return func(ctx context.Context, out operated, tell *telling) (operated, error) {
		err := w.follow(ctx, vm, tell)
		deleted := errors.Is(err, cluster.ErrDeleted) && w.kind == spec.OperationStop && vm.DeletionTimestamp != nil
		if err != nil && !deleted {
			return out, err
		}
		out.Phase, out.Message = string(spec.OperationCompleted), w.done()
		if deleted {
			out.Message += " and is deleted"
		}
		return out, nil
	}
}

func (w *operating) done() string {
	switch w.kind {
	case spec.OperationStop:
		return "the machine has stopped"
	case spec.OperationRestart:
		return "the machine runs in a new pod"
	}
	return "the machine runs"
}

func (p *program) chosen(ctx context.Context, c *cli.Context, client *cluster.Client) ([]*spec.VirtualMachine, error) {
	selector := c.String("selector")
	many := c.Bool("all") || c.IsSet("selector")
	switch {
	case many && c.NArg() > 0:
		return nil, usagef(c, "want NAMEs, or --all or --selector, not both")
	case c.Bool("all") && c.IsSet("selector"):
		return nil, usagef(c, "want --all or --selector, not both")
	case !many && c.NArg() == 0:
		return nil, usagef(c, "want the NAMEs of machines, --all or --selector")
	case c.IsSet("selector") && selector == "":
		return nil, usagef(c, "--selector is empty; --all means all machines")
	}
	if _, err := labels.Parse(selector); err != nil {
		return nil, usagef(c, "--selector %s: %v", selector, err)
	}
	if many {
		vms, err := client.Selected(ctx, client.Namespace, selector)
		if err == nil && len(vms) == 0 {
			err = fmt.Errorf("namespace %s has no such machines", client.Namespace)
		}
		return vms, err
	}
	var out []*spec.VirtualMachine
	seen := map[string]bool{}
	for _, name := range c.Args().Slice() {
		namespace := client.Namespace
		if n, rest, ok := strings.Cut(name, "/"); ok {
			if given := c.String("namespace"); given != "" && given != n {
				return nil, usagef(c, "--namespace %s and %s: want one namespace", given, name)
			}
			namespace, name = n, rest
		}
		if seen[namespace+"/"+name] {
			continue
		}
		seen[namespace+"/"+name] = true
		vm, err := client.Machine(ctx, namespace, name)
		if err != nil {
			return nil, err // no request was made yet
		}
		out = append(out, vm)
	}
	return out, nil
}

func (p *program) confirmMany(c *cli.Context, kind spec.OperationType, vms []*spec.VirtualMachine) error {
	if kind == spec.OperationStart || c.NArg() > 0 || c.Bool("yes") || c.Bool("dry-run") {
		return nil
	}
	names := make([]string, len(vms))
	for i, vm := range vms {
		names[i] = fullName(vm.Namespace, vm.Name)
	}
	verb := strings.ToLower(string(kind))
	if !isTerminal(p.stdin) {
		return fmt.Errorf("%s of %s: the standard input is no terminal that could be asked: say --yes", verb, strings.Join(names, ", "))
	}
	fmt.Fprintf(p.stderr, "%s %s? [y/N] ", verb, strings.Join(names, ", "))
	var answer string
	if _, err := fmt.Fscanln(p.stdin, &answer); err != nil || !strings.EqualFold(answer, "y") && !strings.EqualFold(answer, "yes") {
		return errors.New("nothing was asked for")
	}
	return nil
}

func reported(out operated, o *spec.VirtualMachineOperation) operated {
	out.made = o
	out.Operation, out.Phase = o.Name, string(o.Status.Phase)
	if out.Phase == "" {
		out.Phase = string(spec.OperationPending)
	}
	if c := spec.FindCondition(o.Status.Conditions, conditions.Completed); c != nil {
		out.Reason, out.Message = c.Reason, c.Message
	}
	return out
}

func (w *operating) tellOne(r operated) error {
	full, verb := fullName(r.Namespace, r.Machine), string(w.verb())
	switch {
	case r.failed:
		return fmt.Errorf("%s %s: %s", verb, full, r.Message)
	case r.Phase == string(spec.OperationCompleted), r.Phase == phaseNotNeeded:
		if r.Message == "" {
			r.Message = w.done()
		}
		fmt.Fprintf(w.stdout, "%s %s.\n", full, strings.TrimPrefix(r.Message, "the machine "))
	case r.Operation != "":
		fmt.Fprintf(w.stdout, "%s was asked to %s (operation %s).\n", full, verb, r.Operation)
	default:
		fmt.Fprintf(w.stdout, "%s was asked to %s.\n", full, verb)
	}
	return nil
}

// printOperated fails if one of the results has failed.
func (p *program) printOperated(results []operated, format string) error {
	failed := 0
	for _, r := range results {
		if r.failed {
			failed++
		}
		line := fmt.Sprintf("%s: %s: %s", fullName(r.Namespace, r.Machine), strings.ToLower(r.Type), r.Phase)
		if r.Message != "" {
			line += ": " + r.Message
		}
		switch {
		case forPrograms(format):
		case r.failed:
			p.note("%s", line)
		default:
			fmt.Fprintln(p.stdout, textout.Cell(line))
		}
	}
	if forPrograms(format) {
		if err := printList(p, format, printedOperations(results)); err != nil {
			return err
		}
	}
	if failed > 0 {
		return fmt.Errorf("%d of %d failed", failed, len(results))
	}
	return nil
}

// follow waits until a machine with a request has the wanted state, and shows what it waits for.
func (w *operating) follow(ctx context.Context, vm *spec.VirtualMachine, tell *telling) error {
	request, state := vm.Annotations[names.AnnotationPowerRequest], w.state()
	return w.client.Follow(ctx, vm, func(vm *spec.VirtualMachine) (bool, error) {
		switch {
		case vm.Spec.RunPolicy == "" && vm.Spec.VM.State != state:
			return false, fmt.Errorf("somebody else set its state to %s", vm.Spec.VM.State)
		case vm.Annotations[names.AnnotationPowerRequest] != request:
			return false, fmt.Errorf("somebody else has asked for something: %s", vm.Annotations[names.AnnotationPowerRequest])
		case vm.Spec.RunPolicy != "" && machinekind.Answered(vm) && vm.ShouldRun() != (state == spec.StateRunning) && vm.DeletionTimestamp == nil:
			return false, fmt.Errorf("it should be otherwise by now: %s", powerText(vm))
		}
		progress := machinekind.ProgressOf(vm)
		tell.machine(progress)
		if !progress.Reached || w.kind != spec.OperationRestart {
			return progress.Reached, nil
		}
		pod, err := w.client.MachinePod(ctx, vm)
		if errors.Is(err, cluster.ErrNoPod) {
			return false, nil
		}
		return err == nil && machinekind.Restarted(vm, pod), err
	})
}

func printedOperations(results []operated) []output.Operation {
	out := make([]output.Operation, len(results))
	for i, r := range results {
		o := spec.NewOperation(r.Namespace, r.Machine, spec.OperationType(r.Type))
		o.GenerateName, o.Name = "", r.Operation
		o.Spec.Force = r.Force
		if r.made != nil {
			o = r.made
			o.ManagedFields = nil
		}
		out[i] = output.Operation{VirtualMachineOperation: *o, Observed: output.Result{Result: r.Phase, Message: r.Message}}
	}
	return out
}
