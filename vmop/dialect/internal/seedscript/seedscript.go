// Package seedscript carries user data that is a script over to cloud-config,
// the one form of user data that a VirtualMachine has.
package seedscript

import (
	"encoding/json"

	"k8s.io/apimachinery/pkg/runtime"
)

// Path is where the script is put. cloud-init runs what is in its directory once
// per instance, just before it would run a script of the user data.
const Path = "/var/lib/cloud/scripts/per-instance/user-data"

// UserData is the cloud-config that writes a script to [Path].
func UserData(script string) *runtime.RawExtension {
	type file struct {
		Path        string `json:"path"`
		Permissions string `json:"permissions"`
		Content     string `json:"content"`
	}
	data, err := json.Marshal(map[string][]file{"write_files": {{Path: Path, Permissions: "0700", Content: script}}})
	if err != nil {
		panic(err) // strings always have a JSON form
	}
	return &runtime.RawExtension{Raw: data}
}
