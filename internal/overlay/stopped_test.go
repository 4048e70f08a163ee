package overlay

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// bench is a machine's directory with two disks, of which one is elsewhere.
type bench struct {
	*testing.T
	data, elsewhere string
}

func newBench(t *testing.T, format string) *bench {
	t.Helper()
	if _, err := Tool(); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	b := &bench{T: t, data: filepath.Join(dir, "keeper"), elsewhere: filepath.Join(dir, "a, b=c%d.img")}
	b.ok(os.Mkdir(b.data, 0o700))
	for _, path := range []string{filepath.Join(b.data, "system.img"), b.elsewhere} {
		b.tool("create", "-q", "-f", format, path, "8M")
		b.io(format, path, "write -P 1 0 1M")
		b.ok(os.Chtimes(path, time.Time{}, time.Now().Add(-time.Hour)))
	}
	return b
}

func (b *bench) ok(err error) {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
}

func (b *bench) tool(args ...string) string {
	b.Helper()
	out, err := exec.Command("qemu-img", args...).CombinedOutput()
	if err != nil {
		b.Fatalf("qemu-img %q: %v: %s", args, err, out)
	}
	return string(out)
}

// io reads or writes an image as a guest does.
func (b *bench) io(format, path, command string) {
	b.Helper()
	out, err := exec.Command("qemu-io", "--image-opts", "-c", command, "driver="+format+",file.driver=file,file.filename="+strings.ReplaceAll(path, ",", ",,")).CombinedOutput()
	if err != nil || strings.Contains(string(out), "failed") {
		b.Fatalf("%s: %s: %v: %s", path, command, err, out)
	}
}

// begin makes the overlays of a copy and brings the journal to a phase.
func (b *bench) begin(format string, phase Phase) *Held {
	b.Helper()
	var disks []Disk
	for i, path := range []string{filepath.Join(b.data, "system.img"), b.elsewhere} {
		disks = append(disks, Disk{Name: filepath.Base(path), Image: ImageIn(b.data, path), Format: format, Overlay: string(rune('0'+i)) + ".qcow2"})
	}
	h, err := Begin(b.Context(), b.data, disks)
	b.ok(err)
	for _, d := range disks {
		b.ok(h.Make(b.Context(), d, 8<<20))
	}
	if slices.Contains([]Phase{Attached, Merging, Merged}, phase) {
		b.ok(h.Still())
	}
	b.ok(h.Write(phase))
	return h
}

// guest writes to the overlays.
func (b *bench) guest(h *Held) {
	b.Helper()
	for _, d := range h.Disks {
		b.io("qcow2", h.Overlay(d), "write -P 2 1M 1M")
	}
}

func (b *bench) has(format, path, pattern, where string) {
	b.Helper()
	b.io(format, path, "read -P "+pattern+" "+where)
}

func note([]string) error { return nil }

// What is left of a copy is merged, or dropped, by the phase in which it was left.
func TestSettle(t *testing.T) {
	for _, format := range []string{"raw", "qcow2"} {
		for _, phase := range []Phase{Making, Attaching, Attached, Merging, Merged} {
			t.Run(format+string(phase), func(t *testing.T) {
				b := newBench(t, format)
				h := b.begin(format, phase)
				b.guest(h)
				if info := b.tool("info", "-U", "--backing-chain", h.Overlay(h.Disks[0])); !strings.Contains(info, filepath.Join("..", "system.img")) || !strings.Contains(info, "backing file format: "+format) {
					t.Errorf("QEMU's tools do not find the image:\n%s", info)
				}
				b.ok(h.Close()) // its command was killed
				if !Left(b.data) {
					t.Error("nothing is left")
				}
				// The machine may get another name before it is started.
				renamed := filepath.Join(filepath.Dir(b.data), "kept")
				b.ok(os.Rename(b.data, renamed))
				merged, err := Settle(t.Context(), renamed, note)
				b.ok(err)
				want, pattern := 0, "0"
				if phase.Counts() {
					want, pattern = 2, "2"
				}
				if len(merged) != want || Exists(renamed) {
					t.Errorf("merged %q, overlays are left: %v", merged, Exists(renamed))
				}
				for _, path := range []string{filepath.Join(renamed, "system.img"), b.elsewhere} {
					b.has(format, path, "1", "0 1M")
					b.has(format, path, pattern, "1M 1M")
					if format == "qcow2" {
						b.tool("check", "-q", "-f", "qcow2", path)
					}
				}
				merged, err = Settle(t.Context(), renamed, note)
				if len(merged) != 0 || err != nil {
					t.Errorf("once more: %q, %v", merged, err)
				}
			})
		}
	}
}

// A merging that is interrupted is made again, from its beginning.
func TestSettleIsRepeated(t *testing.T) {
	b := newBench(t, "raw")
	h := b.begin("raw", Attached)
	b.guest(h)
	b.ok(h.Close())
	for n := 1; ; n++ {
		calls := 0
		_, err := settle(t.Context(), b.data, note, func() error {
			if calls++; calls == n {
				return errors.New("interrupted")
			}
			return nil
		})
		if err == nil {
			break
		}
		if !Exists(b.data) || !strings.Contains(err.Error(), "interrupted") {
			t.Fatal(err)
		}
	}
	b.has("raw", b.elsewhere, "2", "1M 1M")
	b.has("raw", filepath.Join(b.data, "system.img"), "2", "1M 1M")
}

// What was enlarged meanwhile stays so.
func TestSettleGrows(t *testing.T) {
	b := newBench(t, "qcow2")
	h := b.begin("qcow2", Merging)
	b.tool("resize", "-q", h.Overlay(h.Disks[0]), "12M")
	b.io("qcow2", h.Overlay(h.Disks[0]), "write -P 3 11M 1M")
	b.ok(h.Close())
	_, err := Settle(t.Context(), b.data, note)
	b.ok(err)
	b.has("qcow2", filepath.Join(b.data, "system.img"), "3", "11M 1M")
}

// Nothing is written over, and nothing is dropped, where something is not as it was left.
func TestSettleRefuses(t *testing.T) {
	for _, c := range []struct {
		name  string
		phase Phase
		spoil func(b *bench, h *Held)
		want  string
		is    error
	}{
		{"an image that somebody has written", Attached, func(b *bench, h *Held) { b.io("raw", b.elsewhere, "write -P 9 2M 1M") }, "what its guest wrote after that is in", ErrChanged},
		{"an image that was restored from a backup", Attached, func(b *bench, h *Held) {
			b.ok(os.Chtimes(b.elsewhere, time.Time{}, time.Now().Add(-time.Minute)))
		}, "if only its time was changed", ErrChanged},
		{"an image that is missing", Merging, func(b *bench, h *Held) { b.ok(os.Remove(b.elsewhere)) }, "put it back", nil},
		{"an overlay that is missing", Merging, func(b *bench, h *Held) { b.ok(os.Remove(h.Overlay(h.Disks[1]))) }, "if that may be lost, remove", nil},
		{"an overlay that is another file", Merging, func(b *bench, h *Held) { b.ok(os.WriteFile(h.Overlay(h.Disks[1]), []byte("x"), 0o600)) }, "is damaged", nil},
		{"a journal that is missing", Merging, func(b *bench, h *Held) { b.ok(os.Remove(h.path(journalFile))) }, "is missing, which says what is in them", nil},
		{"a journal that is damaged", Merging, func(b *bench, h *Held) { b.ok(os.WriteFile(h.path(journalFile), nil, 0o600)) }, "unexpected end", nil},
		{"a journal of a later version", Merging, func(b *bench, h *Held) {
			b.ok(os.WriteFile(h.path(journalFile), []byte(`{"phase": "Thinking"}`), 0o600))
		}, `the phase "Thinking" is unknown`, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBench(t, "raw")
			h := b.begin("raw", c.phase)
			b.guest(h)
			c.spoil(b, h)
			b.ok(h.Close())
			for range 2 {
				_, err := Settle(t.Context(), b.data, note)
				if err == nil || !strings.Contains(err.Error(), c.want) || c.is != nil && !errors.Is(err, c.is) {
					t.Errorf("%v, want %s", err, c.want)
				}
			}
			b.has("raw", filepath.Join(b.data, "system.img"), "0", "1M 1M")
			b.has("qcow2", filepath.Join(b.data, Dir, "0.qcow2"), "2", "1M 1M")
		})
	}
}

// Two do not work on the same overlays, and one that waits goes on when the other has
// gone.
func TestOneHolds(t *testing.T) {
	b := newBench(t, "raw")
	h := b.begin("raw", Attached)
	b.guest(h)
	if _, err := Begin(b.Context(), b.data, nil); err == nil {
		t.Error("there are overlays, and others were begun")
	}
	soon, cancel := context.WithTimeout(t.Context(), 3*busyLook)
	defer cancel()
	if _, err := Settle(soon, b.data, note); err == nil {
		t.Error("what somebody holds was settled")
	}
	if Left(b.data) {
		t.Error("what somebody holds was left")
	}
	done := make(chan error, 1)
	go func() {
		_, err := Settle(t.Context(), b.data, note)
		done <- err
	}()
	b.ok(h.Close())
	b.ok(<-done)
	b.has("raw", b.elsewhere, "2", "1M 1M")
	if err := (&Held{Journal: Journal{Phase: Merging}, data: b.data}).Remove(); err == nil {
		t.Error("overlays that count were removed")
	}
}

// Whether overlays can be merged is said without merging them, and without changing
// anything.
func TestCheck(t *testing.T) {
	b := newBench(t, "raw")
	b.ok(Check(b.data)) // there are none
	h := b.begin("raw", Attached)
	b.ok(h.Close())
	b.ok(Check(b.data))
	for name, path := range map[string]string{"an overlay": h.Overlay(h.Disks[0]), "the journal": h.path(journalFile), "an image": b.elsewhere} {
		b.ok(os.Rename(path, path+"-away"))
		if err := Check(b.data); err == nil || !strings.Contains(err.Error(), filepath.Base(path)) || !strings.Contains(err.Error(), "put it back") {
			t.Errorf("without %s: %v", name, err)
		}
		b.ok(os.Rename(path+"-away", path))
	}
	b.ok(os.Chtimes(b.elsewhere, time.Time{}, time.Now()))
	if err := Check(b.data); !errors.Is(err, ErrChanged) {
		t.Error(err)
	}
	if j, err := Read(b.data); err != nil || j.Phase != Attached {
		t.Errorf("%+v, %v", j, err)
	}
}
