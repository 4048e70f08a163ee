package main

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/vmop/sdk/vmop/host"
	"github.com/vmop/sdk/vmop/reconcile/changes"
	"github.com/vmop/sdk/vmop/spec"
)

func (p *program) createCommand() *cli.Command {
	return &cli.Command{
		Name:      "create",
		Usage:     "keep a machine on this host, without starting it",
		ArgsUsage: "FILE",
		Description: "Keeps the machine of a manifest with what it is given by flags. From then on it is\n" +
			"started, stopped, changed and deleted by its name.\n\n" +
			"With --image, makes a new machine of a cloud image, as run --image does: the image is\n" +
			"checked, copied and enlarged, and cloud-init makes a user with your SSH key.\n\n" +
			"Examples:\n" +
			"  vmop-cli create vm.yaml\n" +
			"  vmop-cli create vm.yaml --disk system=debian.qcow2\n" +
			"  vmop-cli create --image debian-13-genericcloud-amd64.qcow2 --name shop --port 8080:80",
		Flags: append(selectFlags(), append(imageFlags(), localFlags()...)...),
		Action: func(c *cli.Context) error {
			o, err := p.manifestOrImage(c)
			o.release()
			if err != nil || o.printed {
				return err
			}
			if c.IsSet("image") {
				p.created(c, o.machine)
				return nil
			}
			return p.create(c, &o.Object)
		},
	}
}

func (p *program) create(c *cli.Context, o *spec.Object) error {
	h, err := p.host(c)
	if err != nil {
		return err
	}
	given, err := p.givenTo(c, h, o)
	if err != nil {
		return err
	}
	m, err := h.Create(o, given)
	if errors.Is(err, host.ErrExists) {
		return fmt.Errorf("%w: change it with %s, or start it with %s", err, p.hint(c, "apply", "FILE"), p.hint(c, "start", m.FullName()))
	}
	if err != nil {
		return p.told(o, err)
	}
	p.created(c, m)
	return nil
}

func (p *program) created(c *cli.Context, m host.Machine) {
	fmt.Fprintf(p.stdout, "%s is created. Start it with: %s\n", m.FullName(), p.hint(c, "start", m.FullName()))
}

func (p *program) applyCommand() *cli.Command {
	return &cli.Command{
		Name:      "apply",
		Usage:     "change a machine of this host",
		ArgsUsage: "FILE",
		Description: "Makes a manifest that of the machine of its name, or keeps a new machine as create\n" +
			"does. A machine that runs is changed as far as it can be while it runs; what waits\n" +
			"for its next start is told. For a cluster, use kubectl apply.\n\n" +
			"Examples:\n" +
			"  vmop-cli apply vm.yaml\n" +
			"  vmop-cli apply vm.yaml --disk data=data.qcow2",
		Flags:  append(selectFlags(), localFlags()...),
		Action: p.apply,
	}
}

func (p *program) apply(c *cli.Context) error {
	files, err := needFiles(c)
	if err != nil {
		return err
	}
	o, err := p.machine(c, files, always)
	if err != nil {
		return err
	}
	p.withoutClass(&o)
	h, err := p.host(c)
	if err != nil {
		return err
	}
	m, err := h.Machine(o.Namespace, o.Name)
	if errors.Is(err, host.ErrNotFound) {
		return p.create(c, &o)
	}
	if err != nil {
		return err
	}
	given, err := p.givenTo(c, h, &o)
	if err != nil {
		return err
	}
	return p.applyTo(c, h, m, &o, given)
}

const applyTimeout = 30 * time.Second

func (p *program) applyTo(c *cli.Context, h *host.Host, m host.Machine, o *spec.Object, given host.Given) error {
	full := m.FullName()
	ctx, cancel := bounded(c, applyTimeout, "it still follows its new manifest")
	defer cancel()
	g := p.begin(full + ": following its new manifest")
	done, err := h.Apply(ctx, m, o, given)
	g.end()
	if err != nil {
		return p.told(o, fmt.Errorf("apply to %s: %w", full, err))
	}
	switch {
	case len(done.Changes) == 0 && slices.ContainsFunc(keptFlags, c.IsSet):
		fmt.Fprintf(p.stdout, "%s has the manifest that it had, and keeps what it was given. That takes effect with its next start.\n", full)
	case len(done.Changes) == 0:
		fmt.Fprintf(p.stdout, "%s is unchanged.\n", full)
	case done.Running:
		fmt.Fprintf(p.stdout, "%s is changed.\n", full)
	default:
		p.tellStopped(full, done.Changes)
	}
	p.renew(c, h, o)
	if done.Running {
		for _, n := range host.USBNotes(o.VirtualMachine) {
			p.note("%s", n)
		}
		for _, change := range done.Changes {
			if change.Applied != changes.AppliedLive {
				p.note("%s: %s", change.Path, waitsFor(change))
			}
		}
		for _, w := range done.Waiting {
			p.note("%s: %s", w.Type, w.Message)
		}
	}
	return nil
}

// tellStopped prints the changes of a stopped machine. Its next start applies all of them, except
// for example changes of an existing disk.
func (p *program) tellStopped(full string, found []changes.Change) {
	never := slices.DeleteFunc(slices.Clone(found), func(c changes.Change) bool { return c.Applied != changes.AppliedNever })
	switch len(never) {
	case 0:
		fmt.Fprintf(p.stdout, "%s is changed. It does not run: all of it takes effect with its next start.\n", full)
	case len(found):
		fmt.Fprintf(p.stdout, "%s is changed, and will be as it was.\n", full)
	default:
		fmt.Fprintf(p.stdout, "%s is changed. It does not run: its next start has the changes but for these.\n", full)
	}
	for _, c := range never {
		p.note("%s: %s", c.Path, waitsFor(c))
	}
}

func waitsFor(change changes.Change) string {
	text := "waits for the next start"
	if change.Applied == changes.AppliedNever {
		text = "never takes effect"
	}
	if change.Reason != "" {
		text += " (" + change.Reason + ")"
	}
	return text
}

func (p *program) restartCommand() *cli.Command {
	return &cli.Command{
		Name:      "restart",
		Usage:     "stop a machine and start it again, on this host or in a cluster",
		ArgsUsage: "NAME...",
		Description: "Does what stop and start do: what waits for a restart takes effect. A machine of\n" +
			"this host that does not run is started. One that could not be started again, because an\n" +
			"image is gone for instance, is not stopped. A guest that does not shut down in time is\n" +
			"stopped without its consent, and started again: the exit code is 3. One that still runs\n" +
			"after --timeout, without --force, is not. In a cluster, an operation restarts it (kubectl get\n" +
			"vmop): the machine gets a new pod when its guest has shut down, unless that could not start.\n" +
			"With --force the guest is not waited for. The exit code is 1 if it fails, and a wait that is\n" +
			"ended, as by Ctrl-C, ends nothing else.\n\n" +
			"Examples:\n" +
			"  vmop-cli restart hello\n" +
			"  vmop-cli restart --cluster web",
		Flags: eitherFlags(machineFlags(append(append(hostStopFlags(), startFlags()...), operateFlags()...)...)...),
		Action: func(c *cli.Context) error {
			if inCluster(c) {
				return p.operate(c, spec.OperationRestart)
			}
			if err := notHere(c); err != nil {
				return err
			}
			m, err := p.findOne(c)
			if err != nil {
				return err
			}
			return p.restartHere(c, m)
		},
	}
}

func (p *program) restartHere(c *cli.Context, m host.Machine) error {
	if !m.Running() {
		return p.startHere(c, m)
	}
	// Obstacles to the start are reported while it still runs. The job is created again after the
	// stop, which may take minutes: the manifest may have changed.
	o, err := p.keptManifest(c, m)
	if err != nil {
		return err
	}
	if _, _, err := p.makeJob(c.Context, c, &o); err != nil {
		p.note("%s is not stopped: it could not be started again.", m.FullName())
		return err
	}
	stopped := p.stopHere(c, m)
	var status *exitStatus
	forced := errors.As(stopped, &status) && status.code == exitForced
	if stopped != nil && !forced {
		return stopped
	}
	if forced {
		p.errorf("%v", stopped)
	}
	if err := p.startHere(c, m); err != nil || !forced {
		return err
	}
	return &exitStatus{code: exitForced}
}
