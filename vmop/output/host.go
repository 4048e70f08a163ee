package output

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/vmop/sdk/vmop/spec"
)

// Disk is a disk of a machine of this host: disk list. metadata.name is that in the
// manifest, as is name.
type Disk struct {
	metav1.TypeMeta    `json:",inline"`
	metav1.ObjectMeta  `json:"metadata"`
	VirtualMachineName string `json:"virtualMachineName"`
	DiskUse            `json:",inline"`
	// Own says that it is an image that the machine makes in its own directory.
	Own bool `json:"own,omitempty"`
}

// Snapshot is a snapshot of a machine of this host: snapshot list.
type Snapshot struct {
	metav1.TypeMeta    `json:",inline"`
	metav1.ObjectMeta  `json:"metadata"`
	VirtualMachineName string         `json:"virtualMachineName"`
	Disks              []SnapshotDisk `json:"disks"`
	// Allocated is what the copies had on their storage when they were made.
	Allocated *resource.Quantity `json:"allocated"`
	// Running says that the machine ran meanwhile; Frozen that its guest agent had all
	// written that its file systems have, and Unfrozen why not.
	Running  bool   `json:"running,omitempty"`
	Frozen   bool   `json:"frozen,omitempty"`
	Unfrozen string `json:"unfrozen,omitempty"`
}

// SnapshotDisk is a disk in a snapshot.
type SnapshotDisk struct {
	Name string `json:"name"`
	// File is the name of the copy in the snapshot's directory, Path the image that it
	// was made of.
	File string `json:"file"`
	Path string `json:"path"`
	// FileSize is the length of the copy.
	FileSize *resource.Quantity `json:"fileSize"`
	// Template says that the disk's image is one that the machine makes.
	Template bool `json:"template,omitempty"`
}

// CachedImage is an image that was fetched to this host: image list.
type CachedImage struct {
	metav1.TypeMeta `json:",inline"`
	// metadata.name is the digest, metadata.creationTimestamp when it was fetched.
	metav1.ObjectMeta `json:"metadata"`
	// Digest is sha256:HEX of what the source has, SHA512 that of the file if somebody
	// asked for it.
	Digest string `json:"digest"`
	SHA512 string `json:"sha512,omitempty"`
	// Sources are where it came from, PathInImage is that of the disk in a container
	// image, if somebody chose one.
	Sources     []string `json:"sources"`
	PathInImage string   `json:"pathInImage,omitempty"`
	// Path is the file with the image. It must not be changed.
	Path      string             `json:"path"`
	Format    string             `json:"format"`
	Size      *resource.Quantity `json:"size"`
	Allocated *resource.Quantity `json:"allocated"`
	// LastUsed is when a disk was made of it last, or it was asked for.
	LastUsed metav1.Time `json:"lastUsed"`
	// InUse says by what it is in use, and that it cannot be deleted now.
	InUse string `json:"inUse,omitempty"`
}

// DiskImage is what is in an image: inspect FILE.
type DiskImage struct {
	metav1.TypeMeta `json:",inline"`
	Path            string `json:"path"`
	// Format is what the image looks like. A file in no known format is raw.
	Format string `json:"format"`
	// Size is what a guest has of it, FileSize the length of the file or block device,
	// and Allocated what that takes of the storage, 0 for block devices.
	Size      *resource.Quantity `json:"size,omitempty"`
	FileSize  *resource.Quantity `json:"fileSize"`
	Allocated *resource.Quantity `json:"allocated,omitempty"`
	// Refused says why the image cannot be a machine's disk.
	Refused        string          `json:"refused,omitempty"`
	Qcow2          *Qcow2          `json:"qcow2,omitempty"`
	PartitionTable *PartitionTable `json:"partitionTable,omitempty"`
	// FileSystem is what fills the whole disk.
	FileSystem *FileSystem `json:"fileSystem,omitempty"`
	// NoCloud has the documents of a cloud-init seed. They often hold passwords.
	NoCloud *NoCloud `json:"noCloud,omitempty"`
	// Notes say what could not be examined, and why.
	Notes []string `json:"notes,omitempty"`
}

// Qcow2 is what the header of a qcow2 image says.
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

// FileSystem is a recognised content of a disk or partition, by the names of blkid.
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

// Version is what vmop-cli is, and the QEMU that it finds: version.
type Version struct {
	metav1.TypeMeta `json:",inline"`
	ClientVersion   ClientVersion `json:"clientVersion"`
	QEMU            FoundQEMU     `json:"qemu"`
}

// ClientVersion is what vmop-cli is, by the names of kubectl version.
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
	// Problem says why there is none that can be used.
	Problem string `json:"problem,omitempty"`
}

// Severity is what a finding in a manifest means for whoever uses it.
type Severity string

// With an error nothing is done with a manifest; a warning says what is not as it was
// probably meant, and a note what somebody should know.
const (
	SeverityError   Severity = "error"
	SeverityWarning Severity = "warning"
	SeverityNote    Severity = "note"
)

// ManifestFinding is what there is to say of a manifest: validate.
type ManifestFinding struct {
	metav1.TypeMeta `json:",inline"`
	// InvolvedObject is what it is about, if the file could be read so far, and its
	// FieldPath the field, such as spec.vm.disks[2].cdrom.image.
	InvolvedObject *corev1.ObjectReference `json:"involvedObject,omitempty"`
	// Path is the file as it was named, <stdin> for the standard input, and Line the line
	// in it, counted from 1; it is missing where nobody knows it.
	Path     string   `json:"path"`
	Line     int      `json:"line,omitempty"`
	Severity Severity `json:"severity"`
	// Message says what was found and what would be right.
	Message string `json:"message"`
}

// HostFinding is one thing that this host has for machines, or lacks: doctor.
type HostFinding struct {
	metav1.TypeMeta `json:",inline"`
	// Subject is what it is about, such as KVM.
	Subject string `json:"subject"`
	// Status is OK, Limited or Broken.
	Status string `json:"status"`
	// Message says what there is, Do what would help.
	Message string `json:"message"`
	Do      string `json:"do,omitempty"`
}

// TakeoverFinding is one thing to know before a cluster of VM-Operator is taken over:
// takeover.
type TakeoverFinding struct {
	metav1.TypeMeta `json:",inline"`
	// InvolvedObject is what it is about; nil for the whole cluster. FieldPath is the
	// field of it, if it is about one.
	InvolvedObject *corev1.ObjectReference `json:"involvedObject,omitempty"`
	// Urgency is before, differs or note.
	Urgency string `json:"urgency"`
	Topic   string `json:"topic"`
	// Message says what is found and what it leads to, Do what to do about it.
	Message string `json:"message"`
	Do      string `json:"do,omitempty"`
}

// Leftover is what a deleted machine has left in a cluster: leftovers. The metadata are
// those of the object that is left.
type Leftover struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	// ObjectKind is the kind of the object, PersistentVolumeClaim or Secret.
	ObjectKind         string `json:"objectKind"`
	VirtualMachineName string `json:"virtualMachineName"`
	// Size is that of a volume claim.
	Size *resource.Quantity `json:"size,omitempty"`
	// DeleteCommand would delete it.
	DeleteCommand string `json:"deleteCommand"`
}

// GuestInfo is what a guest agent says: guest info. The names are those of a machine's
// status.
type GuestInfo struct {
	metav1.TypeMeta `json:",inline"`
	// AgentVersion is that of the agent.
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

// DisplayConnection is how a viewer gets to a display: spice and vnc with --print.
type DisplayConnection struct {
	metav1.TypeMeta `json:",inline"`
	// Protocol is spice or vnc.
	Protocol string `json:"protocol"`
	URI      string `json:"uri"`
	// Path is that of a UNIX socket; Host and Port are for TCP.
	Path string `json:"path,omitempty"`
	Host string `json:"host,omitempty"`
	Port int    `json:"port,omitempty"`
	// Auth is none, or spice or vnc for a password.
	Auth string `json:"auth"`
}

// DisplayProxy is the port that leads to a display: spice and vnc with --proxy-only.
type DisplayProxy struct {
	metav1.TypeMeta `json:",inline"`
	Host            string `json:"host"`
	Port            int    `json:"port"`
}

// Interface is a network interface as the guest sees it.
type Interface = spec.Interface
