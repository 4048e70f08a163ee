package qga

import (
	"context"
	"fmt"
)

// ShutdownMode is how a guest is to shut down.
type ShutdownMode string

// The modes of guest-shutdown.
const (
	Powerdown ShutdownMode = "powerdown" // switches the machine off
	Reboot    ShutdownMode = "reboot"
	Halt      ShutdownMode = "halt" // stops the guest; the machine stays on
)

// Shutdown asks the guest to shut down (guest-shutdown). The agent answers only on failure, with an
// *Error; nil means that the agent has accepted the command, or that the machine has already ended.
// QEMU's events report whether the guest shuts down. ErrNoAnswer means that it is unknown whether
// the command was accepted.
func (c *Client) Shutdown(ctx context.Context, mode ShutdownMode) error {
	return c.executeSilent(ctx, "guest-shutdown", struct {
		Mode ShutdownMode `json:"mode"`
	}{mode})
}

// VCPU is a processor as the guest sees it.
type VCPU struct {
	LogicalID int  `json:"logical-id"`
	Online    bool `json:"online"`
	// CanOffline reports whether Online may be set to false. It is ignored by SetVCPUs.
	CanOffline bool `json:"can-offline,omitempty"`
}

// GetVCPUs queries the guest's processors, in no particular order (guest-get-vcpus).
func (c *Client) GetVCPUs(ctx context.Context) ([]VCPU, error) {
	return call[[]VCPU](ctx, c, "guest-get-vcpus", nil)
}

// SetVCPUs switches processors on and off and returns how many of the list were processed, from its
// start (guest-set-vcpus). If that is not the whole list, the guest refused the next one: call it
// again from there for the reason.
func (c *Client) SetVCPUs(ctx context.Context, cpus []VCPU) (int, error) {
	const command = "guest-set-vcpus"
	type setting struct {
		LogicalID int  `json:"logical-id"`
		Online    bool `json:"online"`
	}
	settings := make([]setting, len(cpus))
	for i, cpu := range cpus {
		settings[i] = setting{cpu.LogicalID, cpu.Online}
	}
	n, err := call[int](ctx, c, command, struct {
		VCPUs []setting `json:"vcpus"`
	}{settings})
	if err == nil && (n < 0 || n > len(cpus)) {
		return 0, fmt.Errorf("qga: %s: %w: %d of %d processors", command, ErrProtocol, n, len(cpus))
	}
	return n, err
}
