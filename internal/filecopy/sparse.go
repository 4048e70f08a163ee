package filecopy

import "os"

// hole is the unit in which zeros are left out, in bytes: a page, and a block of most file systems.
const hole = 4096

var zeros [hole]byte

// Sparse writes a file sequentially and leaves out blocks of zeros: the file must be zero from At
// on.
type Sparse struct {
	File *os.File
	// At is where the next byte goes.
	At int64
}

// Write implements [io.Writer].
func (s *Sparse) Write(p []byte) (int, error) {
	done := 0
	for done < len(p) {
		n, zero := run(p[done:], s.At)
		end := done + n
		if !zero {
			if _, err := s.File.WriteAt(p[done:end], s.At); err != nil {
				return done, err
			}
		}
		s.At += int64(end - done)
		done = end
	}
	return done, nil
}

// Flush extends the file to what was written.
func (s *Sparse) Flush() error { return s.File.Truncate(s.At) }
