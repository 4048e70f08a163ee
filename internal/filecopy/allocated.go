package filecopy

import (
	"os"
	"syscall"
)

// Allocated returns the space that a file takes in its file system, in bytes, which is less than
// its size if it has holes (stat(2): blocks of 512 bytes).
func Allocated(info os.FileInfo) int64 {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return st.Blocks * 512
	}
	return info.Size()
}
