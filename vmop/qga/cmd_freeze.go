package qga

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// FreezeStatus reports whether the guest's file systems are frozen.
type FreezeStatus string

// The states of guest-fsfreeze-status. Newer agents may have others.
const (
	FSThawed FreezeStatus = "thawed"
	FSFrozen FreezeStatus = "frozen"
)

// FSFreeze flushes and freezes the file systems at the mount points, or all that can be frozen, and
// returns how many are frozen (guest-fsfreeze-freeze, guest-fsfreeze-freeze-list). Programs that
// write block until [Client.FSThaw]: call that in any case, also after an error, and with another
// context. While frozen, the agent refuses most other commands. Freezing takes as long as the guest
// needs for flushing.
func (c *Client) FSFreeze(ctx context.Context, mountpoints ...string) (int, error) {
	if len(mountpoints) == 0 {
		return call[int](ctx, c, "guest-fsfreeze-freeze", nil)
	}
	return call[int](ctx, c, "guest-fsfreeze-freeze-list", struct {
		Mountpoints []string `json:"mountpoints"`
	}{mountpoints})
}

// FSThaw thaws all frozen file systems and returns how many there were (guest-fsfreeze-thaw). It is
// no error if there were none.
func (c *Client) FSThaw(ctx context.Context) (int, error) {
	return call[int](ctx, c, "guest-fsfreeze-thaw", nil)
}

// FSFreezeStatus queries whether file systems are frozen (guest-fsfreeze-status).
func (c *Client) FSFreezeStatus(ctx context.Context) (FreezeStatus, error) {
	return call[FreezeStatus](ctx, c, "guest-fsfreeze-status", nil)
}

// thawTimeout bounds the thawing at the end of Frozen, which may have to wait for an agent that
// still freezes. thawRetry is when the request is repeated, in case an agent was restarted and has
// lost it.
const (
	thawTimeout = time.Minute
	thawRetry   = 15 * time.Second
)

// ErrStillFrozen means that file systems could not be thawed: programs in the guest that write
// block until they are.
var ErrStillFrozen = errors.New("the guest's file systems may still be frozen")

// Frozen freezes as FSFreeze does, calls do with the number of frozen file systems, and thaws: also
// if freezing has failed halfway, if do fails or panics, and if ctx has ended. The context of do
// ends after limit, which bounds how long the guest's programs block; limit must be positive.
//
// If the host program is killed meanwhile, the guest stays frozen: agents have no timeout for it. A
// later client can check with FSFreezeStatus and thaw.
func (c *Client) Frozen(ctx context.Context, limit time.Duration, do func(ctx context.Context, frozen int) error, mountpoints ...string) (err error) {
	if limit <= 0 {
		return fmt.Errorf("qga: frozen for %v: want a positive limit", limit)
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	defer func() {
		thaw, cancel := context.WithTimeout(context.WithoutCancel(ctx), thawTimeout)
		defer cancel()
		if terr := c.thaw(thaw); terr != nil {
			err = errors.Join(err, fmt.Errorf("%w: %w", ErrStillFrozen, terr))
		}
	}()
	frozen, err := c.FSFreeze(ctx, mountpoints...)
	if err != nil {
		return err
	}
	return do(ctx, frozen)
}

func (c *Client) thaw(ctx context.Context) error {
	for {
		try, cancel := context.WithTimeout(ctx, thawRetry)
		_, err := c.FSThaw(try)
		cancel()
		if !errors.Is(err, ErrNoAnswer) || ctx.Err() != nil {
			return err
		}
	}
}
