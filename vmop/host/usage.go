package host

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/vmop/sdk/vmop/qemucmd"
	"github.com/vmop/sdk/vmop/qmp"
)

// Usage is what a running machine has used since its start.
type Usage struct {
	// At is the time of the measurement.
	At time.Time
	// CPU is the time of QEMU's threads on this host's processors.
	CPU time.Duration
	// Memory is QEMU's resident memory, in bytes.
	Memory int64
	// DiskRead and DiskWritten are what the guest has read and written, in bytes.
	DiskRead, DiskWritten int64
	// NetReceived and NetSent are what the guest has received and sent by tap interfaces, in bytes.
	// QEMU does not count its user networks.
	NetReceived, NetSent int64
	// Taps is the number of tap interfaces.
	Taps int
}

// Usage measures what a running machine has used.
func (m *Machine) Usage(ctx context.Context) (Usage, error) {
	fail := func(err error) (Usage, error) {
		return Usage{}, fmt.Errorf("usage of %s: %w", m.FullName(), err)
	}
	if m.QEMU == 0 {
		return fail(fmt.Errorf("it does not run (%s)", m.Status))
	}
	u := Usage{At: time.Now()}
	proc := filepath.Join("/proc", strconv.Itoa(m.QEMU))
	stat, err := os.ReadFile(filepath.Join(proc, "stat"))
	if err == nil {
		u.CPU, u.Memory, err = parseStat(string(stat), os.Getpagesize())
	}
	if err != nil {
		return fail(err)
	}
	if err := u.addTaps(proc); err != nil {
		return fail(err)
	}
	c, err := qmp.Dial(ctx, m.Socket(qemucmd.SocketToolMonitor), qmp.Options{Handshake: monitorGreeting})
	if err != nil {
		return fail(err)
	}
	stats, err := qmp.Do(ctx, c, qmp.QueryBlockStats{})
	if err = errors.Join(err, c.Close()); err != nil {
		return fail(err)
	}
	for _, s := range stats {
		u.DiskRead += s.Stats.ReadBytes
		u.DiskWritten += s.Stats.WriteBytes
	}
	return u, nil
}

// ticksPerSecond is USER_HZ, the same on all of Linux.
const ticksPerSecond = 100

// parseStat parses /proc/PID/stat, see proc_pid_stat(5).
func parseStat(text string, pageSize int) (cpu time.Duration, memory int64, err error) {
	// The second field is the program's name, which may contain any characters.
	end := strings.LastIndexByte(text, ')')
	fields := strings.Fields(text[end+1:])
	const first = 3 // the number of the field after the name
	var n [3]int64
	for i, field := range []int{14, 15, 24} {
		if end < 0 || field-first >= len(fields) {
			return 0, 0, fmt.Errorf("%.40q: want the fields of /proc/PID/stat", text)
		}
		if n[i], err = strconv.ParseInt(fields[field-first], 10, 64); err != nil {
			return 0, 0, fmt.Errorf("field %d of /proc/PID/stat: %w", field, err)
		}
	}
	return time.Duration(n[0]+n[1]) * (time.Second / ticksPerSecond), n[2] * int64(pageSize), nil
}

func (u *Usage) addTaps(proc string) error {
	files, err := filepath.Glob(filepath.Join(proc, "fdinfo", "*"))
	if err != nil {
		return err
	}
	seen := map[string]bool{}
	for _, file := range files {
		info, err := os.ReadFile(file)
		if errors.Is(err, fs.ErrNotExist) {
			continue // closed meanwhile
		}
		if err != nil {
			return err
		}
		name := tapName(string(info))
		if name == "" || seen[name] {
			continue
		}
		seen[name] = true
		// What the guest sends is received on the host's side.
		for counter, to := range map[string]*int64{"rx_bytes": &u.NetSent, "tx_bytes": &u.NetReceived} {
			data, err := os.ReadFile(filepath.Join("/sys/class/net", name, "statistics", counter))
			if err != nil {
				continue // it is in another network namespace
			}
			if n, err := strconv.ParseInt(strings.TrimSpace(string(data)), 10, 64); err == nil {
				*to += n
			}
		}
	}
	u.Taps = len(seen)
	return nil
}

func tapName(info string) string {
	for line := range strings.Lines(info) {
		if name, ok := strings.CutPrefix(line, "iff:"); ok {
			if name = strings.TrimSpace(name); filepath.IsLocal(name) && filepath.Base(name) == name {
				return name
			}
		}
	}
	return ""
}

// Load is what a machine uses per second.
type Load struct {
	// CPU is in processors of this host; 2 is two of them.
	CPU float64
	// The others are bytes per second.
	DiskRead, DiskWritten, NetReceived, NetSent float64
}

// Since returns the load between an earlier measurement and this one. A counter that has decreased,
// as of a restarted machine, counts as no load.
func (u Usage) Since(before Usage) Load {
	seconds := u.At.Sub(before.At).Seconds()
	if seconds <= 0 {
		return Load{}
	}
	rate := func(now, then int64) float64 { return float64(max(now-then, 0)) / seconds }
	return Load{
		CPU:      rate(int64(u.CPU), int64(before.CPU)) / float64(time.Second),
		DiskRead: rate(u.DiskRead, before.DiskRead), DiskWritten: rate(u.DiskWritten, before.DiskWritten),
		NetReceived: rate(u.NetReceived, before.NetReceived), NetSent: rate(u.NetSent, before.NetSent),
	}
}
