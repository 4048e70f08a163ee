package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/vmop/sdk/frontends/cli/cluster"
	"github.com/vmop/sdk/internal/textout"
	"github.com/vmop/sdk/vmop/conditions"
	"github.com/vmop/sdk/vmop/output"
	"github.com/vmop/sdk/vmop/spec"
)

func clusterDiskFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "from", Usage: "in a cluster: create a disk of this `SOURCE`: http://…, https://…, oci://REGISTRY/IMAGE:TAG, disk:NAME, another disk, or snapshot:NAME, a VolumeSnapshot of one's volume"},
		&cli.StringFlag{Name: "checksum", Usage: "sha256:HEX or sha512:HEX of what `SUM` the server's file has, or what is uploaded must have"},
		&cli.BoolFlag{Name: "image", Usage: "upload, download: an image (VirtualImage), of which disks are made", DisableDefaultText: true},
		&cli.StringFlag{Name: "size", Usage: "upload: the `SIZE` of a disk or image that is not there yet (default: what the file needs)"},
		&cli.StringFlag{Name: "format", Usage: "download: as a file of this `FORMAT`, raw or qcow2, and otherwise as it is there; create: what the file in a snapshot is (default: raw)"},
		&cli.BoolFlag{Name: "force", Aliases: []string{"f"}, Usage: "download: replace FILE if it exists", DisableDefaultText: true},
		&cli.StringFlag{Name: "path", Usage: "the `PATH` of the disk in a container image, where it is not the only file in /disk"},
		&cli.StringFlag{Name: "ca", Usage: "`FILE` with certificates that the server may be trusted by, too"},
		&cli.StringFlag{Name: "pull-secret", Usage: "the Secret `NAME` with the credentials for the registry"},
		&cli.StringFlag{Name: "storage-class", Usage: "the `CLASS` of the disk's volume (default: the cluster's)"},
		&cli.StringFlag{Name: "volume-mode", Usage: "`MODE` of an empty disk: Block, which is the default, or Filesystem"},
		&cli.BoolFlag{Name: "all-namespaces", Aliases: []string{"A"}, Usage: "list the disks of all namespaces of a cluster", DisableDefaultText: true},
		&cli.BoolFlag{Name: "dry-run", Usage: "only have the cluster check it", DisableDefaultText: true},
		&cli.BoolFlag{Name: "yes", Aliases: []string{"y"}, Usage: "delete without asking", DisableDefaultText: true},
		&cli.BoolFlag{Name: "wait", Aliases: []string{"w"}, Usage: "wait until it is done, which is the default; in a cluster only", DisableDefaultText: true},
		&cli.BoolFlag{Name: "no-wait", Usage: "only ask for it; in a cluster only", DisableDefaultText: true},
		&cli.DurationFlag{Name: "timeout", Usage: "wait at most this `DURATION`, as in 5m; in a cluster only", DefaultText: "10m, and 24h for create"},
	}
}

func onlyInClusters(c *cli.Context) error {
	for _, f := range clusterDiskFlags() {
		if name := f.Names()[0]; c.IsSet(name) {
			return usagef(c, "--%s is for a cluster (--cluster, --context or --kubeconfig)", name)
		}
	}
	return nil
}

type clusterDisk struct {
	Namespace string
	Name      string
	Phase     string
	// Progress is in percent.
	Progress string
	// Size is the requested one, Capacity that of its volume, in bytes.
	Size     int64
	Capacity int64
	Machines []string
	Claim    string
	// Reason and Message are those of the condition Ready.
	Reason  string
	Message string
	Created time.Time
}

const clusterDiskActions = "list, describe, create, upload, download, resize, delete, attach or detach"

func (p *program) clusterDisks(c *cli.Context) error {
	args := c.Args().Slice()
	if len(args) == 0 {
		return usagef(c, "want %s", clusterDiskActions)
	}
	w := &diskWork{program: p, c: c, action: args[0]}
	args = args[1:]
	operands := map[string]struct {
		want string
		n    int
	}{
		"create": {"a name for the DISK and its SIZE", 2}, "upload": {"the DISK and the FILE", 2}, "download": {"the DISK and the FILE", 2}, "resize": {"the DISK and its new SIZE", 2}, "delete": {"the DISK", 1},
		"describe": {"the DISK", 1}, "attach": {"the NAME of a machine and the DISK", 2}, "detach": {"the NAME of a machine and the DISK", 2},
	}
	if _, err := outputFormat(c, formatTable); err != nil {
		return err
	}
	o, known := operands[w.action]
	switch {
	case w.action == "list":
	case !known:
		return usagef(c, "%q: want %s", w.action, clusterDiskActions)
	case len(args) != o.n:
		return usagef(c, "%s: want %s, and found %s", w.action, o.want, arguments(len(args)))
	}
	if err := w.checkFlags(); err != nil {
		return err
	}
	var err error
	if w.client, err = p.connect(c); err != nil {
		return err
	}
	if w.action == "list" {
		return w.list(args)
	}
	namespace, name, given := strings.Cut(args[0], "/")
	if !given {
		namespace, name = w.client.Namespace, args[0]
	} else if n := c.String("namespace"); n != "" && n != namespace {
		return usagef(c, "--namespace %s and %s: want one namespace", n, args[0])
	}
	switch w.action {
	case "describe":
		return w.describe(namespace, name)
	case "create":
		return w.create(namespace, name, args[1])
	case "upload":
		return w.upload(namespace, name, args[1])
	case "download":
		return w.download(namespace, name, args[1])
	case "resize":
		return w.resize(namespace, name, args[1])
	case "delete":
		return w.remove(namespace, name)
	case "attach":
		return w.attach(namespace, name, args[1])
	default:
		return w.detach(namespace, name, args[1])
	}
}

func flagsOf() map[string][]string {
	return map[string][]string{
		"from": {"create"}, "path": {"create"}, "ca": {"create"}, "pull-secret": {"create"}, "volume-mode": {"create"},
		"checksum": {"create", "upload"}, "storage-class": {"create", "upload"}, "size": {"upload"},
		"image": {"upload", "download"}, "format": {"create", "download"}, "force": {"download"}, "all-namespaces": {"list"},
	}
}

func (w *diskWork) checkFlags() error {
	c := w.c
	switch {
	case c.Bool("wait") && c.Bool("no-wait"):
		return usagef(c, "want --wait or --no-wait, not both")
	case c.Duration("timeout") < 0:
		return usagef(c, "--timeout %v: want 0 or more", c.Duration("timeout"))
	case c.Bool("no-wait") && w.action == "upload":
		return usagef(c, "--no-wait: an upload is over when the file is there")
	case c.Bool("no-wait") && w.action == "download":
		return usagef(c, "--no-wait: a download is over when the file is there")
	case c.Bool("dry-run") && w.action == "download":
		return usagef(c, "--dry-run: a download changes nothing")
	}
	of := flagsOf()
	for _, f := range slices.Sorted(maps.Keys(of)) {
		if c.IsSet(f) && !slices.Contains(of[f], w.action) {
			return usagef(c, "--%s is for %s", f, strings.Join(of[f], " and "))
		}
	}
	return nil
}

// list lists all disks that can be read despite errors.
func (w *diskWork) list(names []string) error {
	namespace := w.client.Namespace
	if w.c.Bool("all-namespaces") {
		namespace = ""
	}
	ctx, cancel := w.request()
	defer cancel()
	found, failed := w.client.Disks(ctx, namespace)
	if found == nil && failed != nil {
		return failed
	}
	out, printed := []clusterDisk{}, []output.VirtualDisk{}
	for _, d := range found {
		if len(names) == 0 || slices.Contains(names, d.Name) {
			out = append(out, listDisk(d))
			full := d.DeepCopy()
			full.ManagedFields = nil
			printed = append(printed, *full)
		}
	}
	for _, n := range names {
		if !slices.ContainsFunc(out, func(d clusterDisk) bool { return d.Name == n }) {
			failed = errors.Join(failed, fmt.Errorf("%s/%s: %w", w.client.Namespace, n, cluster.ErrNoDisk))
		}
	}
	if format := w.c.String("output"); forPrograms(format) {
		return errors.Join(printList(w.program, format, printed), failed)
	}
	if len(out) == 0 {
		if failed == nil {
			w.note("No disks found.")
		}
		return failed
	}
	now := time.Now()
	rows := make([][]string, len(out))
	for i, d := range out {
		has := textout.None
		if d.Capacity > 0 {
			has = textout.Size(d.Capacity)
		}
		rows[i] = []string{d.Namespace, d.Name, textout.OrNone(d.Phase), textout.OrNone(d.Progress), textout.Size(d.Size), has, textout.OrNone(strings.Join(d.Machines, ",")), textout.Age(now, d.Created), d.Message}
	}
	return errors.Join(textout.TableWithin(w.stdout, w.listWidth(formatTable), []string{"NAMESPACE", "DISK", "PHASE", "PROGRESS", "SIZE", "CAPACITY", "MACHINES", "AGE", "MESSAGE"}, rows), failed)
}

func listDisk(d *spec.VirtualDisk) clusterDisk {
	s := &d.Status
	out := clusterDisk{
		Namespace: d.Namespace, Name: d.Name, Phase: string(s.Phase), Progress: s.Progress,
		Size: spec.Bytes(d.Spec.PersistentVolumeClaim.Size), Created: d.CreationTimestamp.Time,
	}
	if s.Capacity != nil {
		out.Capacity = spec.Bytes(*s.Capacity)
	}
	if s.Target != nil {
		out.Claim = s.Target.PersistentVolumeClaim
	}
	for _, m := range s.AttachedToVirtualMachines {
		out.Machines = append(out.Machines, m.Name)
	}
	if c := spec.FindCondition(s.Conditions, conditions.Ready); c != nil {
		out.Reason = c.Reason
		if c.Status != metav1.ConditionTrue {
			out.Message = c.Message
		}
	}
	return out
}

func (w *diskWork) wanted(namespace, name string, size resource.Quantity) (*spec.VirtualDisk, error) {
	d, c := spec.NewDisk(namespace, name, size), w.c
	if class := c.String("storage-class"); c.IsSet("storage-class") {
		d.Spec.PersistentVolumeClaim.StorageClassName = &class
	}
	if c.IsSet("volume-mode") {
		d.Spec.PersistentVolumeClaim.VolumeMode = new(corev1.PersistentVolumeMode(c.String("volume-mode")))
	}
	ca := ""
	if file := c.String("ca"); file != "" {
		data, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		ca = string(data)
	}
	from := c.String("from")
	image, isImage := strings.CutPrefix(from, "oci://")
	other, isDisk := strings.CutPrefix(from, "disk:")
	snapshot, isSnapshot := strings.CutPrefix(from, "snapshot:")
	isObject := isDisk || isSnapshot
	needs := map[string]bool{"checksum": !isImage && !isObject && from != "", "path": isImage, "pull-secret": isImage, "ca": from != "" && !isObject, "format": isSnapshot}
	for _, flag := range []string{"checksum", "path", "pull-secret", "ca", "format"} {
		if c.IsSet(flag) && !needs[flag] {
			return nil, usagef(c, "--%s does not go with --from %q", flag, from)
		}
	}
	switch {
	case from == "":
	case isDisk:
		d.Spec.DataSource = &spec.VirtualDiskSource{Type: spec.DiskSourceObjectRef, ObjectRef: &spec.VirtualDiskObjectRef{Kind: spec.KindDisk, Name: other}}
	case isSnapshot:
		d.Spec.DataSource = &spec.VirtualDiskSource{Type: spec.DiskSourceObjectRef, ObjectRef: &spec.VirtualDiskObjectRef{
			Kind: spec.KindVolumeSnapshot, Name: snapshot, Format: c.String("format"),
		}}
	case isImage:
		source := &spec.VirtualDiskContainerImage{Image: image, Path: c.String("path"), CABundle: ca}
		if s := c.String("pull-secret"); s != "" {
			source.ImagePullSecret = &spec.VirtualDiskPullSecret{Name: s}
		}
		d.Spec.DataSource = &spec.VirtualDiskSource{Type: spec.DiskSourceContainerImage, ContainerImage: source}
	case strings.HasPrefix(from, "http://"), strings.HasPrefix(from, "https://"):
		source := &spec.VirtualDiskHTTP{URL: from, CABundle: ca}
		switch kind, sum, _ := strings.Cut(c.String("checksum"), ":"); {
		case !c.IsSet("checksum"):
		case kind == "sha256":
			source.Checksum = &spec.VirtualDiskChecksum{SHA256: sum}
		case kind == "sha512":
			source.Checksum = &spec.VirtualDiskChecksum{SHA512: sum}
		default:
			return nil, usagef(c, "--checksum %q: want sha256:HEX or sha512:HEX", c.String("checksum"))
		}
		d.Spec.DataSource = &spec.VirtualDiskSource{Type: spec.DiskSourceHTTP, HTTP: source}
	default:
		return nil, usagef(c, "--from %q: want http://…, https://…, oci://REGISTRY/IMAGE:TAG, disk:NAME or snapshot:NAME", from)
	}
	if errs := spec.ValidateDisk(d); len(errs) > 0 {
		return nil, errs.ToAggregate()
	}
	return d, nil
}

func (w *diskWork) create(namespace, name, text string) error {
	size, err := w.sizeArgument(text)
	if err != nil {
		return err
	}
	d, err := w.wanted(namespace, name, size)
	if err != nil {
		return err
	}
	ctx, cancel := w.request()
	made, err := w.client.CreateDisk(ctx, d, w.c.Bool("dry-run"))
	cancel()
	if err != nil {
		return err
	}
	out := diskDone{Namespace: namespace, Disk: name, Action: w.action, Phase: string(made.Status.Phase)}
	return w.finish(&out, createReserve, func(ctx context.Context, tell func(string)) error {
		return w.client.AwaitDisk(ctx, made, func(d *spec.VirtualDisk) (bool, error) {
			tell(w.see(&out, d))
			if d.Status.Phase == spec.DiskFailed {
				return false, errors.New(out.Message)
			}
			return d.Status.Phase.Usable(), nil
		})
	})
}

func (w *diskWork) see(out *diskDone, d *spec.VirtualDisk) string {
	out.Phase, out.Message = string(d.Status.Phase), ""
	if c := spec.FindCondition(d.Status.Conditions, conditions.Ready); c != nil {
		out.Message = c.Message
	}
	if out.Phase == "" {
		out.Phase, out.Message = string(spec.DiskPending), "the operator has not looked at it yet"
	}
	if p := d.Status.Progress; p != "" && d.Status.Phase == spec.DiskProvisioning {
		return p + ", " + out.Message
	}
	return out.Message
}

func (w *diskWork) resize(namespace, name, text string) error {
	size, err := w.sizeArgument(text)
	if err != nil {
		return err
	}
	ctx, cancel := w.request()
	defer cancel()
	d, err := w.client.Disk(ctx, namespace, name)
	if err != nil {
		return err
	}
	if d, err = w.client.ResizeDisk(ctx, d, size.String(), w.c.Bool("dry-run")); err != nil {
		return err
	}
	cancel()
	out := diskDone{Namespace: namespace, Disk: name, Action: w.action, Phase: string(d.Status.Phase)}
	return w.finish(&out, startReserve, func(ctx context.Context, tell func(string)) error {
		return w.client.AwaitDisk(ctx, d, func(d *spec.VirtualDisk) (bool, error) {
			w.see(&out, d)
			if now := &d.Spec.PersistentVolumeClaim.Size; now.Cmp(size) != 0 {
				return false, fmt.Errorf("somebody else has asked for %s", now.String())
			}
			if d.Status.Phase == spec.DiskFailed || d.DeletionTimestamp != nil {
				return false, errors.New(out.Message)
			}
			c := spec.FindCondition(d.Status.Conditions, conditions.DiskResized)
			if c == nil || c.ObservedGeneration < d.Generation {
				tell(out.Message)
				return false, nil
			}
			out.Message = c.Message
			tell(c.Message)
			switch c.Reason {
			case conditions.ReasonWriteRefused, conditions.ReasonShrinkRefused:
				return false, errors.New(c.Message)
			}
			return c.Status == metav1.ConditionTrue, nil
		})
	})
}

// remove refuses a disk that a machine has: the deletion would be delayed, and could not be undone.
func (w *diskWork) remove(namespace, name string) error {
	ctx, cancel := w.request()
	defer cancel()
	d, err := w.client.Disk(ctx, namespace, name)
	if err != nil {
		return err
	}
	if c := spec.FindCondition(d.Status.Conditions, conditions.DiskInUse); c != nil && c.Status == metav1.ConditionTrue && d.DeletionTimestamp == nil {
		return fmt.Errorf("disk %s is in use, and is not deleted: %s", fullName(namespace, name), c.Message)
	}
	if !w.c.Bool("yes") && !w.c.Bool("dry-run") {
		if !isTerminal(w.stdin) {
			return errors.New("delete: the standard input is no terminal that could be asked: say --yes")
		}
		cancel()
		fmt.Fprintf(w.stderr, "Disk %s and what is on it would be gone for ever. Type its name to go on: ", fullName(namespace, name))
		var answer string
		if _, err := fmt.Fscanln(w.stdin, &answer); err != nil || answer != name {
			return errors.New("nothing was deleted")
		}
	}
	ctx, cancel = w.request()
	err = w.client.DeleteDisk(ctx, d, w.c.Bool("dry-run"))
	cancel()
	if err != nil {
		return err
	}
	out := diskDone{Namespace: namespace, Disk: name, Action: w.action, Phase: string(spec.DiskTerminating)}
	return w.finish(&out, startReserve, func(ctx context.Context, tell func(string)) error {
		return w.gone(&out, w.client.AwaitDisk(ctx, d, func(d *spec.VirtualDisk) (bool, error) {
			tell(w.see(&out, d))
			return false, nil
		}))
	})
}

// gone takes the deletion of the object as the end of the wait.
func (w *diskWork) gone(out *diskDone, err error) error {
	if errors.Is(err, cluster.ErrGone) {
		out.Phase, out.Message = phaseDeleted, ""
		return nil
	}
	return err
}

func (w *diskWork) attach(namespace, machine, disk string) error {
	a := spec.NewAttachment(namespace, disk, machine, spec.AttachedBlockDevice{Kind: spec.AttachedDisk, Name: disk})
	ctx, cancel := w.request()
	made, err := w.client.Attach(ctx, a, w.c.Bool("dry-run"))
	cancel()
	if err != nil {
		return err
	}
	out := diskDone{Namespace: namespace, Disk: disk, Machine: machine, Action: w.action, Phase: string(made.Status.Phase)}
	return w.finish(&out, startReserve, func(ctx context.Context, tell func(string)) error {
		return w.client.AwaitAttachment(ctx, made, func(a *spec.VirtualMachineBlockDeviceAttachment) (bool, error) {
			tell(seeAttachment(&out, a))
			if a.Status.Phase == spec.AttachmentFailed {
				return false, fmt.Errorf("%s; it is tried again when that is over: %s takes it back", out.Message, w.kubectl(w.c, "delete", "vmbda", "-n", namespace, a.Name))
			}
			return a.Status.Phase == spec.AttachmentAttached, nil
		})
	})
}

func seeAttachment(out *diskDone, a *spec.VirtualMachineBlockDeviceAttachment) string {
	out.Phase, out.Message = string(a.Status.Phase), ""
	for _, kind := range []string{conditions.AttachmentTerminating, conditions.Attached} {
		if c := spec.FindCondition(a.Status.Conditions, kind); c != nil && (kind == conditions.Attached || c.Status == metav1.ConditionTrue) {
			out.Message = c.Message
			break
		}
	}
	if out.Phase == "" {
		out.Phase, out.Message = string(spec.AttachmentPending), "the operator has not looked at it yet"
	}
	return out.Message
}

func (w *diskWork) detach(namespace, machine, disk string) error {
	ctx, cancel := w.request()
	defer cancel()
	all, err := w.client.Attachments(ctx, namespace, machine)
	if err != nil {
		return err
	}
	i := slices.IndexFunc(all, func(a *spec.VirtualMachineBlockDeviceAttachment) bool {
		return a.Spec.BlockDeviceRef.Kind == spec.AttachedDisk && a.Spec.BlockDeviceRef.Name == disk
	})
	if i < 0 {
		return fmt.Errorf("disk %s is not attached to machine %s: see %s", disk, fullName(namespace, machine), w.kubectl(w.c, "get", "vmbda", "-n", namespace))
	}
	a := all[i]
	if err := w.client.Detach(ctx, a, w.c.Bool("dry-run")); err != nil {
		return err
	}
	cancel()
	out := diskDone{Namespace: namespace, Disk: disk, Machine: machine, Action: w.action, Phase: string(spec.AttachmentTerminating)}
	return w.finish(&out, startReserve, func(ctx context.Context, tell func(string)) error {
		return w.gone(&out, w.client.AwaitAttachment(ctx, a, func(a *spec.VirtualMachineBlockDeviceAttachment) (bool, error) {
			tell(seeAttachment(&out, a))
			return false, nil
		}))
	})
}
