package imagesource

import (
	"errors"
	"net/http"
	"strings"
)

// Version identifies the content of a source: an HTTP validator (RFC 9110, 8.8), or the digest of a
// container image's manifest. It is printable, has at most 1 KiB, and is only meant to be compared.
type Version string

// ErrUnchanged means that a source still has the version that the caller has.
var ErrUnchanged = errors.New("it has not changed")

// Prefixes of versions.
const (
	tagVersion    = "etag:"
	timeVersion   = "last-modified:"
	digestVersion = "sha256:"
)

// maxVersion bounds a version, in bytes: servers choose them.
const maxVersion = 1 << 10

// versionOf returns the version in a response's header; empty if there is none. An entity tag is
// more exact than a time.
func versionOf(h http.Header) Version {
	for _, from := range []struct{ prefix, header string }{{tagVersion, "ETag"}, {timeVersion, "Last-Modified"}} {
		value := strings.TrimSpace(h.Get(from.header))
		printable := !strings.ContainsFunc(value, func(r rune) bool { return r < ' ' || r > '~' })
		if value != "" && printable && len(from.prefix)+len(value) <= maxVersion {
			return Version(from.prefix + value)
		}
	}
	return ""
}

func (v Version) ask(h http.Header) {
	if tag, ok := strings.CutPrefix(string(v), tagVersion); ok {
		h.Set("If-None-Match", tag)
	} else if at, ok := strings.CutPrefix(string(v), timeVersion); ok {
		h.Set("If-Modified-Since", at)
	}
}
