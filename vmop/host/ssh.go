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

// SSHOptions are the options by which ssh connects to a machine's guest at a forwarded port: its
// host keys are in a file of the machine's own, since another machine may have had the port before.
// They do not depend on the user's configuration.
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

// sshFile quotes a path: ssh splits at blanks and expands percent signs and, at the beginning, a
// tilde.
func sshFile(path string) string {
	return `"` + strings.NewReplacer("%", "%%", `\`, `\\`, `"`, `\"`).Replace(path) + `"`
}

// SSHArguments returns options as arguments of ssh and scp.
func SSHArguments(options []SSHOption) []string {
	var out []string
	for _, o := range options {
		out = append(out, "-o", o.Name+"="+o.Value)
	}
	return out
}

// SSHConfig returns a section of ssh_config(5).
func SSHConfig(host string, options []SSHOption) string {
	var b strings.Builder
	fmt.Fprintf(&b, "Host %s\n", host)
	for _, o := range options {
		fmt.Fprintf(&b, "  %s %s\n", o.Name, o.Value)
	}
	return b.String()
}

const (
	firstSSHPort = 2201
	lastSSHPort  = 2999
)

// FreeSSHPort returns a port of the loopback interface for a guest's SSH server that is neither in
// use nor in the manifest of a machine of this host.
func (h *Host) FreeSSHPort() (int32, error) {
	port, release, err := h.HoldSSHPort()
	if err != nil {
		return 0, err
	}
	return port, release()
}

// HoldSSHPort is [Host.FreeSSHPort] but occupies the port until release is called, which is done
// right before the machine is started: hosts with other directories, such as those of other users,
// choose another one meanwhile.
func (h *Host) HoldSSHPort() (port int32, release func() error, err error) {
	taken := map[int32]bool{}
	machines, err := h.List(ListOptions{})
	if err != nil {
		return 0, nil, err
	}
	for i := range machines {
		o, err := machines[i].Object()
		if err != nil {
			continue // a machine that cannot be read does not run
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
	for port = firstSSHPort; port <= lastSSHPort; port++ {
		if taken[port] {
			continue
		}
		l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(int(port))))
		if err == nil {
			return port, l.Close, nil
		}
	}
	return 0, nil, fmt.Errorf("no port from %d to %d is free for the guest's SSH server", firstSSHPort, lastSSHPort)
}

// SetSSH records how to log in to the guest.
func (m *Machine) SetSSH(s SSH) error {
	def, err := m.Definition()
	if err != nil {
		return err
	}
	def.SSH = s
	return def.write(m.Directories)
}
