package host

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/vmop/sdk/vmop/qemucmd"
	"github.com/vmop/sdk/vmop/qmp"
)

// Pause stops the processors of a running machine: the guest is not notified, and its memory is
// kept. It reports whether the guest was not paused before. The machine's status follows a moment
// later, see [Host.Wait].
func (m *Machine) Pause(ctx context.Context) (changed bool, err error) {
	err = m.control(ctx, "pause", func(c *qmp.Client) (err error) {
		changed, err = PauseGuest(ctx, c)
		return err
	})
	return changed, err
}

// Resume resumes a guest that was paused, that waits because of an error of its disk, or that has
// suspended itself. It reports whether the guest did not execute before; one that did, and may be
// suspended to idle, gets a press of the Shift key. An interrupted copy is completed first. File
// systems that a copy has left frozen are thawed by [Machine.Thaw].
func (m *Machine) Resume(ctx context.Context) (changed bool, err error) {
	if changed, err = m.finishCopy(ctx); changed || err != nil {
		if err != nil {
			err = fmt.Errorf("resume %s: %w", m.FullName(), err)
		}
		return changed, err
	}
	err = m.control(ctx, "resume", func(c *qmp.Client) (err error) {
		changed, err = ResumeGuest(ctx, c)
		return err
	})
	if why := m.Message(); err != nil && m.Status == StatusPaused && why != "" {
		err = fmt.Errorf("%w: %s", err, why)
	}
	return changed, err
}

// Reset presses the reset button of a running machine: the guest is not asked, and boots in the
// same QEMU. A paused machine is resumed.
func (m *Machine) Reset(ctx context.Context) error {
	if _, err := m.finishCopy(ctx); err != nil {
		return fmt.Errorf("reset %s: %w", m.FullName(), err)
	}
	return m.control(ctx, "reset", func(c *qmp.Client) error { return ResetGuest(ctx, c) })
}

// Screenshot returns a picture of an output of a running machine. It may show secrets.
func (m *Machine) Screenshot(ctx context.Context, o ScreenshotOptions) (picture []byte, err error) {
	err = m.control(ctx, "screenshot of", func(c *qmp.Client) (err error) {
		picture, err = Screenshot(ctx, c, o)
		return err
	})
	return picture, err
}

// Console connects to the serial console of a running machine: first comes the output that its
// runner has kept, 64 KiB at most, then new output, until the machine ends; written data is the
// console's input. Any number of connections may be open.
func (m *Machine) Console(ctx context.Context) (net.Conn, error) {
	var d net.Dialer
	conn, err := d.DialContext(ctx, "unix", m.Socket(qemucmd.SocketConsole))
	if err != nil {
		return nil, fmt.Errorf("serial console of %s: %w", m.FullName(), err)
	}
	return conn, nil
}

func (m *Machine) control(ctx context.Context, verb string, ask func(*qmp.Client) error) error {
	if err := m.monitor(ctx, ask); err != nil {
		return fmt.Errorf("%s %s: %w", verb, m.FullName(), err)
	}
	return nil
}

// PauseGuest is [Machine.Pause] by a connection to the monitor of a QEMU.
func PauseGuest(ctx context.Context, c *qmp.Client) (changed bool, err error) {
	before, err := qmp.Do(ctx, c, qmp.QueryStatus{})
	if err != nil || before.Status == qmp.RunStatePaused {
		return false, err
	}
	if _, err := qmp.Do(ctx, c, qmp.Stop{}); err != nil {
		return false, err
	}
	// QEMU accepts stop for a machine that does not run, and does nothing.
	after, err := qmp.Do(ctx, c, qmp.QueryStatus{})
	if err != nil {
		return false, err
	}
	if after.Status != qmp.RunStatePaused {
		return false, fmt.Errorf("the guest cannot be paused: QEMU's run state is %s", after.Status)
	}
	return true, nil
}

// ResumeGuest is [Machine.Resume] by a connection to the monitor of a QEMU.
func ResumeGuest(ctx context.Context, c *qmp.Client) (changed bool, err error) {
	before, err := qmp.Do(ctx, c, qmp.QueryStatus{})
	switch {
	case err != nil:
		return false, err
	case before.Running:
		// A machine has no S3, and in suspend-to-idle Linux wakes up by the keyboard.
		_, err := qmp.Do(ctx, c, qmp.SendKey{Keys: []qmp.KeyValue{{Type: qmp.KeyQCode, Data: "shift"}}})
		return false, err
	case before.Status == qmp.RunStateSuspended:
		// cont resumes a paused machine only.
		_, err = qmp.Do(ctx, c, qmp.SystemWakeup{})
	case before.Status == qmp.RunStateIOError:
		err = retry(ctx, c)
	default:
		_, err = qmp.Do(ctx, c, qmp.Cont{})
	}
	if err != nil {
		return false, err
	}
	after, err := qmp.Do(ctx, c, qmp.QueryStatus{})
	if err != nil {
		return false, err
	}
	if !after.Running {
		return false, fmt.Errorf("the guest does not go on: QEMU's run state is %s", after.Status)
	}
	return true, nil
}

// retryLimit bounds the wait for a guest that stops again.
const retryLimit = time.Second

// retry resumes a guest that waits for its disk. It executes until the failed request has failed
// again.
func retry(ctx context.Context, c *qmp.Client) error {
	events := c.Subscribe(8, qmp.StopEvent{}.QMPEvent())
	defer events.Close()
	if _, err := qmp.Do(ctx, c, qmp.Cont{}); err != nil {
		return err
	}
	again, cancel := context.WithTimeout(ctx, retryLimit)
	defer cancel()
	if _, err := events.Next(again); err != nil && again.Err() == nil {
		return err
	}
	return ctx.Err()
}

// ResetGuest is [Machine.Reset] by a connection to the monitor of a QEMU.
func ResetGuest(ctx context.Context, c *qmp.Client) error {
	events := c.Subscribe(8, qmp.ResetEvent{}.QMPEvent())
	defer events.Close()
	if _, err := qmp.Do(ctx, c, qmp.SystemReset{}); err != nil {
		return err
	}
	for {
		e, err := events.Next(ctx)
		if err != nil {
			return fmt.Errorf("wait for the reset: %w", err)
		}
		if reset, err := qmp.DecodeEvent[qmp.ResetEvent](e); err != nil {
			return err
		} else if !reset.Guest {
			break // not the guest's own at the same time
		}
	}
	// A reset does not resume the processors.
	_, err := qmp.Do(ctx, c, qmp.Cont{})
	return err
}

// PictureFormat is the format of a picture, by QEMU's name.
type PictureFormat string

// The formats of pictures.
const (
	PicturePNG PictureFormat = "png"
	PicturePPM PictureFormat = "ppm"
)

// ScreenshotOptions select a picture. The zero value is the first output, as PNG.
type ScreenshotOptions struct {
	// Output is the number of the output, counted from 0.
	Output int
	// Format is [PicturePNG] if empty.
	Format PictureFormat
}

// Screenshot is [Machine.Screenshot] by a connection to the monitor of a QEMU. QEMU writes the
// picture to memory: it gets no path, and leaves no file behind.
func Screenshot(ctx context.Context, c *qmp.Client, o ScreenshotOptions) ([]byte, error) {
	if o.Format == "" {
		o.Format = PicturePNG
	}
	shot := qmp.Screendump{Format: string(o.Format)}
	if o.Output > 0 { // the first one is QEMU's default, whatever the device's name
		if err := hasOutput(ctx, c, o.Output); err != nil {
			return nil, err
		}
		shot.Device, shot.Head = qemucmd.VideoID, o.Output
	}
	fd, err := unix.MemfdCreate("screenshot", unix.MFD_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("memory for the picture: %w", err)
	}
	memory := os.NewFile(uintptr(fd), "screenshot")
	defer memory.Close()
	// QEMU takes the descriptor of a set whose access mode is exactly what it wants.
	w, err := os.OpenFile(fmt.Sprintf("/proc/self/fd/%d", memory.Fd()), os.O_WRONLY, 0)
	if err != nil {
		return nil, fmt.Errorf("memory for the picture: %w", err)
	}
	set, err := qmp.Do(ctx, c, qmp.AddFD{Opaque: "screenshot"}, qmp.WithFile(w))
	if err = errors.Join(err, w.Close()); err != nil {
		return nil, err
	}
	shot.Filename = fmt.Sprintf("/dev/fdset/%d", set.FDSetID)
	_, err = qmp.Do(ctx, c, shot)
	_, rerr := qmp.Do(ctx, c, qmp.RemoveFD{FDSetID: set.FDSetID, FD: &set.FD})
	if err = errors.Join(err, rerr); err != nil {
		return nil, err
	}
	picture, err := io.ReadAll(memory)
	if err == nil && len(picture) == 0 {
		err = errors.New("QEMU wrote nothing")
	}
	return picture, err
}

// hasOutput exists because QEMU's own error would be about heads and consoles.
func hasOutput(ctx context.Context, c *qmp.Client, output int) error {
	raw, err := qmp.Do(ctx, c, qmp.QOMGet{Path: qemucmd.DevicePath(qemucmd.VideoID), Property: "max_outputs"})
	var outputs int
	if err == nil {
		err = json.Unmarshal(raw, &outputs)
	}
	switch {
	case err != nil:
		return fmt.Errorf("output %d: the number of outputs is not known: %w", output, err)
	case output >= outputs:
		return fmt.Errorf("there is no output %d: the machine was started with %d, counted from 0; spec.vm.display.outputs says how many", output, outputs)
	}
	return nil
}
