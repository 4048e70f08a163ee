package qemucmd

// Socket is a UNIX socket on which QEMU listens: by path, or created by the caller and passed as a
// file descriptor, so that there is no moment at which a client finds no socket.
type Socket struct {
	// Path is where clients connect, at most 107 bytes; with FD it is only recorded.
	Path string `json:"path"`
	// FD is the descriptor number in the QEMU process; 0 means none.
	FD int `json:"fd,omitempty"`
}
