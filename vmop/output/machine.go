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

// Observed is what vmop-cli sees of a machine beside what the API has of it. list has
// only what it knows without asking the machine's QEMU or the cluster for more.
type Observed struct {
	// Message says in words what the machine waits for, or what is wrong with it.
	Message string `json:"message,omitempty"`
	// NextStep says in words what to do next, with the commands for it: describe.
	NextStep string `json:"nextStep,omitempty"`
	// UUID is the identity that the guest sees, as far as it is known.
	UUID string `json:"uuid,omitempty"`
	// Host is where a machine of one host is, Pod that of a machine of a cluster.
	Host *Host `json:"host,omitempty"`
	Pod  *Pod  `json:"pod,omitempty"`
	// QEMU is what QEMU says of itself, of a machine of this host that runs.
	QEMU *QEMU `json:"qemu,omitempty"`
	// Guest is what the agents in the guest have told beside what the status has.
	Guest    *Guest    `json:"guest,omitempty"`
	Disks    []DiskUse `json:"disks,omitempty"`
	Networks []Network `json:"networks,omitempty"`
	// Shares are the folders that the machine had at its last start.
	Shares   []Share   `json:"shares,omitempty"`
	Displays []Display `json:"displays,omitempty"`
	Agents   []Agent   `json:"agents,omitempty"`
	// Kept are the files with what else the guest depends on.
	Kept []KeptFile `json:"kept,omitempty"`
}

// Host is where a machine of one host is.
type Host struct {
	DataDir    string `json:"dataDir,omitempty"`
	RuntimeDir string `json:"runtimeDir,omitempty"`
	// RunnerPID and QEMUPID are processes; they are missing where there is none.
	RunnerPID int `json:"runnerPid,omitempty"`
	QEMUPID   int `json:"qemuPid,omitempty"`
	// Enabled says that systemd starts the machine with this host.
	Enabled bool `json:"enabled,omitempty"`
}

// Pod is the pod in which a machine of a cluster runs, by the names of a Pod.
type Pod struct {
	Phase    corev1.PodPhase `json:"phase"`
	NodeName string          `json:"nodeName,omitempty"`
	PodIP    string          `json:"podIP,omitempty"`
	// Image is that of the runner.
	Image string `json:"image,omitempty"`
	// Claims are the names of the volume claims.
	Claims []string `json:"claims,omitempty"`
}

// QEMU is what QEMU says of itself.
type QEMU struct {
	// RunState is QEMU's word for what the guest does.
	RunState string `json:"runState,omitempty"`
	// UptimeSeconds is the time since the guest began to execute.
	UptimeSeconds int64 `json:"uptimeSeconds,omitempty"`
	// MaximumCPUs is how many the machine can have, MaximumRAM what its memory is of
	// which status.ram is what the balloon leaves to the guest.
	MaximumCPUs int                `json:"maximumCpus,omitempty"`
	MaximumRAM  *resource.Quantity `json:"maximumRam,omitempty"`
}

// Guest is what the agents have told.
type Guest struct {
	// WantedUser is the user to be logged in; status.loggedInUser is the one who is.
	WantedUser string `json:"wantedUser,omitempty"`
	// Problems are what the agents could not answer or do.
	Problems []string `json:"problems,omitempty"`
}

// DiskUse is a disk or a CD drive of a machine.
type DiskUse struct {
	// DiskName is the name in the manifest, which other commands know it by.
	DiskName string `json:"name,omitempty"`
	// Device is the id of QEMU's device, Node of its block node.
	Device string `json:"device,omitempty"`
	Node   string `json:"node,omitempty"`
	// Path is the file, block device or URL; it is missing where there is no medium.
	Path string `json:"path,omitempty"`
	// Format is raw or qcow2, or another format of QEMU's.
	Format string `json:"format,omitempty"`
	// Size is what the guest has of it, Allocated what that takes of the storage.
	Size      *resource.Quantity `json:"size,omitempty"`
	Allocated *resource.Quantity `json:"allocated,omitempty"`
	ReadOnly  bool               `json:"readOnly,omitempty"`
	// Removable says that the medium can be changed.
	Removable bool `json:"removable,omitempty"`
	// IOStatus is QEMU's word: ok, failed or nospace.
	IOStatus string `json:"ioStatus,omitempty"`
	// Problem says why the image cannot be used, or looked at.
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
	// Address is host and port, or the path of a socket; Websocket host and port for
	// viewers in browsers.
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
	// Connected says that the guest has the channel open.
	Connected bool `json:"connected"`
}

// KeptFile keeps what the guest depends on, beside its disks.
type KeptFile struct {
	// Path is relative to the machine's directory.
	Path string `json:"path"`
	// Holds says in words what is in it.
	Holds string             `json:"holds"`
	Size  *resource.Quantity `json:"size,omitempty"`
}

// Operation is what became of what was asked for of one machine of a cluster: start,
// stop, restart. Where no operation was made, its status is empty and it has no name.
type Operation struct {
	spec.VirtualMachineOperation `json:",inline"`
	Observed                     Result `json:"observed"`
}

// VirtualDisk is a disk of a cluster: disk list --cluster.
type VirtualDisk = spec.VirtualDisk

// DiskResult is what became of what was asked for of a disk of a cluster: disk create,
// upload, download, resize, delete, attach and detach. The metadata are those of the disk.
type DiskResult struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	// Action is create, upload, download, resize, delete, attach or detach, and
	// VirtualMachineName the machine of the last two.
	Action             string `json:"action"`
	VirtualMachineName string `json:"virtualMachineName,omitempty"`
	// File is what was downloaded.
	File *DownloadedFile `json:"file,omitempty"`
	// Done says that it is as it was asked for.
	Done     bool   `json:"done"`
	Observed Result `json:"observed"`
}

// DownloadedFile is a disk or an image that was downloaded.
type DownloadedFile struct {
	Path string `json:"path"`
	// Format is raw, qcow2, or iso for the image of a CD; Size is that of the file, in bytes,
	// and SHA256 its digest in hexadecimal digits.
	Format string            `json:"format"`
	Size   resource.Quantity `json:"size"`
	SHA256 string            `json:"sha256"`
}

// Result is what became of what was asked for.
type Result struct {
	// Result is the phase of the operation, NotNeeded if the machine is as it should be,
	// UnderWay if it is on its way there without one, DryRun, or NotMade if it could not
	// be asked for.
	Result string `json:"result"`
	// Message says why.
	Message string `json:"message,omitempty"`
}

// Metrics are what a machine of this host uses: top. The names of timestamp, window and
// usage are those of the API metrics.k8s.io.
type Metrics struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	// Timestamp is the end of the time in which it was measured, WindowSeconds its length.
	Timestamp     metav1.Time `json:"timestamp"`
	WindowSeconds float64     `json:"windowSeconds"`
	Usage         Usage       `json:"usage"`
	// CPUSeconds and the others are what was used since the start.
	CPUSeconds  float64            `json:"cpuSeconds"`
	DiskRead    *resource.Quantity `json:"diskRead,omitempty"`
	DiskWritten *resource.Quantity `json:"diskWritten,omitempty"`
	NetReceived *resource.Quantity `json:"netReceived,omitempty"`
	NetSent     *resource.Quantity `json:"netSent,omitempty"`
}

// Usage is what a machine uses.
type Usage struct {
	// CPU is in processors of the host, Memory what QEMU has of it.
	CPU    *resource.Quantity `json:"cpu"`
	Memory *resource.Quantity `json:"memory"`
	// These are bytes in a second. Those of the network are missing where nothing of it
	// is counted.
	DiskReadPerSecond    *resource.Quantity `json:"diskReadPerSecond"`
	DiskWrittenPerSecond *resource.Quantity `json:"diskWrittenPerSecond"`
	NetReceivedPerSecond *resource.Quantity `json:"netReceivedPerSecond,omitempty"`
	NetSentPerSecond     *resource.Quantity `json:"netSentPerSecond,omitempty"`
}

// Changes are differences of a machine: between two manifests, or what waits for a
// restart (changes), or what applying a manifest to a cluster would change (diff).
type Changes struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	// New says that there is no such machine yet, Running that it runs now; diff only.
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

// Event is what happened to a machine: events. It is Kubernetes' Event.
type Event = corev1.Event
