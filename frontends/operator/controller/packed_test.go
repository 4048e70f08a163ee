package controller

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"
)

var update = flag.Bool("update", false, "write typical.json anew")

// Whatever is packed is what comes out, and takes hardly more room than it had.
func TestPacked(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.SliceOf(rapid.Byte()).Draw(t, "text")
		if rapid.Bool().Draw(t, "like a machine") {
			from := rapid.IntRange(0, len(typical)).Draw(t, "from")
			text = slices.Concat(typical[from:rapid.IntRange(from, len(typical)).Draw(t, "to")], text)
		}
		p := pack(text)
		if got := p.text(); !bytes.Equal(got, text) {
			t.Fatalf("%q became %q", text, got)
		}
		if len(p) > len(text)+len(text)/6+16 {
			t.Fatalf("%d bytes became %d", len(text), len(p))
		}
	})
	if got := packed(nil).text(); len(got) > 0 {
		t.Errorf("nothing became %q", got)
	}
	if got := packed("what was not packed here").text(); len(got) > 0 {
		t.Errorf("something else became %q", got)
	}
}

// Machines are read by several workers at a time.
func TestPackedByMany(t *testing.T) {
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 100 {
				if got := pack(typical).text(); !bytes.Equal(got, typical) {
					t.Errorf("became %q", got)
				}
			}
		})
	}
	all.Wait()
}

// A machine takes an eighth of its text, as long as the typical one is like those of today.
func TestTypicalMachine(t *testing.T) {
	machines := func(n int) []byte {
		var m machine
		g := grow(t, n, time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
		if err := json.Unmarshal(g.objects(t, "VirtualMachine")[0], &m); err != nil {
			t.Fatal(err)
		}
		return m.data.text()
	}
	if *update {
		if err := os.WriteFile("typical.json", machines(1), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	text := machines(4711)
	if p := pack(text); len(p) > len(text)/8 {
		t.Errorf("a machine of %d bytes takes %d: renew typical.json with go test ./frontends/operator/controller -run TestTypicalMachine -update", len(text), len(p))
	}
}

// BenchmarkPacked is what a look at a machine costs, beside the text as it was.
func BenchmarkPacked(b *testing.B) {
	p := pack(typical)
	b.Run("pack", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			pack(typical)
		}
		b.ReportMetric(float64(len(typical)), "B-text")
	})
	b.Run("unpack", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			p.text()
		}
	})
	b.Run("decode", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			var m map[string]any
			if err := json.Unmarshal(typical, &m); err != nil {
				b.Fatal(err)
			}
		}
	})
}
