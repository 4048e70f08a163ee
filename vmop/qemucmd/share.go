package qemucmd

import (
	"path"
	"strconv"

	"github.com/vmop/sdk/vmop/limits"
)

const virtiofsd = "virtiofsd"

func (b *builder) sharesMemory() bool {
	for _, s := range b.m.Shares {
		if s.Protocol != Share9P {
			return true
		}
	}
	return false
}

// shares adds the shared folders, as functions of one device behind the port for file systems, so
// that appending one moves no other.
func (b *builder) shares() {
	if len(b.m.Shares) == 0 {
		return
	}
	if b.m.AddressMap < mapPorts {
		b.errorf("shares", "the machine has the hardware of its first start, which has no place for shared folders: only a new machine has")
		return
	}
	if n := len(b.m.Shares); n > limits.MaxShares {
		b.errorf("shares", "%d shares: there are PCI addresses for %d", n, limits.MaxShares)
		return
	}
	tags := map[string]string{}
	for i, s := range b.m.Shares {
		field := "shares[" + strconv.Itoa(i) + "]"
		b.invalid(field+".tag", s.Tag, limits.ShareTag(s.Tag))
		if other, dup := tags[s.Tag]; dup {
			b.errorf(field+".tag", "%q is also the tag of %s", s.Tag, other)
		}
		tags[s.Tag] = field
		b.path(field+".dir", s.Dir)
		if s.Dir != "" && !path.IsAbs(s.Dir) {
			b.errorf(field+".dir", "%q must be an absolute path", s.Dir)
		}
		b.file(File{Purpose: FileShare, Path: s.Dir, Writable: !s.ReadOnly})
		switch s.Protocol {
		case "", ShareVirtioFS:
			b.virtioFS(field, i, s)
		case Share9P:
			b.nineP(field, i, s)
		default:
			b.errorf(field+".protocol", "%q must be virtiofs or 9p", s.Protocol)
		}
	}
}

func behindSharePort(i int, props ...Prop) []Prop {
	addr := "0x0"
	if i > 0 {
		addr += ".0x" + strconv.Itoa(i)
	}
	p := []Prop{{"bus", Bus(PortID(fileSystemPort))}, {"addr", Str(addr)}}
	if i == 0 {
		p = append(p, Prop{"multifunction", Bool(true)})
	}
	return append(p, props...)
}

func (b *builder) virtioFS(field string, i int, s Share) {
	id := shareID(i)
	b.chardev("socket", id+"-server", "virtiofsd listens here", Prop{"path", Str(s.Socket)})
	b.device(field, "vhost-user-fs-pci", id, "a folder of the host, served by a process of its own that reads and writes the guest's memory",
		behindSharePort(i, Prop{"chardev", Ref(id + "-server")}, Prop{"tag", Str(s.Tag)})...)
	b.socket(SocketShare, Socket{Path: s.Socket, FD: s.SocketFD})
	if s.SocketFD != 0 && s.SocketFD < 3 {
		b.errorf(field+".socketFD", "%d is no descriptor that can be handed over: 0 to 2 are standard input and output", s.SocketFD)
	}
	b.shareServer(field, s)
}

const or9p = ", or share it by protocol: 9p, which QEMU serves itself, if the guest's kernel has that (Debian's cloud kernel has not)"

// shareServer adds the process that serves a folder. The guest is confined to the folder only
// because that process sees no other file; a virtiofsd that cannot be confined is refused.
func (b *builder) shareServer(field string, s Share) {
	d := b.h.VirtioFSD
	switch {
	case d.Path == "":
		b.errorf(field, "the host has no virtiofsd (package virtiofsd of Debian 13, Ubuntu 24.04, Fedora and Alpine)%s", or9p)
	case d.Former && !d.Root:
		b.errorf(field, "%s is the one of QEMU 7.2 and before, which only root can run: install a newer one (package virtiofsd of Debian 13, Ubuntu 24.04, Fedora)%s", d.Path, or9p)
	case s.ReadOnly && !d.ReadOnly:
		b.errorf(field+".readOnly", "%s cannot share a folder for reading only, and what only the guest promises would be no protection: install a newer one (1.13, of Debian 13)%s", d.Path, or9p)
	case !d.Namespaces && (d.Former || !s.Contained):
		b.errorf(field, "%s cannot be confined to the folder, because user namespaces are not available here (sysctl kernel.unprivileged_userns_clone, kernel.apparmor_restrict_unprivileged_userns, user.max_user_namespaces)%s", d.Path, or9p)
	}
	listen := "--socket-path=" + s.Socket
	if s.SocketFD != 0 {
		listen = "--fd=" + strconv.Itoa(s.SocketFD)
	}
	var args []string
	if d.Former {
		// The list of -o has no quoting.
		for _, r := range s.Dir {
			if r == ',' || r == '\\' {
				b.errorf(field+".dir", "%q contains %q, which this virtiofsd would not take for a part of the name", s.Dir, r)
				break
			}
		}
		// A guest has no need to create device nodes and file capabilities on the host.
		args = []string{"-f", listen, "-o", "source=" + s.Dir, "-o", "sandbox=namespace", "-o", "modcaps=-mknod:-setfcap", "-o", "log_level=warn"}
	} else {
		sandbox := "namespace"
		if !d.Namespaces {
			sandbox = "none"
		}
		args = []string{listen, "--shared-dir=" + s.Dir, "--sandbox=" + sandbox, "--log-level=error"}
		if s.ReadOnly {
			args = append(args, "--readonly")
		}
	}
	b.helper(Helper{Name: virtiofsd, Serves: s.Tag, Executable: d.Path, Args: args, Socket: s.Socket, Dispensable: true})
}

// nineP has QEMU itself serve a folder. QEMU follows no symbolic link of the host: links are
// resolved by the guest, in its own file tree.
func (b *builder) nineP(field string, i int, s Share) {
	id := shareID(i)
	props := []Prop{{"path", Str(s.Dir)}, {"security_model", Str("none")}, {"multidevs", Str("remap")}}
	if s.ReadOnly {
		props = append(props, Prop{"readonly", Bool(true)})
	}
	b.add(Option{
		Flag: "-fsdev", HeadKey: "fsdriver", Head: "local", ID: id + "-files", Props: props,
		Why: "QEMU reads and writes the folder as its own user; it follows no link out of it",
	})
	b.device(field, "virtio-9p-pci", id, "a folder of the host, by a protocol that older guests know",
		behindSharePort(i, Prop{"fsdev", Ref(id + "-files")}, Prop{"mount_tag", Str(s.Tag)})...)
}
