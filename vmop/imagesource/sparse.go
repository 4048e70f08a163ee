package imagesource

import (
	"bytes"
	"os"
)

// hole is the unit in which zeros are left out, in bytes: a page, and a block of most
// file systems.
const hole = 4096

var zeros [hole]byte

// sparse writes a file one after the other, and leaves out blocks of zeros.
type sparse struct {
	f  *os.File
	at int64
}

func (s *sparse) Write(p []byte) (int, error) {
	done := 0
	for done < len(p) {
		// Runs of blocks that are all alike.
		end, zero := done, false
		for end < len(p) {
			n := min(hole-int((s.at+int64(end-done))%hole), len(p)-end)
			z := bytes.Equal(p[end:end+n], zeros[:n])
			if end == done {
				zero = z
			} else if z != zero {
				break
			}
			end += n
		}
		if !zero {
			if _, err := s.f.WriteAt(p[done:end], s.at); err != nil {
				return done, err
			}
		}
		s.at += int64(end - done)
		done = end
	}
	return done, nil
}

// flush makes the file as long as what was written.
func (s *sparse) flush() error { return s.f.Truncate(s.at) }
