package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/vmop/sdk/internal/shellwords"
	"github.com/vmop/sdk/vmop/host"
	"github.com/vmop/sdk/vmop/imagesource"
	"github.com/vmop/sdk/vmop/spec"
)

func imageFlags() []cli.Flag {
	return append([]cli.Flag{
		&cli.StringFlag{Name: "image", Usage: "make a new machine of this cloud image, `URL|FILE|NAME` (http, https, oci://REGISTRY/REPOSITORY:TAG, oci-archive:FILE), instead of a manifest; a NAME is one of " + publicNames()},
		&cli.StringFlag{Name: "checksum", Usage: "that of the image, `SUM`: sha256:HEX or sha512:HEX"},
		&cli.IntFlag{Name: "cpus", Value: 2, Usage: "`NUMBER` of processors"},
		&cli.StringFlag{Name: "memory", Value: "2Gi", Usage: "`QUANTITY` of memory"},
		&cli.StringFlag{Name: "disk-size", Value: "20Gi", Usage: "`QUANTITY` that the disk has; it takes only what is written"},
		&cli.StringFlag{Name: "user", Usage: "`NAME` of the user that cloud-init makes, with sudo (default: your own, or vm)"},
		&cli.StringSliceFlag{Name: "ssh-key", Usage: "`FILE` with the public SSH keys of that user; may be given several times (default: ~/.ssh/*.pub)"},
		&cli.StringSliceFlag{Name: "port", Usage: "forward a port of this host to the guest, `[ADDRESS:]PORT:GUESTPORT[/udp]`; may be given several times. One for SSH is chosen"},
		&cli.BoolFlag{Name: "in-place", Usage: "use the image FILE itself as the disk, and change it", DisableDefaultText: true},
		&cli.StringFlag{Name: "output", Aliases: []string{"o"}, Usage: "`FORMAT` yaml: print the manifest, and make and start nothing"},
	}, sourceFlags()...)
}

// made is the machine that run and create are about, of a manifest or of an image.
type made struct {
	spec.Object
	machine host.Machine // of an image only
	printed bool         // of an image from which nothing is created
	// held occupies the port for SSH that was chosen; nil if none was.
	held func() error
}

// release lets the machine have the port for SSH that was chosen for it.
func (m *made) release() {
	if m.held != nil {
		_ = m.held()
	}
}

func (p *program) manifestOrImage(c *cli.Context) (made, error) {
	if c.IsSet("image") {
		return p.makeOfImage(c)
	}
	for _, f := range imageFlags() {
		if name := f.Names()[0]; c.IsSet(name) {
			return made{}, usagef(c, "--%s is for --image; a manifest says it itself", name)
		}
	}
	files, err := needFiles(c)
	if err != nil {
		return made{}, err
	}
	o, err := p.machine(c, files, always)
	if err == nil {
		p.withoutClass(&o)
	}
	return made{Object: o}, err
}

// makeOfImage creates a new machine of an image, or prints its manifest.
func (p *program) makeOfImage(c *cli.Context) (out made, err error) {
	if c.NArg() > 0 {
		return out, usagef(c, "--image makes a manifest, and there is %q too", c.Args().First())
	}
	if format := c.String("output"); format != "" && format != "yaml" {
		return out, usagef(c, "--output %q: want yaml", format)
	}
	image, err := imageSource(c, c.String("image"))
	if err != nil {
		return out, err
	}
	h, err := p.host(c)
	if err != nil {
		return out, err
	}
	desired, ssh, err := p.imageMachine(c)
	if err != nil {
		return out, err
	}
	chosen := !slices.ContainsFunc(desired.Forwards, leadsToSSH)
	if chosen {
		port, err := h.FreeSSHPort()
		if err != nil {
			return out, err
		}
		desired.Forwards = append([]spec.HostForward{{HostAddress: "127.0.0.1", HostPort: port, GuestPort: 22, Protocol: spec.ForwardTCP}}, desired.Forwards...)
	}
	vm, err := desired.Machine()
	if err != nil {
		return out, err
	}
	given, err := p.given(c)
	if err != nil {
		return out, err
	}
	printed := c.String("output") == "yaml"
	if printed {
		if err := p.complete(c, vm, image, desired, given); err != nil {
			return out, err
		}
	}
	text, err := out.load(vm)
	if err != nil {
		return out, err
	}
	if printed {
		out.printed = true
		_, err := p.stdout.Write(text)
		return out, err
	}
	image.Size = desired.DiskSize.Value()
	if c.Bool("in-place") {
		out.machine, err = p.createInPlace(h, &out.Object, given, image)
	} else {
		err = p.fetching(c, image.Source, func(ctx context.Context, options host.ImageOptions) (err error) {
			if chosen {
				options.Fetched = func() (*spec.Object, error) { return out.withPort(h, desired) }
			}
			out.machine, err = h.CreateFromImage(ctx, &out.Object, given, image, options)
			return err
		})
	}
	if errors.Is(err, host.ErrExists) {
		return out, fmt.Errorf("%w: start it with %s, or choose another --name", err, p.hint(c, "start", host.FullName(out.Namespace, out.Name)))
	}
	if err != nil {
		return out, p.told(&out.Object, err)
	}
	return out, out.machine.SetSSH(ssh)
}

// load sets the machine from a manifest, which it returns.
func (m *made) load(vm *spec.VirtualMachine) ([]byte, error) {
	text, err := spec.Marshal(vm)
	if err != nil {
		return nil, err
	}
	objects, err := spec.Load("the manifest", text, spec.Options{Default: true, Validate: true})
	if err != nil {
		return nil, err
	}
	m.Object = objects[0]
	return text, nil
}

// withPort sets the machine's first port, for SSH, to a currently free port of this host, and holds
// it: the previous one may have been taken since.
func (m *made) withPort(h *host.Host, desired host.ImageMachine) (*spec.Object, error) {
	var err error
	if desired.Forwards[0].HostPort, m.held, err = h.HoldSSHPort(); err != nil {
		return nil, err
	}
	vm, err := desired.Machine()
	if err != nil {
		return nil, err
	}
	_, err = m.load(vm)
	return &m.Object, err
}

// complete adds to a manifest what is otherwise given by flags, the image of its disk and the
// shared folders, so that it suffices to create the same machine.
func (p *program) complete(c *cli.Context, vm *spec.VirtualMachine, image host.Image, desired host.ImageMachine, given host.Given) error {
	if kind, err := (imagesource.Source{Location: image.Source}).Kind(); err == nil && kind == imagesource.File {
		if image.Source, err = filepath.Abs(image.Source); err != nil {
			return err
		}
	}
	if c.Bool("in-place") {
		p.note("A manifest cannot say that an image is used in place: give it with --disk %s", shellwords.Quote(host.SystemDisk+"="+image.Source))
	} else {
		vm.Spec.VM.Disks[0] = spec.Disk{Image: &spec.DiskImage{
			Name:   vm.Spec.VM.Disks[0].VolumeClaimTemplate.Metadata.Name,
			Source: image.Source, Path: image.Path, Checksum: image.Checksum, CABundle: string(image.CA), Size: &desired.DiskSize,
		}}
	}
	for _, s := range given.Shares {
		if s.Dir != "" {
			vm.Spec.VM.Shares = append(vm.Spec.VM.Shares, spec.Share{Tag: s.Tag, HostPath: s.Dir, ReadOnly: s.ReadOnly})
		}
	}
	return nil
}

func (p *program) createInPlace(h *host.Host, o *spec.Object, given host.Given, image host.Image) (host.Machine, error) {
	if kind, err := (imagesource.Source{Location: image.Source}).Kind(); err != nil || kind != imagesource.File || image.Checksum != "" {
		return host.Machine{}, errors.New("--in-place is for a FILE, whose checksum changes with its first start")
	}
	path, err := filepath.Abs(image.Source)
	if err != nil {
		return host.Machine{}, err
	}
	if _, err := os.Stat(path); err != nil {
		return host.Machine{}, err
	}
	given.Disks[host.SystemDisk] = path
	return h.Create(o, given)
}

func (p *program) imageMachine(c *cli.Context) (host.ImageMachine, host.SSH, error) {
	w := host.ImageMachine{Namespace: c.String("namespace"), Name: c.String("name"), CPUs: int32(c.Int("cpus")), User: c.String("user")}
	ssh := host.SSH{}
	if w.Name == "" {
		w.Name = host.NameOfImage(c.String("image"))
	}
	for _, q := range []struct {
		flag string
		to   *resource.Quantity
	}{{"memory", &w.Memory}, {"disk-size", &w.DiskSize}} {
		v, err := resource.ParseQuantity(c.String(q.flag))
		if err != nil || v.Sign() <= 0 {
			return w, ssh, usagef(c, "--%s %q: want a quantity such as 4Gi", q.flag, c.String(q.flag))
		}
		*q.to = v
	}
	if w.User == "" {
		if w.User = p.getenv("USER"); w.User == "" || w.User == "root" {
			w.User = "vm"
		}
	}
	ssh.User = w.User
	files := c.StringSlice("ssh-key")
	if len(files) == 0 {
		var err error
		if files, err = filepath.Glob(filepath.Join(p.getenv("HOME"), ".ssh", "*.pub")); err != nil {
			return w, ssh, err
		}
	} else if private, ok := strings.CutSuffix(files[0], ".pub"); ok {
		if abs, err := filepath.Abs(private); err == nil {
			if _, err := os.Stat(abs); err == nil {
				ssh.Identity = abs
			}
		}
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			return w, ssh, err
		}
		keys, err := host.PublicKeys(string(data))
		if err != nil {
			return w, ssh, fmt.Errorf("%s: %w", file, err)
		}
		w.SSHKeys = append(w.SSHKeys, keys...)
	}
	if len(w.SSHKeys) == 0 {
		return w, ssh, errors.New("there is no SSH key in ~/.ssh/*.pub, and nobody could log in: make one with ssh-keygen, or name one with --ssh-key FILE")
	}
	for _, text := range c.StringSlice("port") {
		f, err := host.ParseForward(text)
		if err != nil {
			return w, ssh, usagef(c, "--port %v", err)
		}
		w.Forwards = append(w.Forwards, f)
	}
	return w, ssh, nil
}

func leadsToSSH(f spec.HostForward) bool {
	return f.GuestPort == 22 && f.Protocol == spec.ForwardTCP
}
