package runnerconfig

import (
	"encoding/json"
	"fmt"
	"strings"
)

// ImportEnv is the environment variable with the task of vmop-runner -import, an [Import] as JSON.
const ImportEnv = "VMOP_IMPORT"

// FormatISO is the format of a kept image of a CD, see [Import]. For QEMU it is a raw image.
const FormatISO = "iso"

// Import describes a disk to be created in an empty volume, or on an empty block device.
type Import struct {
	// Disk is the UID of the object that the disk is for, by which another attempt recognizes what
	// an earlier one left.
	Disk string `json:"disk"`
	// File is the path of the image to be created, or of the block device.
	File string `json:"file"`
	// Device reports whether File is a block device, to which the disk is written as raw data,
	// followed by zeros. Scratch is the directory for downloads; a copy does not need it.
	Device  bool   `json:"device,omitempty"`
	Scratch string `json:"scratch,omitempty"`
	// Size is the disk's, in bytes; a larger image is refused.
	Size int64 `json:"size"`
	// Keep keeps an image unchanged, as a source of disks: Size bounds its file, it is not
	// enlarged, and the format of a CD is [FormatISO].
	Keep bool `json:"keep,omitempty"`
	// Image is the source of the disk; nil for an empty one.
	Image *DriveImage `json:"image,omitempty"`
	// Copy is another disk to be copied.
	Copy *ImportCopy `json:"copy,omitempty"`
	// Restored is set if the volume was restored from a snapshot: the disk is in it, and only
	// inspected.
	Restored *ImportRestored `json:"restored,omitempty"`
	// Served is an image that another pod serves, to be copied.
	Served *ImportServed `json:"served,omitempty"`
	// Digest requests digest and length of the result, for those who copy it.
	Digest bool `json:"digest,omitempty"`
	// Upload is how a user uploads the disk.
	Upload *ImportUpload `json:"upload,omitempty"`
	// ProgressPort is where any client that reaches the pod can read the progress, see
	// [ImportProgress]; 0 disables it.
	ProgressPort int `json:"progressPort,omitempty"`
}

// ImportProgressPort is the usual ProgressPort, and ImportProgressPath the path of the resource for
// HTTP's GET.
const (
	ImportProgressPort = 10811
	ImportProgressPath = "/progress"
)

// ImportUpload is how a user uploads a disk.
type ImportUpload struct {
	// Port is the port of the loopback interface that waits for the upload, and Keys the directory
	// with the key of both its ends, tls.crt and tls.key.
	Port int    `json:"port"`
	Keys string `json:"keys"`
	// Checksum is sha256:HEX or sha512:HEX of the expected upload; empty accepts anything.
	Checksum string `json:"checksum,omitempty"`
	// WaitSeconds is how long the upload may take to begin, and to be resumed when it was cut off.
	WaitSeconds int `json:"waitSeconds"`
}

// TransferPort is the usual port of a pod for uploads and downloads, on its loopback
// interface.
const TransferPort = 10812

// ImportProgress is the progress of an import.
type ImportProgress struct {
	// Step is downloading, [StepUploading], verifying, unpacking, copying or converting.
	Step string `json:"step"`
	// Done and Total are bytes of the step's input; Total is 0 if unknown.
	Done  int64 `json:"done"`
	Total int64 `json:"total,omitempty"`
}

// MaxImportProgress is the maximum size of a progress as JSON, in bytes.
const MaxImportProgress = 1024

// StepUploading is the step while an upload arrives. Later steps have all of it.
const StepUploading = "uploading"

// progressSteps are the ranges of the steps, in percent of the whole.
var progressSteps = map[string][2]int64{
	"downloading": {0, 70}, StepUploading: {0, 70}, "verifying": {70, 75}, "unpacking": {75, 90}, "copying": {0, 95}, "converting": {90, 99},
}

// ParseImportProgress parses progress from an untrusted sender.
func ParseImportProgress(data []byte) (ImportProgress, error) {
	var p ImportProgress
	if len(data) > MaxImportProgress {
		return p, fmt.Errorf("the progress is longer than %d bytes", MaxImportProgress)
	}
	if err := json.Unmarshal(data, &p); err != nil {
		return ImportProgress{}, fmt.Errorf("the progress: %w", err)
	}
	if _, known := progressSteps[p.Step]; !known || p.Done < 0 || p.Total < 0 || p.Total > 0 && p.Done > p.Total {
		return ImportProgress{}, fmt.Errorf("the progress is no step that there is, or more than all of it")
	}
	return p, nil
}

// Percent is the progress of the whole; at most 99, since no progress is reported once the disk
// exists. A step of unknown length counts as begun.
func (p ImportProgress) Percent() int {
	r := progressSteps[p.Step]
	if p.Total <= 0 || p.Done < 0 {
		return int(r[0])
	}
	done := min(float64(p.Done)/float64(p.Total), 1)
	return min(int(r[0]+int64(done*float64(r[1]-r[0]))), 99)
}

// ImportCopy is a disk that guests have used: its format must not be guessed from its content.
type ImportCopy struct {
	// File is the path of the image, or of a block device.
	File string `json:"file"`
	// Format is raw or qcow2.
	Format string `json:"format"`
	// CD reports whether it is the image of a CD, which is raw.
	CD bool `json:"cd,omitempty"`
	// CloneOf is set if the volume may be a clone of the other disk's, which was created for the
	// disk with this UID: the volume is compared, and copied if it is not a clone.
	CloneOf string `json:"cloneOf,omitempty"`
	// Whole compares all of it, not only enough to distinguish a clone from an empty volume: the
	// other one may have been written to after it was cloned.
	Whole bool `json:"whole,omitempty"`
}

// ImportRestored is a disk in a restored volume. Guests have used it: its format must not be
// guessed from its content.
type ImportRestored struct {
	// Format is raw or qcow2; a block device is raw.
	Format string `json:"format"`
}

// ImportServed is an image that another pod serves. That pod is authenticated by its key, and the
// content verified by its digest.
type ImportServed struct {
	// Address is HOST:PORT, and Fingerprint the fingerprint of the server's key.
	Address     string `json:"address"`
	Fingerprint string `json:"fingerprint"`
	// Certificates is a directory with tls.crt and tls.key of the client.
	Certificates string `json:"certificates"`
	// Format is raw or qcow2, whatever the content; CD reports whether it is the image of a CD.
	Format string `json:"format"`
	CD     bool   `json:"cd,omitempty"`
	// Length is the file's, in bytes, and SHA256 its digest in hexadecimal digits.
	Length int64  `json:"length"`
	SHA256 string `json:"sha256"`
}

// Known returns the format of what is copied, raw or qcow2, and whether it is the image of a CD.
// That of other sources is not known before their content is inspected.
func (i *Import) Known() (format string, cd, known bool) {
	switch {
	case i.Copy != nil:
		return i.Copy.Format, i.Copy.CD, true
	case i.Restored != nil:
		return i.Restored.Format, false, true
	case i.Served != nil:
		return i.Served.Format, i.Served.CD, true
	}
	return "", false, false
}

// Encode returns the import as JSON without dollar signs, which Kubernetes would expand in the
// value of an environment variable.
func (i Import) Encode() (string, error) {
	data, err := json.Marshal(i)
	return strings.ReplaceAll(string(data), "$", `\u0024`), err
}

// ParseImport parses the result of [Import.Encode].
func ParseImport(text string) (Import, error) {
	var i Import
	if err := json.Unmarshal([]byte(text), &i); err != nil {
		return i, fmt.Errorf("%s: %w", ImportEnv, err)
	}
	if i.Disk == "" || i.File == "" || i.Size <= 0 {
		return i, fmt.Errorf("%s: want disk, file and size", ImportEnv)
	}
	if i.Keep && i.Image == nil && i.Copy == nil && i.Served == nil && i.Upload == nil {
		return i, fmt.Errorf("%s: want what is to be kept, an image, a copy or an upload", ImportEnv)
	}
	if u := i.Upload; u != nil && (i.Image != nil || i.Copy != nil || i.Served != nil || u.Keys == "" || u.Port <= 0 || u.WaitSeconds <= 0) {
		return i, fmt.Errorf("%s: want of upload keys, port and waitSeconds, and neither image nor copy beside it", ImportEnv)
	}
	if r := i.Restored; r != nil && (i.Keep || i.Image != nil || i.Copy != nil || i.Served != nil || i.Upload != nil ||
		r.Format != "raw" && (r.Format != "qcow2" || i.Device)) {
		return i, fmt.Errorf("%s: want of what is restored a format, raw or qcow2, raw for a block device, and no other source", ImportEnv)
	}
	if i.Device && (i.Keep || i.Image == nil && i.Copy == nil && i.Restored == nil || i.Image != nil && i.Scratch == "") {
		return i, fmt.Errorf("%s: want for a block device a copy, what is restored, or an image and a directory for it, and none that is kept", ImportEnv)
	}
	if c := i.Copy; c != nil && (i.Image != nil || c.File == "" || c.Format != "raw" && c.Format != "qcow2") {
		return i, fmt.Errorf("%s: want of copy a file and its format, raw or qcow2, and no image beside it", ImportEnv)
	}
	if s := i.Served; s != nil && (i.Image != nil || i.Copy != nil || s.Address == "" || s.Fingerprint == "" || s.Certificates == "" ||
		s.Format != "raw" && s.Format != "qcow2" || s.Length <= 0 || len(s.SHA256) != 64) {
		return i, fmt.Errorf("%s: want of what is served an address, keys, a format, a length and a digest, and no other source", ImportEnv)
	}
	return i, nil
}

// Imported is the result that a container reports at its end, with or without a disk.
type Imported struct {
	// Format is raw or qcow2, or iso for a kept image of a CD, and Size what a guest sees of it, in
	// bytes.
	Format string `json:"format,omitempty"`
	Size   int64  `json:"size,omitempty"`
	// Stored is the space that a kept image takes in its volume, in bytes.
	Stored int64 `json:"stored,omitempty"`
	// Cloned reports that the volume was a clone, so that nothing was copied.
	Cloned bool `json:"cloned,omitempty"`
	// SHA256 is the digest of the file in hexadecimal digits and Length its length in bytes, if
	// requested.
	SHA256 string `json:"sha256,omitempty"`
	Length int64  `json:"length,omitempty"`
	// Error is why there is no disk; Final is true if another attempt would fail likewise.
	Error string `json:"error,omitempty"`
	Final bool   `json:"final,omitempty"`
}

const maxImportError = 1000

// Encode returns the result as a container's termination message.
func (i Imported) Encode() []byte {
	if len(i.Error) > maxImportError {
		i.Error = strings.ToValidUTF8(i.Error[:maxImportError], "")
	}
	data, _ := json.Marshal(i) // it has only strings, numbers and booleans
	return data
}

// ParseImported parses what [Imported.Encode] returns. Any other text is an error that is not
// final: the container ended before it could report.
func ParseImported(text string) Imported {
	var i Imported
	if json.Unmarshal([]byte(text), &i) != nil || i == (Imported{}) {
		return Imported{Error: "it ended without a word"}
	}
	if i.Error == "" && i.Format != "raw" && i.Format != "qcow2" && i.Format != FormatISO {
		return Imported{Error: "it said nothing of the format"}
	}
	if len(i.Error) > maxImportError {
		i.Error = strings.ToValidUTF8(i.Error[:maxImportError], "")
	}
	return i
}
