package machineconfig

import "path"

// Paths in the runner's container. They are VM-Operator's where it has them, because its
// templates and its users' absolute paths name them.
const (
	// DataDir is where the volume of the runner's own data is mounted.
	DataDir = "/var/local/vm-data"
	// ImageRepositoryDir is where the image repository is mounted, read-only.
	ImageRepositoryDir = "/var/local/vmop-image-repository"
	// DiskMountDir has a directory for each disk that is a file on a volume of mode Filesystem.
	DiskMountDir = "/var/local/vmop-disks"
	// DiskFile is the name of the image in such a directory.
	DiskFile = "disk.img"
	// ephemeralDiskFile is that of a disk that is made anew at each start.
	ephemeralDiskFile = "disk.ephemeral.img"
	// DiskDeviceDir has the block devices of all other disks.
	DiskDeviceDir = "/dev"
	// ConfigDir is where the runner's configuration and the display password are mounted.
	ConfigDir = "/etc/opt/vmrunner"
	// DisplayTLSDir has the certificates of the display under QEMU's names, see
	// [runnerconfig.DisplayTLS].
	DisplayTLSDir = ConfigDir + "/display-tls"
	// cloudInitDir, in ConfigDir, has the documents that come from Secrets.
	cloudInitDir = "cloud-init"
	// sysprepDir, in ConfigDir, has the answers of Windows' setup.
	sysprepDir = "sysprep"
	// RuntimeBase is where sockets are. They and the NoCloud image, which may contain passwords,
	// are in memory.
	RuntimeBase = "/run/vmop"
)

// RuntimeDir returns the machine's runtime directory in the runner's container: the runner
// creates it below $XDG_RUNTIME_DIR, by VM-Operator's rule.
func RuntimeDir(vmName string) string { return path.Join(RuntimeBase, "vmrunner", vmName) }
