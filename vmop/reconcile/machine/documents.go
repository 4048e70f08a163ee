package machine

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"strings"

	"github.com/vmop/sdk/vmop/names"
	"github.com/vmop/sdk/vmop/reconcile/internal/manifest"
	"github.com/vmop/sdk/vmop/spec"
	"k8s.io/apimachinery/pkg/runtime"
)

// Parsing the cloud-init documents of a manifest would be nearly all that a decision costs. So
// the ConfigMap notes which were judged and written into it ([names.AnnotationDocuments]): a
// digest of them as the manifest has them, and one of all that the ConfigMap is made from, with
// that digest in their place and with its [names.AnnotationApplied]. Where both match, nothing is
// parsed.
//
// The note is trusted for one thing only: that nothing is to be written. Whatever is written is
// made from the documents themselves, which validates them. So a forged note can hide that a
// ConfigMap differs from its manifest, or that documents are invalid which the guest is not
// given. A user who may write the ConfigMap can give the guest any configuration anyway, with
// matching digests; other machines are not affected, as a machine reads the ConfigMap of its name
// in its own namespace, and only with the operator's labels.
//
// The digest is cryptographic because of authors of manifests: with a checksum they could make
// two documents of which one replaces the other without being given to the guest, so that the
// manifest would not show what the guest has. SHA-256 takes less than a thirtieth of the time of
// parsing, and less than an operator needs to read the manifest. The generation alone would be
// cheaper, but it changes with everything else, stays the same for a manifest that no API server
// has numbered, and what is stored for a generation may be read differently with another
// definition.

// documentRules is part of the digest. Changing it has all documents judged again, for when the
// rules become stricter or the resulting configuration changes. It causes no write by itself.
const documentRules = "1"

func (d *decision) recall() {
	d.documents = documentsDigest(d.vm.Spec.CloudInit)
	cm := d.s.ConfigMap
	d.recalled = d.documents != "" && cm != nil && cm.DeletionTimestamp == nil && d.ours(cm) &&
		strings.HasPrefix(cm.Annotations[names.AnnotationDocuments], d.documents+".")
}

func documentsDigest(c *spec.CloudInit) string {
	if c == nil || c.UserData == nil && c.NetworkConfig == nil {
		return ""
	}
	h := sha256.New()
	h.Write([]byte(documentRules))
	for _, document := range []*runtime.RawExtension{c.UserData, c.NetworkConfig} {
		raw, err := manifest.RawJSON(document)
		if err != nil {
			return ""
		}
		// A missing one differs from an empty one.
		size := -1
		if document != nil {
			size = len(raw)
		}
		h.Write(binary.BigEndian.AppendUint64(nil, uint64(size)))
		h.Write(raw)
	}
	return hex.EncodeToString(h.Sum(nil)[:16])
}

// brief returns a machine with empty documents where it has any. It shares all else with the
// original and must not be changed.
func brief(vm *spec.VirtualMachine) *spec.VirtualMachine {
	c := vm.Spec.CloudInit
	if c == nil || c.UserData == nil && c.NetworkConfig == nil {
		return vm
	}
	out, without := *vm, *c
	for _, document := range []**runtime.RawExtension{&without.UserData, &without.NetworkConfig} {
		if *document != nil {
			*document = &runtime.RawExtension{Raw: []byte("{}")}
		}
	}
	out.Spec.CloudInit = &without
	return &out
}
