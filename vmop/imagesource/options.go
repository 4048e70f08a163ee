package imagesource

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// defaultMaxSize is the maximum size of an image if Options.MaxSize is not set, in bytes.
const defaultMaxSize = 256 << 30

// ErrTooLarge means that an image, or the content it is unpacked from, is larger than allowed.
var ErrTooLarge = errors.New("it is too large")

// Step is a step of [Fetch].
type Step string

// The values of Step, in their order.
const (
	Downloading Step = "downloading"
	Verifying   Step = "verifying"
	Unpacking   Step = "unpacking"
	Copying     Step = "copying"
	Converting  Step = "converting"
)

// Progress is the progress of [Fetch].
type Progress struct {
	Step Step
	// Done and Total are bytes of the input of this step; Total is 0 if unknown.
	Done, Total int64
	// Rate is bytes per second since the step began, without resumed data.
	Rate int64
}

// Options configure a fetch.
type Options struct {
	// MaxSize limits the unpacked image and the disk in it, in bytes; 0 means 256 GiB.
	MaxSize int64
	// MaxDisk limits the disk instead of MaxSize, for an image that is only stored: there, only the
	// file takes space.
	MaxDisk int64
	// Local selects which addresses of this host are allowed.
	Local Local
	// Stall is how long a server may send nothing; 0 means a minute.
	Stall time.Duration
	// Progress is called often; nil for none.
	Progress func(Progress)
	// Take moves a file of this host, if it can be used unchanged, instead of copying it. The
	// caller must own it.
	Take bool
	// Have is the version that the caller already has: if it is current, Fetch creates no file and
	// returns ErrUnchanged. Files are always fetched.
	Have Version

	// pause replaces the wait before a download is resumed, in tests.
	pause func(ctx context.Context, failures int) error
}

func (o Options) maxSize() int64 {
	if o.MaxSize > 0 {
		return o.MaxSize
	}
	return defaultMaxSize
}

func (o Options) stall() time.Duration {
	if o.Stall > 0 {
		return o.Stall
	}
	return defaultStall
}

func (o Options) meter(step Step) func(done, total int64) {
	if o.Progress == nil {
		return func(int64, int64) {}
	}
	var started time.Time
	var first int64
	return func(done, total int64) {
		if started.IsZero() || done < first {
			started, first = time.Now(), done
		}
		p := Progress{Step: step, Done: done, Total: total}
		if s := time.Since(started).Seconds(); s > 0 {
			p.Rate = int64(float64(done-first) / s)
		}
		o.Progress(p)
	}
}

func quantity(n int64) string {
	for _, u := range []struct {
		shift uint
		name  string
	}{{30, "GiB"}, {20, "MiB"}, {10, "KiB"}} {
		if n >= 1<<u.shift {
			whole, tenth := n>>u.shift, (n&(1<<u.shift-1))*10>>u.shift
			if tenth == 0 || whole >= 100 {
				return fmt.Sprintf("%d %s", whole, u.name)
			}
			return fmt.Sprintf("%d.%d %s", whole, tenth, u.name)
		}
	}
	return fmt.Sprintf("%d bytes", n)
}
