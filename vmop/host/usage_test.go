package host

import (
	"fmt"
	"math"
	"os"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// The kernel's own text of this process is understood, and whatever a program is
// called, its fields are where they are.
func TestParseStat(t *testing.T) {
	own, err := os.ReadFile("/proc/self/stat")
	if err != nil {
		t.Fatal(err)
	}
	if _, memory, err := parseStat(string(own), os.Getpagesize()); err != nil || memory <= 0 {
		t.Errorf("%d bytes, %v", memory, err)
	}
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.String().Draw(t, "name")
		user, system, pages := rapid.Int64Range(0, 1<<40).Draw(t, "user"), rapid.Int64Range(0, 1<<40).Draw(t, "system"), rapid.Int64Range(0, 1<<30).Draw(t, "pages")
		text := fmt.Sprintf("1 (%s) S%s %d %d%s %d%s\n", name, strings.Repeat(" 1", 10), user, system, strings.Repeat(" 1", 8), pages, strings.Repeat(" 1", 20))
		cpu, memory, err := parseStat(text, 4096)
		if cpu != time.Duration(user+system)*10*time.Millisecond || memory != pages*4096 || err != nil {
			t.Fatalf("%q: %v, %d, %v", text, cpu, memory, err)
		}
	})
	for _, text := range []string{"", "1 (a) S", "1 a S 1", "1 (a) S" + strings.Repeat(" x", 30)} {
		if _, _, err := parseStat(text, 4096); err == nil {
			t.Errorf("%q was understood", text)
		}
	}
}

func TestTapName(t *testing.T) {
	for info, want := range map[string]string{
		"pos:\t0\nflags:\t02\niff:\tvmtap0\n": "vmtap0", "pos:\t0\n": "", "iff:\t../x\n": "", "iff:\t\n": "",
	} {
		if got := tapName(info); got != want {
			t.Errorf("%q: %q, want %q", info, got, want)
		}
	}
}

// A load is never negative, not a number or without an end.
func TestLoad(t *testing.T) {
	begin := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	rapid.Check(t, func(t *rapid.T) {
		n := func(label string) int64 { return rapid.Int64Range(0, 1<<50).Draw(t, label) }
		before := Usage{At: begin, CPU: time.Duration(n("cpu")), DiskRead: n("read"), NetSent: n("sent")}
		after := Usage{At: begin.Add(time.Duration(rapid.Int64Range(-1e9, 1e12).Draw(t, "later"))), CPU: time.Duration(n("cpu")), DiskRead: n("read"), NetSent: n("sent")}
		l := after.Since(before)
		for _, v := range []float64{l.CPU, l.DiskRead, l.DiskWritten, l.NetReceived, l.NetSent} {
			if v < 0 || math.IsNaN(v) || math.IsInf(v, 0) {
				t.Fatalf("%+v", l)
			}
		}
	})
	got := Usage{At: begin.Add(2 * time.Second), CPU: 3 * time.Second, DiskRead: 100}.Since(Usage{At: begin, CPU: time.Second})
	if got.CPU != 1 || got.DiskRead != 50 {
		t.Errorf("%+v", got)
	}
}
