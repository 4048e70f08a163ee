package qga

import "context"

// FreezeStatus says whether the guest's file systems are frozen.
type FreezeStatus string

// The states of guest-fsfreeze-status. Others may come.
const (
	FSThawed FreezeStatus = "thawed"
	FSFrozen FreezeStatus = "frozen"
)

// FSFreeze flushes and freezes the file systems at the mount points, or all
// that can be frozen, and returns how many are frozen (guest-fsfreeze-freeze,
// guest-fsfreeze-freeze-list). Programs that write wait until [Client.FSThaw]:
// call that in any case, also after an error, and with a context that is not
// this call's. While frozen, the agent refuses most other commands. Freezing may
// take as long as the guest needs for flushing.
func (c *Client) FSFreeze(ctx context.Context, mountpoints ...string) (int, error) {
	if len(mountpoints) == 0 {
		return call[int](ctx, c, "guest-fsfreeze-freeze", nil)
	}
	return call[int](ctx, c, "guest-fsfreeze-freeze-list", struct {
		Mountpoints []string `json:"mountpoints"`
	}{mountpoints})
}

// FSThaw thaws what is frozen and returns how many file systems that were
// (guest-fsfreeze-thaw). Nothing frozen is no error.
func (c *Client) FSThaw(ctx context.Context) (int, error) {
	return call[int](ctx, c, "guest-fsfreeze-thaw", nil)
}

// FSFreezeStatus asks whether file systems are frozen (guest-fsfreeze-status).
func (c *Client) FSFreezeStatus(ctx context.Context) (FreezeStatus, error) {
	return call[FreezeStatus](ctx, c, "guest-fsfreeze-status", nil)
}
