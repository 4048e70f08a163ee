package imageinspect

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// The reasons for which [CheckUpload] refuses a file, for errors.Is.
var (
	// ErrCompressed: the file is an archive or compressed as a whole.
	ErrCompressed = errors.New("it is compressed")
	// ErrText: the file is text.
	ErrText = errors.New("it is text")
)

// packed are formats of archives and compression, which users upload in place of the image within.
var packed = []struct {
	at          int
	magic, name string
	remedy      string
}{
	{0, "\x1f\x8b", "gzip", "decompress it first, with gunzip"},
	{0, "\xfd7zXZ\x00", "xz", "decompress it first, with unxz"},
	{0, "\x28\xb5\x2f\xfd", "zstd", "decompress it first, with unzstd"},
	{0, "BZh", "bzip2", "decompress it first, with bunzip2"},
	{0, "\x04\x22\x4d\x18", "lz4", "decompress it first, with unlz4"},
	{0, "PK\x03\x04", "zip", "take the image out of it first, with unzip"},
	{0, "7z\xbc\xaf\x27\x1c", "7z", "take the image out of it first, with 7z x"},
	{257, "ustar", "tar", "take the image out of it first, with tar -x (an .ova has a .vmdk: convert that to qcow2 with qemu-img)"},
}

// CheckUpload returns why a newly uploaded file that begins with header is not a disk: it is
// compressed, or it is text, such as the login page of a server. It must not be used for a disk
// that a guest has used, which may begin with anything. header is the first [HeaderSize] bytes, or
// the whole file.
func CheckUpload(header []byte) error {
	for _, p := range packed {
		if len(header) >= p.at && bytes.HasPrefix(header[p.at:], []byte(p.magic)) {
			return fmt.Errorf("%w (%s), and no raw or qcow2 image: %s", ErrCompressed, p.name, p.remedy)
		}
	}
	text := header
	if len(text) >= HeaderSize { // the end may be within a character
		for range utf8.UTFMax - 1 {
			if r, size := utf8.DecodeLastRune(text); r == utf8.RuneError && size == 1 {
				text = text[:len(text)-1]
			}
		}
	}
	if len(text) == 0 || !utf8.Valid(text) || identify(header) != FormatRaw {
		return nil
	}
	for _, r := range string(text) {
		if !unicode.IsPrint(r) && !unicode.IsSpace(r) {
			return nil
		}
	}
	if start := strings.ToLower(strings.TrimSpace(string(text))); strings.HasPrefix(start, "<!doctype html") || strings.HasPrefix(start, "<html") {
		return fmt.Errorf("%w (a web page), and no raw or qcow2 image: download the image itself", ErrText)
	}
	return fmt.Errorf("%w, and no raw or qcow2 image", ErrText)
}
