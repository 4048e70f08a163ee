package imageinspect

// Report is the result of [Inspect]. All sizes and offsets are in bytes.
type Report struct {
	// Path is the path that was inspected.
	Path string `json:"path"`
	// Format is the detected format. A file in no known format is raw.
	Format Format `json:"format"`
	// VirtualSize is the size of the disk that a guest sees: the file's size for raw images, and 0
	// for formats that are only recognized.
	VirtualSize int64 `json:"virtualSize"`
	// FileSize is the length of the file or block device.
	FileSize int64 `json:"fileSize"`
	// AllocatedSize is the space that the file takes on its file system: less than FileSize if it
	// has holes. It is 0 for block devices.
	AllocatedSize int64 `json:"allocatedSize"`
	// Refused is why the image cannot be a machine's disk, in the words of [ProbeFormat]. Empty
	// means that it can.
	Refused string `json:"refused,omitempty"`

	// Qcow2 describes a qcow2 image.
	Qcow2 *Qcow2 `json:"qcow2,omitempty"`
	// PartitionTable describes the partition table, if there is one.
	PartitionTable *PartitionTable `json:"partitionTable,omitempty"`
	// FileSystem is set if one fills the whole disk. An optical disc may have it beside a partition
	// table.
	FileSystem *FileSystem `json:"fileSystem,omitempty"`
	// NoCloud holds the documents of a cloud-init seed, if a volume is one.
	NoCloud *NoCloud `json:"noCloud,omitempty"`

	// Notes are what could not be examined, and why, in order.
	Notes []string `json:"notes,omitempty"`
}

// Qcow2 is the content of a qcow2 image's header.
type Qcow2 struct {
	// Version is 2 or 3 (compat=0.10 and compat=1.1 for qemu-img).
	Version int `json:"version"`
	// ClusterSize is the unit of allocation in bytes.
	ClusterSize int64 `json:"clusterSize"`
	// BackingFile is the name of the file on which the image is based. It is never opened.
	BackingFile string `json:"backingFile,omitempty"`
	// Encryption is "aes" or "luks"; empty means not encrypted.
	Encryption string `json:"encryption,omitempty"`
	// IncompatibleFeatures are the features that a reader must support, by name: "dirty",
	// "corrupt", "external data file", "compression type", "extended L2 entries", or "unknown bit"
	// and its number.
	IncompatibleFeatures []string `json:"incompatibleFeatures,omitempty"`
}

// PartitionTable lists the partitions of a disk.
type PartitionTable struct {
	// Type is "gpt" or "mbr".
	Type string `json:"type"`
	// ID identifies the disk: a GUID (gpt) or 8 hexadecimal digits (mbr).
	ID string `json:"id,omitempty"`
	// SectorSize is the unit of the table's addresses in bytes, 512 or 4096.
	SectorSize int64 `json:"sectorSize"`
	// Partitions are those in use, ordered by index.
	Partitions []Partition `json:"partitions"`
}

// Partition is one partition of a disk.
type Partition struct {
	// Index is the partition's number as Linux counts: from 1, logical partitions of an MBR from 5.
	Index int `json:"index"`
	// Type is the type GUID in upper case (gpt) or "0x" and two hexadecimal digits (mbr).
	Type string `json:"type"`
	// Label is the partition's name; MBR has none.
	Label string `json:"label,omitempty"`
	// UUID is the partition's own GUID; MBR has none.
	UUID string `json:"uuid,omitempty"`
	// Start is the partition's offset on the disk in bytes.
	Start int64 `json:"start"`
	// Size is the partition's size in bytes.
	Size int64 `json:"size"`
	// FileSystem is the partition's file system, if recognized.
	FileSystem *FileSystem `json:"fileSystem,omitempty"`
}

// FileSystem is a recognized file system of a disk or partition.
type FileSystem struct {
	// Type is the name that blkid uses: ext2, ext3, ext4, vfat, iso9660, squashfs, xfs, btrfs,
	// ntfs, swap, crypto_LUKS, LVM2_member.
	Type string `json:"type"`
	// Label is the volume's name, if it has one.
	Label string `json:"label,omitempty"`
	// UUID identifies the volume in the form that blkid uses, if it has one.
	UUID string `json:"uuid,omitempty"`
}

// NoCloud is the content of a cloud-init seed. User data often holds secrets and should not be
// logged.
type NoCloud struct {
	// Partition is the index of the partition with the seed; 0 is the whole disk.
	Partition int `json:"partition"`
	// MetaData is the content of meta-data; nil if the file does not exist.
	MetaData *string `json:"metaData,omitempty"`
	// UserData is the content of user-data; nil if the file does not exist.
	UserData *string `json:"userData,omitempty"`
	// NetworkConfig is the content of network-config; nil if the file does not exist.
	NetworkConfig *string `json:"networkConfig,omitempty"`
}

func (r *Report) note(about string, err error) {
	r.Notes = append(r.Notes, about+": "+err.Error())
}
