package filecopy

import (
	"os"
	"syscall"
)

// Allocated is the space that a file takes of its file system, in bytes, which is less
// than its size where it has holes (stat(2): blocks of 512 bytes).
func Allocated(info os.FileInfo) int64 {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return st.Blocks * 512
	}
	return info.Size()
}
