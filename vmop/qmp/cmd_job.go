package qmp

// BlockdevCreate starts a job that formats an image, such as one of qcow2 on a node
// that was added. It must be dismissed ([JobDismiss]).
type BlockdevCreate struct {
	JobID   string         `json:"job-id"`
	Options map[string]any `json:"options"` // with the key driver
}

// QMP implements Command.
func (BlockdevCreate) QMP() (string, None) { return "blockdev-create", None{} }

// BlockdevMirror starts a job that copies a node to another one of the same size and
// goes on to copy what the guest writes. Once it is ready, [BlockJobCancel] ends it
// with a copy of that moment.
type BlockdevMirror struct {
	JobID  string `json:"job-id"`
	Device string `json:"device"` // the node, or the guest's device
	Target string `json:"target"` // the node that is written
	Sync   string `json:"sync"`   // "full": everything
	// AutoDismiss false keeps a job that has ended, with its error, until JobDismiss.
	AutoDismiss bool `json:"auto-dismiss"`
}

// QMP implements Command.
func (BlockdevMirror) QMP() (string, None) { return "blockdev-mirror", None{} }

// BlockJobCancel ends a block job. A mirror that is ready completes what it has to
// copy first, unless it is forced.
type BlockJobCancel struct {
	Device string `json:"device"` // the job's id
	Force  bool   `json:"force,omitempty"`
}

// QMP implements Command.
func (BlockJobCancel) QMP() (string, None) { return "block-job-cancel", None{} }

// JobDismiss forgets a job that has ended.
type JobDismiss struct {
	ID string `json:"id"`
}

// QMP implements Command.
func (JobDismiss) QMP() (string, None) { return "job-dismiss", None{} }

// QueryJobs lists the jobs of all kinds.
type QueryJobs struct{}

// QMP implements Command.
func (QueryJobs) QMP() (string, []Job) { return "query-jobs", nil }

// JobStatus is where a job is in its life. Others may come.
type JobStatus string

// The statuses that matter to most users.
const (
	JobRunning JobStatus = "running"
	// JobReady is that of a mirror that has copied all there was.
	JobReady JobStatus = "ready"
	// JobConcluded is that of a job that has ended, well or not.
	JobConcluded JobStatus = "concluded"
)

// Job is something that QEMU works on. The unit of progress is the job's own: bytes
// for those that copy.
type Job struct {
	ID       string    `json:"id"`
	Type     string    `json:"type"` // such as "mirror"
	Status   JobStatus `json:"status"`
	Progress int64     `json:"current-progress"`
	Total    int64     `json:"total-progress"` // it may grow
	Error    string    `json:"error"`          // of one that has failed
}

// JobStatusChangeEvent says that a job has another status.
type JobStatusChangeEvent struct {
	ID     string    `json:"id"`
	Status JobStatus `json:"status"`
}

// QMPEvent implements EventData.
func (JobStatusChangeEvent) QMPEvent() string { return "JOB_STATUS_CHANGE" }
