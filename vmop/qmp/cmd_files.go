package qmp

// GetFD passes QEMU a file under a name, for options such as fd= of a network backend. The file is
// passed with WithFile.
type GetFD struct {
	FDName string `json:"fdname"` // must not begin with a digit
}

// QMP implements Command.
func (GetFD) QMP() (string, None) { return "getfd", None{} }

// CloseFD makes QEMU close a file that it got with GetFD and has not used.
type CloseFD struct {
	FDName string `json:"fdname"`
}

// QMP implements Command.
func (CloseFD) QMP() (string, None) { return "closefd", None{} }

// AddFD passes QEMU a file as a member of an fd set, which it can then open as "/dev/fdset/ID". The
// file is passed with WithFile. A set may hold several files with different access modes.
type AddFD struct {
	FDSetID *int   `json:"fdset-id,omitempty"` // nil for a new set
	Opaque  string `json:"opaque,omitempty"`   // a note that query-fdsets returns
}

// QMP implements Command.
func (AddFD) QMP() (string, AddedFD) { return "add-fd", AddedFD{} }

// AddedFD is the result of AddFD.
type AddedFD struct {
	FDSetID int `json:"fdset-id"`
	FD      int `json:"fd"` // the descriptor's number in QEMU
}

// RemoveFD removes a file, or all files, from an fd set. QEMU closes them when their last user
// does.
type RemoveFD struct {
	FDSetID int  `json:"fdset-id"`
	FD      *int `json:"fd,omitempty"` // nil for all
}

// QMP implements Command.
func (RemoveFD) QMP() (string, None) { return "remove-fd", None{} }

// QueryFDSets lists the fd sets, including those of the command line.
type QueryFDSets struct{}

// QMP implements Command.
func (QueryFDSets) QMP() (string, []FDSet) { return "query-fdsets", nil }

// FDSet is a set of files under one name, "/dev/fdset/ID".
type FDSet struct {
	ID  int         `json:"fdset-id"`
	FDs []FDSetFile `json:"fds"`
}

// FDSetFile is a file of a set.
type FDSetFile struct {
	FD     int    `json:"fd"`
	Opaque string `json:"opaque,omitempty"` // the note passed to AddFD
}
