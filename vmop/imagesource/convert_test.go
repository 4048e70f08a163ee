package imagesource

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
)

// Of an image everything is written over what was there, zeros too, and nothing else.
func TestWriteOver(t *testing.T) {
	disk := diskOf(4 << 20)
	copy(disk[1<<20:], make([]byte, 1<<20))
	image := filepath.Join(t.TempDir(), "a.qcow2")
	qemuImgTool(t, "convert", "-f", "raw", "-O", "qcow2", write(t, disk), image)
	for _, at := range []int64{0, 4096, 4 << 20, 5 << 20} {
		before := bytes.Repeat([]byte{0xee}, 6<<20)
		path := write(t, before)
		to, err := os.OpenFile(path, os.O_RDWR, 0)
		if err != nil {
			t.Fatal(err)
		}
		var last, total int64
		err = WriteOver(t.Context(), image, at, 4<<20, to, func(done, of int64) {
			if done < last || done > of {
				t.Errorf("from %d to %d of %d", last, done, of)
			}
			last, total = done, of
		})
		if cerr := to.Close(); err != nil || cerr != nil {
			t.Fatal(err, cerr)
		}
		from := min(at, 4<<20)
		want := append(append(bytes.Clone(before[:from]), disk[from:]...), before[4<<20:]...)
		if got, err := os.ReadFile(path); err != nil || !bytes.Equal(got, want) || last != total {
			t.Errorf("from %d: %d bytes, %d of %d told, %v", at, len(got), last, total, err)
		}
	}
}

// What the tool says is understood in any pieces, and nonsense is not.
func TestPercents(t *testing.T) {
	var got []int64
	p := percents{size: 1000, report: func(done, _ int64) { got = append(got, done) }}
	for _, text := range []string{"    (0.00/100%)\r   (5", "0.00/100%)\r", "(1e99/100%)\r(-1/100%)\rhello\n", string(make([]byte, 1000)), "\r (100.00/100%)\n"} {
		if n, err := p.Write([]byte(text)); n != len(text) || err != nil {
			t.Error(n, err)
		}
	}
	if len(got) != 3 || got[0] != 0 || got[1] != 500 || got[2] != 1000 || len(p.line) > 64 {
		t.Error(got)
	}
}
