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

// The documents for cloud-init in a manifest may be long, and parsing them would be nearly all
// that a decision costs. So the ConfigMap notes which were judged and written into it
// ([names.AnnotationDocuments]): a digest of them as the manifest has them, and one of all
// that the ConfigMap is made from, with that digest in their place and with its
// [names.AnnotationApplied]. Where both are as noted, nothing is parsed.
//
// What is noted is believed for one thing only: that nothing is to be written. Whatever is
// written is made from the documents themselves, and making it refuses those that are not
// valid. So a note that somebody has forged hides from the operator that a ConfigMap is not
// as its manifest has it, or that documents are not valid which the guest is not given. Who
// may write the ConfigMap can give the guest any configuration anyway, with the digests of
// that; nobody else's machine is decided on with it, as a machine looks at the ConfigMap of
// its name in its own namespace, and that only if it has the operator's labels.
//
// The digest is a cryptographic one because of those who write manifests: with a checksum
// they could make two documents of which one takes the other's place without the guest
// being given it, and the manifest would not show what the guest has. SHA-256 takes less
// than a thirtieth of the time that parsing takes, and less than an operator needs to read
// the manifest. The generation alone would be cheaper still, but it is a new one with each
// change of something else, it stays where somebody decides about a manifest that no API
// server has numbered, and what is stored for a generation may be read otherwise with
// another definition.

// documentRules is part of the digest. Another one has all documents judged again, for when
// they are judged more strictly or become something else in the configuration. It causes no
// write by itself.
const documentRules = "1"

// recall finds whether the ConfigMap notes that the documents of the manifest are in it.
func (d *decision) recall() {
	d.documents = documentsDigest(d.vm.Spec.CloudInit)
	cm := d.s.ConfigMap
	d.recalled = d.documents != "" && cm != nil && cm.DeletionTimestamp == nil && d.ours(cm) &&
		strings.HasPrefix(cm.Annotations[names.AnnotationDocuments], d.documents+".")
}

// documentsDigest is a digest of documents as they were written, empty if there are none.
func documentsDigest(c *spec.CloudInit) string {
	if c == nil || c.UserData == nil && c.NetworkConfig == nil {
		return ""
	}
	h := sha256.New()
	h.Write([]byte(documentRules))
	for _, document := range []*runtime.RawExtension{c.UserData, c.NetworkConfig} {
		raw, err := manifest.RawJSON(document)
		if err != nil {
			return "" // the configuration cannot be made either
		}
		// None is another one than an empty one.
		size := -1
		if document != nil {
			size = len(raw)
		}
		h.Write(binary.BigEndian.AppendUint64(nil, uint64(size)))
		h.Write(raw)
	}
	return hex.EncodeToString(h.Sum(nil)[:16])
}

// brief is a machine with empty documents where it has any. It shares all else with the
// original, and is only to be read.
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
