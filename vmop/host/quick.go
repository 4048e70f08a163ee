package host

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"path"
	"regexp"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/vmop/sdk/vmop/spec"
)

// ImageMachine describes a machine to be created from a cloud image.
type ImageMachine struct {
	Namespace, Name string
	CPUs            int32
	Memory          resource.Quantity
	// DiskSize is the size of its only disk, [SystemDisk].
	DiskSize resource.Quantity
	// User is created in the guest by cloud-init, with the right to use sudo, and logs in with one
	// of the SSHKeys, which are lines of an authorized_keys file.
	User    string
	SSHKeys []string
	// Forwards are ports of this host that are forwarded to the guest.
	Forwards []spec.HostForward
}

// SystemDisk is the name of the disk of a machine from an image, as in Given.Disks.
const SystemDisk = "system-disk"

var userName = regexp.MustCompile(`^[a-z_][a-z0-9_-]{0,31}$`)

// Machine returns the machine; [spec.Marshal] returns its manifest.
func (w ImageMachine) Machine() (*spec.VirtualMachine, error) {
	var errs []error
	if !userName.MatchString(w.User) || w.User == "root" {
		errs = append(errs, fmt.Errorf("user %q: want another name than root, of small letters, digits, hyphens and underscores", w.User))
	}
	for _, key := range w.SSHKeys {
		errs = append(errs, checkKey(key))
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	user, err := json.Marshal(map[string]any{"users": []any{map[string]any{
		"name": w.User, "sudo": "ALL=(ALL) NOPASSWD:ALL", "shell": "/bin/bash", "lock_passwd": true, "ssh_authorized_keys": w.SSHKeys,
	}}})
	if err != nil {
		return nil, err
	}
	vm := spec.NewVirtualMachine(w.Namespace, w.Name)
	vm.Spec.CloudInit = &spec.CloudInit{UserData: &runtime.RawExtension{Raw: user}}
	m := &vm.Spec.VM
	m.State = spec.StateRunning
	m.MaximumCPUs, m.CurrentCPUs = &w.CPUs, &w.CPUs
	m.MaximumRAM = &w.Memory
	m.Networks = []spec.Network{{User: &spec.UserNetwork{HostForwards: w.Forwards}}}
	m.Disks = []spec.Disk{{VolumeClaimTemplate: &spec.VolumeClaimTemplate{
		Metadata: spec.EmbeddedObjectMeta{Name: strings.TrimSuffix(SystemDisk, "-disk")},
		Spec: spec.VolumeClaimSpec{
			Resources: corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: w.DiskSize}},
		},
	}}}
	m.Display = &spec.Display{}
	return vm, nil
}

func checkKey(line string) error {
	switch {
	case strings.Contains(line, "PRIVATE KEY"):
		return errors.New("an SSH key is a private one: the guest gets the public one, of the file that ends in .pub")
	case strings.ContainsAny(line, "\n\r") || !keyLine.MatchString(line):
		return fmt.Errorf("%.40q is no public SSH key: want a line such as ssh-ed25519 AAAA…", line)
	}
	return nil
}

var keyLine = regexp.MustCompile(`^(ssh-|ecdsa-|sk-)[a-zA-Z0-9@.-]+ [A-Za-z0-9+/=]+( |$)`)

// PublicKeys returns the keys of a file in the form of authorized_keys or of a .pub file.
func PublicKeys(text string) ([]string, error) {
	var out []string
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		if err := checkKey(line); err != nil {
			return nil, err
		}
		out = append(out, line)
	}
	return out, nil
}

// ParseForward parses [ADDRESS:]PORT:GUESTPORT[/tcp|/udp].
func ParseForward(text string) (spec.HostForward, error) {
	bad := fmt.Errorf("%q: want [ADDRESS:]PORT:GUESTPORT or the same with /udp, as in 8080:80", text)
	ports, protocol, ok := strings.Cut(text, "/")
	if !ok {
		protocol = string(spec.ForwardTCP)
	}
	f := spec.HostForward{Protocol: spec.ForwardProtocol(protocol)}
	if f.Protocol != spec.ForwardTCP && f.Protocol != spec.ForwardUDP {
		return f, bad
	}
	parts := strings.Split(ports, ":")
	if len(parts) == 3 {
		if ip := net.ParseIP(parts[0]); ip == nil || ip.To4() == nil {
			return f, bad
		}
		f.HostAddress, parts = parts[0], parts[1:]
	}
	if len(parts) != 2 {
		return f, bad
	}
	for i, to := range []*int32{&f.HostPort, &f.GuestPort} {
		n, err := strconv.ParseUint(parts[i], 10, 16)
		if err != nil || n == 0 {
			return f, bad
		}
		*to = int32(n)
	}
	return f, nil
}

const sshPort = 22

// SSHForward returns the address and port of this host that are forwarded to the machine's SSH
// server.
func SSHForward(vm *spec.VirtualMachine) (address string, port int32, ok bool) {
	if vm == nil {
		return "", 0, false
	}
	for _, n := range vm.Spec.VM.Networks {
		if n.User == nil {
			continue
		}
		for _, f := range n.User.HostForwards {
			if f.GuestPort == sshPort && f.Protocol != spec.ForwardUDP {
				address = f.HostAddress
				if address == "" || address == "0.0.0.0" {
					address = "127.0.0.1"
				}
				return address, f.HostPort, true
			}
		}
	}
	return "", 0, false
}

var notInLabel = regexp.MustCompile(`[^a-z0-9]+`)

// NameOfImage is the default name of a machine from an image.
func NameOfImage(image string) string {
	base, _, _ := strings.Cut(image, "?")
	base = path.Base(base)
	if strings.HasPrefix(image, "oci") { // a digest, or a file without a directory
		base, _, _ = strings.Cut(base, "@")
		base = strings.TrimPrefix(strings.TrimPrefix(base, "oci-archive:"), "oci-layout:")
	}
	if _, public := FindPublicImage(image); !public { // their names have no extension
		base = strings.TrimSuffix(base, path.Ext(base))
	}
	name := strings.Trim(notInLabel.ReplaceAllString(strings.ToLower(base), "-"), "-")
	if name == "" || name[0] >= '0' && name[0] <= '9' {
		name = "vm-" + name
	}
	return strings.Trim(name[:min(len(name), 40)], "-")
}
