// Package seedscript carries user data that is a script over to cloud-config, for where
// spec.provisioning, which passes it on as it is, does not take it.
package seedscript

import (
	"encoding/base64"
	"encoding/json"
	"strings"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/runtime"
)

// Path is the path of the script. cloud-init runs the scripts in its directory once per instance,
// just before it would run a script of the user data.
const Path = "/var/lib/cloud/scripts/per-instance/user-data"

// Plain reports whether a script can be a string in a manifest: behind its first line there may be
// anything, such as an archive.
func Plain(script string) bool {
	return utf8.ValidString(script) && !strings.ContainsRune(script, 0)
}

// UserData returns the cloud-config that writes a script to [Path].
func UserData(script string) *runtime.RawExtension {
	type file struct {
		Path        string `json:"path"`
		Permissions string `json:"permissions"`
		Encoding    string `json:"encoding,omitempty"`
		Content     string `json:"content"`
	}
	of := file{Path: Path, Permissions: "0700", Content: script}
	if !Plain(script) {
		of.Encoding, of.Content = "b64", base64.StdEncoding.EncodeToString([]byte(script))
	}
	data, err := json.Marshal(map[string][]file{"write_files": {of}})
	if err != nil {
		panic(err) // strings always have a JSON form
	}
	return &runtime.RawExtension{Raw: data}
}
