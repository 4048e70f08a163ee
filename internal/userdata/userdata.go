// Package userdata knows what cloud-init takes for user data.
package userdata

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

	"github.com/vmop/sdk/internal/yamljson"
)

// ErrForm reports that user data begins in no way that cloud-init knows, which would ignore it.
var ErrForm = errors.New("begins in no way that cloud-init knows: want a first line such as #cloud-config or #!/bin/sh")

const (
	cloudConfig = "#cloud-config"
	gzip        = "\x1f\x8b"
	headSize    = 4096
)

// Known reports whether cloud-init recognizes user data, by the same criteria: the first line,
// compression or a MIME header in the first 4 KiB.
func Known(text []byte) bool {
	head := bytes.ToLower(text[:min(len(text), headSize)])
	return bytes.HasPrefix(text, []byte("#")) || bytes.HasPrefix(text, []byte(gzip)) || bytes.Contains(head, []byte("mime-version:"))
}

// Check returns why cloud-init would ignore user data: it begins in no known way ([ErrForm]), or is
// cloud-config that is not YAML, or not a mapping. The error contains nothing of the user data.
func Check(text []byte) error {
	if !Known(text) {
		return ErrForm
	}
	first, _, _ := bytes.Cut(text, []byte("\n"))
	if string(bytes.TrimRight(first, " \t\r")) != cloudConfig {
		return nil
	}
	doc, err := yamljson.ToJSON(text)
	if err != nil {
		return Hidden(err)
	}
	if doc = bytes.TrimSpace(doc); len(doc) > 0 && doc[0] != '{' && string(doc) != "null" {
		return errors.New("is cloud-config, and must be a mapping then")
	}
	return nil
}

// Hidden returns an error about a YAML document without the document's content.
func Hidden(err error) error {
	line, _, ok := strings.Cut(err.Error(), ":")
	if at, found := strings.CutPrefix(strings.TrimPrefix(line, "yaml: "), "line "); ok && found {
		return fmt.Errorf("is no YAML that can be used, in line %s, which is not shown", at)
	}
	return errors.New("is no YAML that can be used; it is not shown")
}
