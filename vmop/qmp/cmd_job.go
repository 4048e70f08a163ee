package qmp

// BlockCommit starts a job that merges a node that a device writes to into its backing image,
// including what is written meanwhile. Once it is ready, [JobComplete] makes the device write to
// that image.
type BlockCommit struct {
	JobID  string `json:"job-id"`
	Device string `json:"device"` // the node
	// AutoFinalize false keeps a completed job from changing the graph until [JobFinalize]: its
	// status is [JobPending], and its node drained. AutoDismiss false keeps a concluded job, with
	// its error, until [JobDismiss].
	AutoFinalize bool `json:"auto-finalize"`
	AutoDismiss  bool `json:"auto-dismiss"`
}

// QMP implements Command.
func (BlockCommit) QMP() (string, None) { return "block-commit", None{} }

// Transaction runs several actions atomically: all or none.
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

// BlockdevSnapshot is the action that redirects the writes of a node's users to overlay. The
// overlay must have been added without its backing image, which the node becomes.
func BlockdevSnapshot(node, overlay string) TransactionAction {
	return TransactionAction{Type: "blockdev-snapshot", Data: map[string]any{"node": node, "overlay": overlay}}
}

// JobComplete completes a job that is ready.
type JobComplete struct {
	ID string `json:"id"`
}

// QMP implements Command.
func (JobComplete) QMP() (string, None) { return "job-complete", None{} }

// JobFinalize finalizes a job that is pending.
type JobFinalize struct {
	ID string `json:"id"`
}

// QMP implements Command.
func (JobFinalize) QMP() (string, None) { return "job-finalize", None{} }

// JobCancel ends a job without its result.
type JobCancel struct {
	ID string `json:"id"`
}

// QMP implements Command.
func (JobCancel) QMP() (string, None) { return "job-cancel", None{} }

// JobDismiss removes a concluded job.
type JobDismiss struct {
	ID string `json:"id"`
}

// QMP implements Command.
func (JobDismiss) QMP() (string, None) { return "job-dismiss", None{} }

// QueryJobs lists the jobs of all kinds.
type QueryJobs struct{}

// QMP implements Command.
func (QueryJobs) QMP() (string, []Job) { return "query-jobs", nil }

// JobStatus is the status of a job. Newer versions may have others.
type JobStatus string

// The statuses that matter to most users.
const (
	JobRunning JobStatus = "running"
	// JobReady means that everything was copied, and that new writes are copied too.
	JobReady JobStatus = "ready"
	// JobStandby means ready and paused.
	JobStandby JobStatus = "standby"
	// JobPending means completed, and to be finalized.
	JobPending JobStatus = "pending"
	// JobNull means dismissed.
	JobNull JobStatus = "null"
	// JobConcluded means ended, successfully or not.
	JobConcluded JobStatus = "concluded"
)

// Job is a background job of QEMU. The unit of progress is the job's own: bytes for those that
// copy.
type Job struct {
	ID       string    `json:"id"`
	Type     string    `json:"type"` // such as "commit"
	Status   JobStatus `json:"status"`
	Progress int64     `json:"current-progress"`
	Total    int64     `json:"total-progress"` // it may grow
	Error    string    `json:"error"`          // if it has failed
}

// JobStatusChangeEvent is emitted when the status of a job changes.
type JobStatusChangeEvent struct {
	ID     string    `json:"id"`
	Status JobStatus `json:"status"`
}

// QMPEvent implements EventData.
func (JobStatusChangeEvent) QMPEvent() string { return "JOB_STATUS_CHANGE" }
