package limits

import (
	"errors"
	"path"
	"regexp"
	"strings"
)

// Protocols of shared folders.
const (
	ShareVirtioFS = "virtiofs"
	Share9P       = "9p"
)

// ShareProtocol checks the protocol of a shared folder.
func ShareProtocol(s string) error { return oneOf(s, []string{ShareVirtioFS, Share9P}) }

// tagPattern is narrower than virtio's limits (36 bytes of UTF-8 for virtiofs, 31 for 9p), because
// the tag is also a word of the guest's fstab and the name of a directory, and cloud-init takes a
// dot and a number for a partition.
var tagPattern = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_-]{0,30}$`)

// diskTag are the tags that cloud-init takes for disks (is_meta_device_name and DEVICE_NAME_FILTER
// in its cc_mounts.py).
var diskTag = regexp.MustCompile(`^(ami|root|swap|ephemeral.*|ebs.*|x?[shv]d[a-z][0-9]*|sr[0-9]+)$`)

// ShareTag checks the name by which a guest mounts a shared folder.
func ShareTag(s string) error {
	if !tagPattern.MatchString(s) {
		return errors.New("must be a name of at most 31 letters, digits, hyphens and underscores, such as src")
	}
	if diskTag.MatchString(s) {
		return errors.New("is what cloud-init takes for a disk; choose another name, such as src")
	}
	return nil
}

// MountPoint checks where a guest mounts a shared folder: the path is a word of its fstab, in which
// spaces and backslashes are special.
func MountPoint(s string) error {
	if err := Text(s); err != nil {
		return err
	}
	if !path.IsAbs(s) || path.Clean(s) != s || s == "/" || strings.ContainsAny(s, " \\#") {
		return errors.New("must be an absolute path in the guest such as /mnt/src, without spaces, # and backslashes")
	}
	return nil
}
