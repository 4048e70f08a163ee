package machineconfig

import (
	"bytes"
	"encoding/json"
	"fmt"
	"path"

	"github.com/vmop/sdk/internal/plainjson"
	"github.com/vmop/sdk/vmop/runnerconfig"
	"github.com/vmop/sdk/vmop/spec"
)

// ShareMountDir has, in a pod, a directory for each share, by its tag.
const ShareMountDir = "/var/local/vmop-shares"

func shareConfig(s *spec.Share, dir string) runnerconfig.Share {
	out := runnerconfig.Share{Tag: s.Tag, Dir: dir, ReadOnly: s.ReadOnly}
	if s.Protocol != spec.ShareVirtioFS {
		out.Protocol = string(s.Protocol)
	}
	return out
}

func clusterShares(shares []spec.Share, p *problems) []runnerconfig.Share {
	var out []runnerconfig.Share
	for i := range shares {
		s := &shares[i]
		if s.PersistentVolumeClaim == nil {
			p.add(fmt.Sprintf("spec.vm.shares[%d].hostPath", i), "is for machines of one host: a folder of a node is not for machines of a cluster; share a persistentVolumeClaim")
			continue
		}
		out = append(out, shareConfig(s, path.Join(ShareMountDir, s.Tag)))
	}
	return out
}

// LocalShare is a folder that the user gives a machine of one host.
type LocalShare struct {
	// Tag is that of a share of the manifest, whose folder it replaces, or of an additional one.
	Tag string `json:"tag"`
	// Dir is the folder, an absolute path.
	Dir      string `json:"dir"`
	ReadOnly bool   `json:"readOnly,omitempty"`
}

func withLocal(shares []spec.Share, given []LocalShare) []spec.Share {
	out := append([]spec.Share{}, shares...)
given:
	for _, g := range given {
		for i := range out {
			if s := &out[i]; s.Tag == g.Tag {
				s.HostPath, s.PersistentVolumeClaim, s.ReadOnly = g.Dir, nil, s.ReadOnly || g.ReadOnly
				continue given
			}
		}
		out = append(out, spec.Share{Tag: g.Tag, HostPath: g.Dir, ReadOnly: g.ReadOnly, Protocol: spec.ShareVirtioFS})
	}
	return out
}

func localShares(shares []spec.Share, base string, p *problems) []runnerconfig.Share {
	var out []runnerconfig.Share
	for i := range shares {
		s := &shares[i]
		at := fmt.Sprintf("spec.vm.shares[%d]", i)
		dir := s.HostPath
		switch {
		case s.PersistentVolumeClaim != nil:
			p.add(at+".persistentVolumeClaim", "the claim %q exists in a cluster only: say which folder it is here, --share DIR:%s", s.PersistentVolumeClaim.ClaimName, s.Tag)
		case path.IsAbs(dir):
		case base == "":
			p.add(at+".hostPath", "%q is relative, and it is not known to which folder: make it an absolute path", dir)
		default:
			dir = path.Join(base, dir)
		}
		out = append(out, shareConfig(s, path.Clean(dir)))
	}
	return out
}

// mountEntry returns an entry of cloud-init's mounts: the fields of a line in fstab. A missing
// share does not keep the guest from booting.
func mountEntry(s *spec.Share) []string {
	kind, options := "virtiofs", "defaults,nofail"
	if s.Protocol == spec.Share9P {
		kind, options = "9p", "trans=virtio,version=9p2000.L,msize=262144,nofail"
	}
	if s.ReadOnly {
		options += ",ro"
	}
	return []string{s.Tag, s.MountedAt(), kind, options, "0", "0"}
}

// withMounts adds mounts of the shares to user data, whose own mounts of a tag take precedence.
// Mounts that are no list are left for cloud-init to report.
func withMounts(userData json.RawMessage, shares []spec.Share) json.RawMessage {
	if len(shares) == 0 {
		return userData
	}
	var keys map[string]json.RawMessage
	if json.Unmarshal(userData, &keys) != nil {
		return userData
	}
	var entries []json.RawMessage
	if has, ok := keys["mounts"]; ok && json.Unmarshal(has, &entries) != nil {
		return userData
	}
	mounted := map[string]bool{}
	for _, e := range entries {
		var fields []json.RawMessage
		var tag string
		if json.Unmarshal(e, &fields) == nil && len(fields) > 0 && json.Unmarshal(fields[0], &tag) == nil {
			mounted[tag] = true
		}
	}
	before := len(entries)
	for i := range shares {
		if mounted[shares[i].Tag] {
			continue
		}
		entry, err := json.Marshal(mountEntry(&shares[i]))
		if err != nil { // strings always encode
			return userData
		}
		entries = append(entries, entry)
	}
	if len(entries) == before {
		return userData
	}
	list, err := json.Marshal(entries)
	if err != nil {
		return userData
	}
	return withKey(userData, "mounts", list)
}

// withKey appends a key to a JSON object and keeps order and spelling of the others.
func withKey(object json.RawMessage, key string, value json.RawMessage) json.RawMessage {
	var out bytes.Buffer
	out.WriteByte('{')
	put := func(k, v []byte) {
		if out.Len() > 1 {
			out.WriteByte(',')
		}
		out.Write(k)
		out.WriteByte(':')
		out.Write(v)
	}
	d := json.NewDecoder(bytes.NewReader(object))
	if _, err := d.Token(); err != nil {
		return object
	}
	for d.More() {
		token, err := d.Token()
		name, ok := token.(string)
		var v json.RawMessage
		if err != nil || !ok || d.Decode(&v) != nil {
			return object
		}
		if name == key {
			continue
		}
		put(plainjson.Quote(name), v)
	}
	put(plainjson.Quote(key), value)
	out.WriteByte('}')
	return out.Bytes()
}
