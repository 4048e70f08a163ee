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
	"github.com/vmop/sdk/vmop/conditions"
	"github.com/vmop/sdk/vmop/spec"
)

// operateFlags are those of commands that do the same to many machines of a cluster.
func operateFlags() []cli.Flag {
	return []cli.Flag{
		&cli.BoolFlag{Name: "all", Usage: "all machines of the namespace; in a cluster only", DisableDefaultText: true},
		&cli.StringFlag{Name: "selector", Aliases: []string{"l"}, Usage: "the machines of the namespace that the label `SELECTOR` chooses; in a cluster only"},
		&cli.BoolFlag{Name: "dry-run", Usage: "say what would be asked for, of which machines; in a cluster only", DisableDefaultText: true},
		&cli.BoolFlag{Name: "yes", Aliases: []string{"y"}, Usage: "do not ask whether all of them are meant", DisableDefaultText: true},
		&cli.StringFlag{Name: "output", Aliases: []string{"o"}, Usage: "`FORMAT` of the result, text or json; json in a cluster only"},
	}
}

// operates reports whether a command asks for operations: for what concerns more than
// one machine, or what nothing else can do. One machine is told otherwise, which needs
// no definition of operations.
func operates(c *cli.Context) bool {
	return c.NArg() > 1 || c.Bool("all") || c.IsSet("selector") || c.Bool("dry-run") || c.IsSet("output")
}

// notHere refuses for machines of this host what is for those of a cluster.
func notHere(c *cli.Context) error {
	for _, flag := range []string{"all", "selector", "dry-run", "output", "yes"} {
		if c.IsSet(flag) {
			return usagef(c, "--%s is for a cluster (--cluster, --context or --kubeconfig)", flag)
		}
	}
	return nil
}

// operated is what became of what was asked for of one machine.
type operated struct {
	// Machine and Namespace name the machine.
	Machine   string `json:"machine"`
	Namespace string `json:"namespace"`
	// Operation is the name of the operation; it is missing if there is none.
	Operation string `json:"operation,omitempty"`
	Type      string `json:"type"`
	Force     bool   `json:"force,omitempty"`
	// Phase is that of the operation, NotNeeded if the machine is as it should be, or
	// DryRun.
	Phase string `json:"phase"`
	// Reason and Message say why.
	Reason  string `json:"reason,omitempty"`
	Message string `json:"message,omitempty"`

	failed bool
}

// What there is instead of a phase.
const (
	phaseNotNeeded = "NotNeeded"
	phaseDryRun    = "DryRun"
	phaseNotMade   = "NotMade"
)

// operate does the same to some machines of a cluster, by operations, and waits until
// all have ended. If one has failed, so has the command.
func (p *program) operate(c *cli.Context, kind spec.OperationType, force bool) error {
	if o := c.String("output"); o != "" && o != "text" && o != "json" {
		return usagef(c, "--output %s: want text or json", o)
	}
	if len(c.StringSlice("new-disk")) > 0 {
		return usagef(c, "--new-disk is for one machine")
	}
	client, err := p.connect(c)
	if err != nil {
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
	timeout := c.Duration("timeout")
	if timeout <= 0 {
		// Each operation has its own end, which the operator sees to.
		timeout = 24 * time.Hour
	}
	wait, end := context.WithTimeoutCause(signals, timeout, errTimeout)
	defer end()
	results := make([]operated, len(vms))
	var all sync.WaitGroup
	slots := make(chan struct{}, 8)
	for i, vm := range vms {
		all.Go(func() {
			slots <- struct{}{}
			o, made := p.begins(c, client, vm, kind, force)
			<-slots
			if made != nil && !c.Bool("no-wait") {
				o = awaited(wait, client, made, o)
			}
			results[i] = o
		})
	}
	all.Wait()
	return p.tellOperated(wait, c, results)
}

// chosen are the machines that a command is about.
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
			return nil, err // nothing was asked for yet
		}
		out = append(out, vm)
	}
	return out, nil
}

// confirmMany asks whether machines are meant that nobody has named.
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

// begins creates an operation on a machine, unless that is as it should be.
func (p *program) begins(c *cli.Context, client *cluster.Client, vm *spec.VirtualMachine, kind spec.OperationType, force bool) (operated, *spec.VirtualMachineOperation) {
	out := operated{Machine: vm.Name, Namespace: vm.Namespace, Type: string(kind), Force: force}
	s := &vm.Status
	switch {
	case kind == spec.OperationStart && s.Phase == spec.PhaseRunning && vm.ShouldRun():
		out.Phase, out.Message = phaseNotNeeded, "the machine runs"
		return out, nil
	case kind == spec.OperationStop && s.Phase == spec.PhaseStopped && !vm.ShouldRun():
		out.Phase, out.Message = phaseNotNeeded, "the machine has stopped"
		return out, nil
	}
	o := spec.NewOperation(vm.Namespace, vm.Name, kind)
	o.Spec.Force = force
	ctx, cancel := bounded(c, requestTimeout, "the API server did not answer")
	defer cancel()
	made, err := client.Operate(ctx, o, c.Bool("dry-run"))
	switch {
	case err != nil:
		out.Phase, out.Message, out.failed = phaseNotMade, err.Error(), true
		return out, nil
	case c.Bool("dry-run"):
		out.Phase, out.Message = phaseDryRun, "it would be asked for"
		return out, nil
	}
	return reported(out, made), made
}

// reported is what an operation says of itself.
func reported(out operated, o *spec.VirtualMachineOperation) operated {
	out.Operation, out.Phase = o.Name, string(o.Status.Phase)
	if out.Phase == "" {
		out.Phase = string(spec.OperationPending)
	}
	if c := spec.FindCondition(o.Status.Conditions, conditions.Completed); c != nil {
		out.Reason, out.Message = c.Reason, c.Message
	}
	return out
}

// awaited waits for the end of an operation.
func awaited(ctx context.Context, client *cluster.Client, o *spec.VirtualMachineOperation, out operated) operated {
	last, err := client.AwaitOperation(ctx, o)
	out = reported(out, last)
	out.failed = last.Status.Phase != spec.OperationCompleted
	if err != nil {
		out.Message = err.Error()
		if errors.Is(err, errTimeout) || ctx.Err() != nil {
			out.Message = "it was not waited for any longer, and goes on; see kubectl get vmop -n " + o.Namespace + " " + o.Name
		}
	}
	return out
}

// tellOperated prints what became of all, and fails if one has.
func (p *program) tellOperated(wait context.Context, c *cli.Context, results []operated) error {
	err := p.printOperated(results, c.String("output") == "json")
	switch {
	case wait.Err() == nil:
		return err
	case errors.Is(context.Cause(wait), errTimeout):
		return fmt.Errorf("it takes longer than %v; what was asked for goes on", c.Duration("timeout"))
	}
	return errors.New("the wait has ended; what was asked for goes on")
}

// printOperated prints results. One that has failed is an error.
func (p *program) printOperated(results []operated, asJSON bool) error {
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
		case asJSON:
		case r.failed:
			p.note("%s", line)
		default:
			fmt.Fprintln(p.stdout, printableCell(line))
		}
	}
	if asJSON {
		if err := writeJSON(p.stdout, results); err != nil {
			return err
		}
	}
	if failed > 0 {
		return fmt.Errorf("%d of %d failed", failed, len(results))
	}
	return nil
}
