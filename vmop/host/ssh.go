package host

import (
	"fmt"
	"net"
	"strconv"
	"strings"

	"github.com/vmop/sdk/vmop/spec"
)

// SSHOption is an option of ssh_config(5).
type SSHOption struct{ Name, Value string }

// SSHOptions are the options by which ssh reaches a machine's guest at a forwarded
// port: its host keys are in a file of the machine's own, and those of another
// machine, which may have had the port before, do not count. Nothing of the user's
// configuration is needed.
func (m *Machine) SSHOptions(vm *spec.VirtualMachine, s SSH) ([]SSHOption, error) {
	address, port, ok := SSHForward(vm)
	if !ok {
		return nil, fmt.Errorf("%s: no port of this host leads to the guest's port 22: add one to the manifest (spec.vm.networks[].user.hostForwards: {hostPort: %d, guestPort: 22}) and restart it", m.FullName(), firstSSHPort)
	}
	out := []SSHOption{
		{"HostName", address}, {"Port", strconv.Itoa(int(port))},
		{"HostKeyAlias", "vmop." + m.Namespace + "." + m.Name},
		{"UserKnownHostsFile", sshFile(m.Data + "/" + knownHostsFile)},
		{"StrictHostKeyChecking", "accept-new"},
	}
	if s.User != "" {
		out = append(out, SSHOption{"User", s.User})
	}
	if s.Identity != "" {
		out = append(out, SSHOption{"IdentityFile", sshFile(s.Identity)}, SSHOption{"IdentitiesOnly", "yes"})
	}
	return out, nil
}

// sshFile is a path that ssh takes as it is: it splits at blanks and expands
// percent signs and, at the beginning, a tilde.
func sshFile(path string) string {
	return `"` + strings.NewReplacer("%", "%%", `\`, `\\`, `"`, `\"`).Replace(path) + `"`
}

// SSHArguments are options as arguments of ssh and scp.
func SSHArguments(options []SSHOption) []string {
	var out []string
	for _, o := range options {
		out = append(out, "-o", o.Name+"="+o.Value)
	}
	return out
}

// SSHConfig is a section of ssh_config(5).
func SSHConfig(host string, options []SSHOption) string {
	var b strings.Builder
	fmt.Fprintf(&b, "Host %s\n", host)
	for _, o := range options {
		fmt.Fprintf(&b, "  %s %s\n", o.Name, o.Value)
	}
	return b.String()
}

// Ports that are looked at for guests' SSH servers.
const (
	firstSSHPort = 2201
	lastSSHPort  = 2999
)

// FreeSSHPort is a port of the loopback interface for a guest's SSH server that
// nobody listens on and that no machine of this host has in its manifest.
func (h *Host) FreeSSHPort() (int32, error) {
	taken := map[int32]bool{}
	machines, err := h.List(ListOptions{})
	if err != nil {
		return 0, err
	}
	for i := range machines {
		o, err := machines[i].Object()
		if err != nil {
			continue // one that cannot be read does not run
		}
		for _, n := range o.VirtualMachine.Spec.VM.Networks {
			if n.User == nil {
				continue
			}
			for _, f := range n.User.HostForwards {
				taken[f.HostPort] = true
			}
		}
	}
	for port := int32(firstSSHPort); port <= lastSSHPort; port++ {
		if taken[port] {
			continue
		}
		l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(int(port))))
		if err == nil {
			return port, l.Close()
		}
	}
	return 0, fmt.Errorf("no port from %d to %d is free for the guest's SSH server", firstSSHPort, lastSSHPort)
}

// SetSSH remembers how one gets into the guest.
func (m *Machine) SetSSH(s SSH) error {
	def, err := m.Definition()
	if err != nil {
		return err
	}
	def.SSH = s
	return def.write(m.Directories)
}
