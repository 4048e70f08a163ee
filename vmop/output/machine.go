package output

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/vmop/sdk/vmop/spec"
)

// Machine is a machine of one host or of a cluster: list, inspect, describe, wait.
type Machine struct {
	spec.VirtualMachine `json:",inline"`
	// Observed is what the API has no field for.
	Observed Observed `json:"observed,omitzero"`
}

// Observed is what vmop-cli observes of a machine beyond the fields of the API. list fills only
// what it knows without querying the machine's QEMU or the cluster further.
type Observed struct {
	// Message describes what the machine waits for, or what is wrong with it.
	Message string `json:"message,omitempty"`
	// NextStep describes what to do next, with the commands for it: describe.
	NextStep string `json:"nextStep,omitempty"`
	// UUID is the identity that the guest sees, if known.
	UUID string `json:"uuid,omitempty"`
	// Host is set for a machine of one host, Pod for a machine of a cluster.
	Host *Host `json:"host,omitempty"`
	Pod  *Pod  `json:"pod,omitempty"`
	// QEMU is what QEMU reports about a running machine of this host.
	QEMU *QEMU `json:"qemu,omitempty"`
	// Guest is what the agents in the guest have reported beyond the status.
	Guest    *Guest    `json:"guest,omitempty"`
	Disks    []DiskUse `json:"disks,omitempty"`
	Networks []Network `json:"networks,omitempty"`
	// Shares are the folders that the machine had at its last start.
	Shares   []Share   `json:"shares,omitempty"`
	Displays []Display `json:"displays,omitempty"`
	Agents   []Agent   `json:"agents,omitempty"`
	// Kept are files with other state that the guest depends on.
	Kept []KeptFile `json:"kept,omitempty"`
}

// Host locates a machine of one host.
type Host struct {
	DataDir    string `json:"dataDir,omitempty"`
	RuntimeDir string `json:"runtimeDir,omitempty"`
	// RunnerPID and QEMUPID are missing if the process does not run.
	RunnerPID int `json:"runnerPid,omitempty"`
	QEMUPID   int `json:"qemuPid,omitempty"`
	// Enabled is true if systemd starts the machine with this host.
	Enabled bool `json:"enabled,omitempty"`
}

// Pod is the pod in which a machine of a cluster runs, by the names of a Pod.
type Pod struct {
	Phase    corev1.PodPhase `json:"phase"`
	NodeName string          `json:"nodeName,omitempty"`
	PodIP    string          `json:"podIP,omitempty"`
	// Image is the image of the runner.
	Image string `json:"image,omitempty"`
	// Claims are the names of the volume claims.
	Claims []string `json:"claims,omitempty"`
}

// QEMU is what QEMU reports about a machine.
type QEMU struct {
	// RunState is QEMU's run state.
	RunState string `json:"runState,omitempty"`
	// UptimeSeconds is the time since the guest began to execute.
	UptimeSeconds int64 `json:"uptimeSeconds,omitempty"`
	// MaximumCPUs and MaximumRAM are what the machine can have; status.ram is the part of
	// MaximumRAM that the balloon leaves to the guest.
	MaximumCPUs int                `json:"maximumCpus,omitempty"`
	MaximumRAM  *resource.Quantity `json:"maximumRam,omitempty"`
}

// Guest is what the agents have reported.
type Guest struct {
	// WantedUser is the user to be logged in; status.loggedInUser is the one who is.
	WantedUser string `json:"wantedUser,omitempty"`
	// Problems are the requests that the agents could not answer.
	Problems []string `json:"problems,omitempty"`
}

// DiskUse is a disk or a CD drive of a machine.
type DiskUse struct {
	// DiskName is the name in the manifest, which other commands use.
	DiskName string `json:"name,omitempty"`
	// Device is the id of QEMU's device, Node the name of its block node.
	Device string `json:"device,omitempty"`
	Node   string `json:"node,omitempty"`
	// Path is the file, block device or URL; it is missing without a medium.
	Path string `json:"path,omitempty"`
	// Format is raw or qcow2, or another format of QEMU's.
	Format string `json:"format,omitempty"`
	// Size is the size that the guest sees, Allocated the space it takes on the storage.
	Size      *resource.Quantity `json:"size,omitempty"`
	Allocated *resource.Quantity `json:"allocated,omitempty"`
	ReadOnly  bool               `json:"readOnly,omitempty"`
	// Removable is true if the medium can be changed.
	Removable bool `json:"removable,omitempty"`
	// IOStatus is QEMU's I/O status: ok, failed or nospace.
	IOStatus string `json:"ioStatus,omitempty"`
	// Problem is why the image cannot be used or inspected.
	Problem string `json:"problem,omitempty"`
}

// Network is a network card.
type Network struct {
	// Device is the id of QEMU's device, Backend of its network backend.
	Device  string `json:"device"`
	Model   string `json:"model"`
	MAC     string `json:"mac"`
	Backend string `json:"backend,omitempty"`
}

// Share is a folder of the host that the guest can mount.
type Share struct {
	Tag      string `json:"tag"`
	Path     string `json:"path"`
	ReadOnly bool   `json:"readOnly,omitempty"`
	// Protocol is virtiofs or 9p.
	Protocol string `json:"protocol,omitempty"`
}

// Display is one protocol of the display.
type Display struct {
	// Protocol is spice or vnc.
	Protocol string `json:"protocol"`
	// Address is host and port, or the path of a socket; Websocket is host and port for viewers in
	// browsers.
	Address   string `json:"address"`
	Websocket string `json:"websocket,omitempty"`
	// Auth is none, or spice or vnc for a password.
	Auth string `json:"auth"`
	// Clients is the number of viewers.
	Clients int `json:"clients"`
}

// Agent is a channel of an agent.
type Agent struct {
	Name string `json:"name"`
	// Connected is true if the guest has the channel open.
	Connected bool `json:"connected"`
}

// KeptFile is a file with state that the guest depends on, beside its disks.
type KeptFile struct {
	// Path is relative to the machine's directory.
	Path string `json:"path"`
	// Holds describes its content.
	Holds string             `json:"holds"`
	Size  *resource.Quantity `json:"size,omitempty"`
}

// Operation is the result of a request for one machine of a cluster: start, stop, restart. If no
// operation was created, its status is empty and it has no name.
type Operation struct {
	spec.VirtualMachineOperation `json:",inline"`
	Observed                     Result `json:"observed"`
}

// VirtualDisk is a disk of a cluster: disk list --cluster.
type VirtualDisk = spec.VirtualDisk

// DiskResult is the result of a request for a disk of a cluster: disk create, upload, download,
// resize, delete, attach and detach. The metadata are those of the disk.
type DiskResult struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	// Action is create, upload, download, resize, delete, attach or detach, and VirtualMachineName
	// the machine of the last two.
	Action             string `json:"action"`
	VirtualMachineName string `json:"virtualMachineName,omitempty"`
	// File is the downloaded file.
	File *DownloadedFile `json:"file,omitempty"`
	// Done is true if the disk is as requested.
	Done     bool   `json:"done"`
	Observed Result `json:"observed"`
}

// DownloadedFile is a disk or an image that was downloaded.
type DownloadedFile struct {
	Path string `json:"path"`
	// Format is raw, qcow2, or iso for the image of a CD; Size is the file's size in bytes, and
	// SHA256 its digest in hexadecimal digits.
	Format string            `json:"format"`
	Size   resource.Quantity `json:"size"`
	SHA256 string            `json:"sha256"`
}

// Result is the result of a request.
type Result struct {
	// Result is the phase of the operation, NotNeeded if the machine is already as requested,
	// UnderWay if it becomes so without one, DryRun, or NotMade if no operation could be created.
	Result string `json:"result"`
	// Message is the reason.
	Message string `json:"message,omitempty"`
}

// Metrics are what a machine of this host uses: top. Timestamp, window and usage are named as in
// the API metrics.k8s.io.
type Metrics struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	// Timestamp is the end of the measured interval, WindowSeconds its length.
	Timestamp     metav1.Time `json:"timestamp"`
	WindowSeconds float64     `json:"windowSeconds"`
	Usage         Usage       `json:"usage"`
	// CPUSeconds and the others are totals since the start.
	CPUSeconds  float64            `json:"cpuSeconds"`
	DiskRead    *resource.Quantity `json:"diskRead,omitempty"`
	DiskWritten *resource.Quantity `json:"diskWritten,omitempty"`
	NetReceived *resource.Quantity `json:"netReceived,omitempty"`
	NetSent     *resource.Quantity `json:"netSent,omitempty"`
}

// Usage is what a machine uses.
type Usage struct {
	// CPU is in processors of the host, Memory the memory of QEMU.
	CPU    *resource.Quantity `json:"cpu"`
	Memory *resource.Quantity `json:"memory"`
	// These are bytes per second. Those of the network are missing where it is not counted.
	DiskReadPerSecond    *resource.Quantity `json:"diskReadPerSecond"`
	DiskWrittenPerSecond *resource.Quantity `json:"diskWrittenPerSecond"`
	NetReceivedPerSecond *resource.Quantity `json:"netReceivedPerSecond,omitempty"`
	NetSentPerSecond     *resource.Quantity `json:"netSentPerSecond,omitempty"`
}

// Changes are differences of a machine: between two manifests, or what waits for a restart
// (changes), or what applying a manifest to a cluster would change (diff).
type Changes struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	// New is true if the machine does not exist yet, Running if it runs; diff only.
	New     bool `json:"new,omitempty"`
	Running bool `json:"running,omitempty"`
	// Changes are empty if there is no difference.
	Changes []Change `json:"changes"`
}

// Change is one difference, by the names of status.restartAwaitingChanges.
type Change struct {
	spec.AwaitingChange `json:",inline"`
	// Applied is live, restart or never.
	Applied string `json:"applied"`
}

// Event is an event of a machine: events. It is Kubernetes' Event.
type Event = corev1.Event
