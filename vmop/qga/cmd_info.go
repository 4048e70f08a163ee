package qga

import (
	"context"
	"encoding/json"
	"fmt"
	"net/netip"
	"time"
)

// Ping checks that the agent answers (guest-ping).
func (c *Client) Ping(ctx context.Context) error {
	_, err := c.Execute(ctx, "guest-ping", nil)
	return err
}

// Info describes an agent.
type Info struct {
	Version  string        `json:"version"` // of the agent, such as "7.2.22"
	Commands []CommandInfo `json:"supported_commands"`
}

// CommandInfo is a command of an agent.
type CommandInfo struct {
	Name    string `json:"name"`
	Enabled bool   `json:"enabled"` // false: disabled in the agent's configuration
	Answers bool   `json:"success-response"`
}

// Supports reports whether the agent has the command and has it enabled.
func (i Info) Supports(command string) bool {
	for _, c := range i.Commands {
		if c.Name == command {
			return c.Enabled
		}
	}
	return false
}

// Info queries the agent's version and commands (guest-info).
func (c *Client) Info(ctx context.Context) (Info, error) {
	return call[Info](ctx, c, "guest-info", nil)
}

// OSInfo describes the guest's operating system. Most fields are those of os-release(5), and any
// may be empty.
type OSInfo struct {
	KernelRelease string `json:"kernel-release"`
	KernelVersion string `json:"kernel-version"`
	Machine       string `json:"machine"` // such as "x86_64"
	ID            string `json:"id"`      // such as "debian"
	Name          string `json:"name"`
	PrettyName    string `json:"pretty-name"`
	Version       string `json:"version"`
	VersionID     string `json:"version-id"`
	Variant       string `json:"variant"`
	VariantID     string `json:"variant-id"`

	// Raw is the agent's answer, undecoded. A VirtualMachine's status.osinfo is this object.
	Raw json.RawMessage `json:"-"`
}

// OSInfo queries the operating system (guest-get-osinfo).
func (c *Client) OSInfo(ctx context.Context) (OSInfo, error) {
	raw, err := call[json.RawMessage](ctx, c, "guest-get-osinfo", nil)
	if err != nil {
		return OSInfo{}, err
	}
	info := OSInfo{Raw: raw}
	if err := json.Unmarshal(raw, &info); err != nil {
		return OSInfo{}, fmt.Errorf("qga: guest-get-osinfo: %w: %w", ErrProtocol, err)
	}
	return info, nil
}

// HostName queries the guest's host name (guest-get-host-name).
func (c *Client) HostName(ctx context.Context) (string, error) {
	r, err := call[struct {
		Name string `json:"host-name"`
	}](ctx, c, "guest-get-host-name", nil)
	return r.Name, err
}

// Interface is a network interface as the guest sees it.
type Interface struct {
	Name            string         // such as "eth0"
	HardwareAddress string         // such as "52:54:00:12:34:56", may be empty
	Addresses       []netip.Prefix // with the length of their network's prefix
}

// Interfaces queries the network interfaces with their addresses, including the loopback
// (guest-network-get-interfaces).
func (c *Client) Interfaces(ctx context.Context) ([]Interface, error) {
	const command = "guest-network-get-interfaces"
	raw, err := call[[]struct {
		Name      string `json:"name"`
		MAC       string `json:"hardware-address"`
		Addresses []struct {
			Address string `json:"ip-address"`
			Prefix  int    `json:"prefix"`
		} `json:"ip-addresses"`
	}](ctx, c, command, nil)
	if err != nil {
		return nil, err
	}
	interfaces := make([]Interface, 0, len(raw))
	for _, r := range raw {
		i := Interface{Name: r.Name, HardwareAddress: r.MAC}
		for _, a := range r.Addresses {
			address, err := netip.ParseAddr(a.Address)
			if err != nil {
				return nil, fmt.Errorf("qga: %s: %w: interface %q: %w", command, ErrProtocol, r.Name, err)
			}
			// A zone is local to the guest, and a prefix has none.
			prefix := netip.PrefixFrom(address.WithZone(""), a.Prefix)
			if !prefix.IsValid() {
				return nil, fmt.Errorf("qga: %s: %w: interface %q: prefix length %d", command, ErrProtocol, r.Name, a.Prefix)
			}
			i.Addresses = append(i.Addresses, prefix)
		}
		interfaces = append(interfaces, i)
	}
	return interfaces, nil
}

// GetTime queries the guest's clock (guest-get-time).
func (c *Client) GetTime(ctx context.Context) (time.Time, error) {
	ns, err := call[int64](ctx, c, "guest-get-time", nil)
	if err != nil {
		return time.Time{}, err
	}
	return time.Unix(0, ns).UTC(), nil
}
