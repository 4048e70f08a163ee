package qmp

// BlockCommit starts a job that merges a node that a device writes to into its backing
// image, and goes on to do so with what is written. Once it is ready, [JobComplete] has
// the device write to that image.
type BlockCommit struct {
	JobID  string `json:"job-id"`
	Device string `json:"device"` // the node
	// AutoFinalize false keeps a job that has completed from changing the graph until
	// [JobFinalize]: it is [JobPending] then, and its node drained. AutoDismiss false
	// keeps one that has ended, with its error, until [JobDismiss].
	AutoFinalize bool `json:"auto-finalize"`
	AutoDismiss  bool `json:"auto-dismiss"`
}

// QMP implements Command.
func (BlockCommit) QMP() (string, None) { return "block-commit", None{} }

// Transaction does several things at one moment, or none of them.
type Transaction struct {
	Actions []TransactionAction `json:"actions"`
}

// QMP implements Command.
func (Transaction) QMP() (string, None) { return "transaction", None{} }

// TransactionAction is a part of a transaction: a command and its arguments.
type TransactionAction struct {
	Type string         `json:"type"`
	Data map[string]any `json:"data"`
}

// BlockdevSnapshot is the action that redirects the writes of a node's users to overlay, an image
// that was added without its backing image and whose backing image the node becomes.
func BlockdevSnapshot(node, overlay string) TransactionAction {
	return TransactionAction{Type: "blockdev-snapshot", Data: map[string]any{"node": node, "overlay": overlay}}
}

// JobComplete ends a job that is ready.
type JobComplete struct {
	ID string `json:"id"`
}

// QMP implements Command.
func (JobComplete) QMP() (string, None) { return "job-complete", None{} }

// JobFinalize ends a job that is pending.
type JobFinalize struct {
	ID string `json:"id"`
}

// QMP implements Command.
func (JobFinalize) QMP() (string, None) { return "job-finalize", None{} }

// JobCancel ends a job without what it is for.
type JobCancel struct {
	ID string `json:"id"`
}

// QMP implements Command.
func (JobCancel) QMP() (string, None) { return "job-cancel", None{} }

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
	// JobReady is that of one that has copied all there was, and goes on to copy what is
	// written.
	JobReady JobStatus = "ready"
	// JobStandby is that of one that is ready and paused.
	JobStandby JobStatus = "standby"
	// JobPending is that of one that has completed and is to be finalized.
	JobPending JobStatus = "pending"
	// JobNull is that of one that is forgotten.
	JobNull JobStatus = "null"
	// JobConcluded is that of a job that has ended, well or not.
	JobConcluded JobStatus = "concluded"
)

// Job is something that QEMU works on. The unit of progress is the job's own: bytes
// for those that copy.
type Job struct {
	ID       string    `json:"id"`
	Type     string    `json:"type"` // such as "commit"
	Status   JobStatus `json:"status"`
	Progress int64     `json:"current-progress"`
	Total    int64     `json:"total-progress"` // it may grow
	Error    string    `json:"error"`          // of one that has failed
}

// JobStatusChangeEvent is emitted when the status of a job changes.
type JobStatusChangeEvent struct {
	ID     string    `json:"id"`
	Status JobStatus `json:"status"`
}

// QMPEvent implements EventData.
func (JobStatusChangeEvent) QMPEvent() string { return "JOB_STATUS_CHANGE" }
