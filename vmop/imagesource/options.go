package imagesource

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// defaultMaxSize is the maximum size of an image if Options.MaxSize is not set, in bytes.
const defaultMaxSize = 256 << 30

// ErrTooLarge means that an image, or what it is unpacked from, is larger than allowed.
var ErrTooLarge = errors.New("it is too large")

// Step is what [Fetch] is doing.
type Step string

// The values of Step, in their order.
const (
	Downloading Step = "downloading"
	Verifying   Step = "verifying"
	Unpacking   Step = "unpacking"
	Copying     Step = "copying"
	Converting  Step = "converting"
)

// Progress is how far [Fetch] is.
type Progress struct {
	Step Step
	// Done and Total are bytes of what is read in this step; Total is 0 if it is
	// unknown.
	Done, Total int64
	// Rate is bytes per second since the step began, without what was there before.
	Rate int64
}

// Options are how an image is fetched.
type Options struct {
	// MaxSize is what the image, unpacked, and the disk in it may have, in bytes; 0 is
	// 256 GiB.
	MaxSize int64
	// MaxDisk is what the disk in it may have, if that is not MaxSize: of an image that
	// is kept and not used as a disk the file alone takes room.
	MaxDisk int64
	// Local is which addresses of this host are allowed.
	Local Local
	// Stall is how long a server may send nothing; 0 is a minute.
	Stall time.Duration
	// Progress is called often, with how far Fetch is; nil for none.
	Progress func(Progress)
	// Take has a file of this host become the image, if it is one as it stands, rather
	// than a copy: it is the caller's, who has made it for this.
	Take bool
	// Have is the version of the source that the caller has already: if it is current, Fetch makes
	// nothing, and its error is ErrUnchanged. Files are always fetched.
	Have Version

	// pause is the wait before a download goes on; nil except in tests.
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

// meter reports the progress of one step.
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

// quantity formats a number of bytes for display.
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
