package output

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/vmop/sdk/vmop/spec"
)

// Disk is a disk of a machine of this host: disk list. metadata.name is the name in the manifest,
// as is name.
type Disk struct {
	metav1.TypeMeta    `json:",inline"`
	metav1.ObjectMeta  `json:"metadata"`
	VirtualMachineName string `json:"virtualMachineName"`
	DiskUse            `json:",inline"`
	// Own is true for an image that the machine creates in its own directory.
	Own bool `json:"own,omitempty"`
}

// Snapshot is a snapshot of a machine of this host: snapshot list.
type Snapshot struct {
	metav1.TypeMeta    `json:",inline"`
	metav1.ObjectMeta  `json:"metadata"`
	VirtualMachineName string         `json:"virtualMachineName"`
	Disks              []SnapshotDisk `json:"disks"`
	// Allocated is the space that the copies took on their storage when they were created.
	Allocated *resource.Quantity `json:"allocated"`
	// Running is true if the machine ran meanwhile; Frozen if its guest agent had frozen the file
	// systems, and Unfrozen is why not.
	Running  bool   `json:"running,omitempty"`
	Frozen   bool   `json:"frozen,omitempty"`
	Unfrozen string `json:"unfrozen,omitempty"`
}

// SnapshotDisk is a disk in a snapshot.
type SnapshotDisk struct {
	Name string `json:"name"`
	// File is the name of the copy in the snapshot's directory, Path the copied image.
	File string `json:"file"`
	Path string `json:"path"`
	// FileSize is the length of the copy.
	FileSize *resource.Quantity `json:"fileSize"`
	// Template is true if the disk's image is one that the machine creates.
	Template bool `json:"template,omitempty"`
}

// CachedImage is an image that was fetched to this host: image list.
type CachedImage struct {
	metav1.TypeMeta `json:",inline"`
	// metadata.name is the digest, metadata.creationTimestamp the time of the fetch.
	metav1.ObjectMeta `json:"metadata"`
	// Digest is sha256:HEX of the source's content, SHA512 that of the file if it was requested.
	Digest string `json:"digest"`
	SHA512 string `json:"sha512,omitempty"`
	// Sources are where it was fetched from; PathInImage is the path of the disk in a container
	// image, if one was chosen.
	Sources     []string `json:"sources"`
	PathInImage string   `json:"pathInImage,omitempty"`
	// Path is the file with the image. It must not be changed.
	Path      string             `json:"path"`
	Format    string             `json:"format"`
	Size      *resource.Quantity `json:"size"`
	Allocated *resource.Quantity `json:"allocated"`
	// LastUsed is when it was last requested, or a disk was created from it.
	LastUsed metav1.Time `json:"lastUsed"`
	// InUse is what uses it, so that it cannot be deleted now.
	InUse string `json:"inUse,omitempty"`
}

// DiskImage is the content of an image: inspect FILE.
type DiskImage struct {
	metav1.TypeMeta `json:",inline"`
	Path            string `json:"path"`
	// Format is the detected format. A file in no known format is raw.
	Format string `json:"format"`
	// Size is the size of the disk that a guest sees, FileSize the length of the file or block
	// device, and Allocated the space it takes on the storage, 0 for block devices.
	Size      *resource.Quantity `json:"size,omitempty"`
	FileSize  *resource.Quantity `json:"fileSize"`
	Allocated *resource.Quantity `json:"allocated,omitempty"`
	// Refused is why the image cannot be a machine's disk.
	Refused        string          `json:"refused,omitempty"`
	Qcow2          *Qcow2          `json:"qcow2,omitempty"`
	PartitionTable *PartitionTable `json:"partitionTable,omitempty"`
	// FileSystem is set if one fills the whole disk.
	FileSystem *FileSystem `json:"fileSystem,omitempty"`
	// NoCloud has the documents of a cloud-init seed. They often hold passwords.
	NoCloud *NoCloud `json:"noCloud,omitempty"`
	// Notes are what could not be examined, and why.
	Notes []string `json:"notes,omitempty"`
}

// Qcow2 is the content of a qcow2 image's header.
type Qcow2 struct {
	Version              int                `json:"version"`
	ClusterSize          *resource.Quantity `json:"clusterSize"`
	BackingFile          string             `json:"backingFile,omitempty"`
	Encryption           string             `json:"encryption,omitempty"`
	IncompatibleFeatures []string           `json:"incompatibleFeatures,omitempty"`
}

// PartitionTable lists the partitions of a disk.
type PartitionTable struct {
	// Type is gpt or mbr.
	Type       string             `json:"type"`
	ID         string             `json:"id,omitempty"`
	SectorSize *resource.Quantity `json:"sectorSize"`
	Partitions []Partition        `json:"partitions"`
}

// Partition is one partition of a disk.
type Partition struct {
	// Index is the partition's number as Linux counts.
	Index int    `json:"index"`
	Type  string `json:"type"`
	Label string `json:"label,omitempty"`
	UUID  string `json:"uuid,omitempty"`
	// Start is the partition's offset on the disk.
	Start      *resource.Quantity `json:"start"`
	Size       *resource.Quantity `json:"size"`
	FileSystem *FileSystem        `json:"fileSystem,omitempty"`
}

// FileSystem is a file system of a disk or partition, by the names of blkid.
type FileSystem struct {
	Type  string `json:"type"`
	Label string `json:"label,omitempty"`
	UUID  string `json:"uuid,omitempty"`
}

// NoCloud is the content of a cloud-init seed.
type NoCloud struct {
	// Partition is the index of the partition with the seed; 0 is the whole disk.
	Partition     int     `json:"partition"`
	MetaData      *string `json:"metaData,omitempty"`
	UserData      *string `json:"userData,omitempty"`
	NetworkConfig *string `json:"networkConfig,omitempty"`
}

// Version is the version of vmop-cli and of the QEMU that it finds: version.
type Version struct {
	metav1.TypeMeta `json:",inline"`
	ClientVersion   ClientVersion `json:"clientVersion"`
	QEMU            FoundQEMU     `json:"qemu"`
}

// ClientVersion is the version of vmop-cli, by the names of kubectl version.
type ClientVersion struct {
	GitVersion string `json:"gitVersion"`
	GoVersion  string `json:"goVersion"`
	// Platform is the operating system and the architecture, such as linux/amd64.
	Platform string `json:"platform"`
}

// FoundQEMU is the QEMU in which machines of this host run.
type FoundQEMU struct {
	Version string `json:"version,omitempty"`
	Path    string `json:"path,omitempty"`
	// Problem is why no usable QEMU was found.
	Problem string `json:"problem,omitempty"`
}

// Severity is the severity of a finding in a manifest.
type Severity string

// A manifest with an error is not used. A warning reports what is probably not as intended, a note
// what is good to know.
const (
	SeverityError   Severity = "error"
	SeverityWarning Severity = "warning"
	SeverityNote    Severity = "note"
)

// ManifestFinding is a finding in a manifest: validate.
type ManifestFinding struct {
	metav1.TypeMeta `json:",inline"`
	// InvolvedObject is the object, if the file could be read so far, and its FieldPath the field,
	// such as spec.vm.disks[2].cdrom.image.
	InvolvedObject *corev1.ObjectReference `json:"involvedObject,omitempty"`
	// Path is the file as it was named, <stdin> for the standard input, and Line the line in it,
	// counted from 1; it is missing if unknown.
	Path     string   `json:"path"`
	Line     int      `json:"line,omitempty"`
	Severity Severity `json:"severity"`
	// Message describes what was found and what would be right.
	Message string `json:"message"`
}

// HostFinding is one thing that this host offers for machines, or lacks: doctor.
type HostFinding struct {
	metav1.TypeMeta `json:",inline"`
	// Subject is the subject of the finding, such as KVM.
	Subject string `json:"subject"`
	// Status is OK, Limited or Broken.
	Status string `json:"status"`
	// Message describes the finding, Do a remedy.
	Message string `json:"message"`
	Do      string `json:"do,omitempty"`
}

// TakeoverFinding is a finding about a cluster of VM-Operator before it is taken over: takeover.
type TakeoverFinding struct {
	metav1.TypeMeta `json:",inline"`
	// InvolvedObject is the object, with its FieldPath if the finding is about a field; nil for the
	// whole cluster.
	InvolvedObject *corev1.ObjectReference `json:"involvedObject,omitempty"`
	// Urgency is before, differs or note.
	Urgency string `json:"urgency"`
	Topic   string `json:"topic"`
	// Message describes the finding and its consequence, Do what to do about it.
	Message string `json:"message"`
	Do      string `json:"do,omitempty"`
}

// Leftover is an object that a deleted machine has left in a cluster: leftovers. The metadata are
// those of the object.
type Leftover struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	// ObjectKind is the kind of the object, PersistentVolumeClaim or Secret.
	ObjectKind         string `json:"objectKind"`
	VirtualMachineName string `json:"virtualMachineName"`
	// Size is the size of a volume claim.
	Size *resource.Quantity `json:"size,omitempty"`
	// DeleteCommand is a command that deletes it.
	DeleteCommand string `json:"deleteCommand"`
}

// GuestInfo is what a guest agent reports: guest info. The names are those of a machine's status.
type GuestInfo struct {
	metav1.TypeMeta `json:",inline"`
	// AgentVersion is the version of the agent.
	AgentVersion string      `json:"agentVersion"`
	HostName     string      `json:"hostName,omitempty"`
	OSInfo       *OSInfo     `json:"osinfo,omitempty"`
	Interfaces   []Interface `json:"interfaces,omitempty"`
}

// OSInfo is the guest's system, by the names of the guest agent's protocol.
type OSInfo struct {
	ID            string `json:"id,omitempty"`
	PrettyName    string `json:"pretty-name,omitempty"`
	VersionID     string `json:"version-id,omitempty"`
	KernelRelease string `json:"kernel-release,omitempty"`
	Machine       string `json:"machine,omitempty"`
}

// DisplayConnection is how a viewer connects to a display: spice and vnc with --print.
type DisplayConnection struct {
	metav1.TypeMeta `json:",inline"`
	// Protocol is spice or vnc.
	Protocol string `json:"protocol"`
	URI      string `json:"uri"`
	// Path is the path of a UNIX socket; Host and Port are for TCP.
	Path string `json:"path,omitempty"`
	Host string `json:"host,omitempty"`
	Port int    `json:"port,omitempty"`
	// Auth is none, or spice or vnc for a password.
	Auth string `json:"auth"`
}

// DisplayProxy is the port of a proxy to a display: spice and vnc with --proxy-only.
type DisplayProxy struct {
	metav1.TypeMeta `json:",inline"`
	Host            string `json:"host"`
	Port            int    `json:"port"`
}

// Interface is a network interface as the guest sees it.
type Interface = spec.Interface
