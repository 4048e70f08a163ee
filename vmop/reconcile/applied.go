package reconcile

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"maps"
	"slices"

	"github.com/vmop/sdk/internal/jsonwriter"
	"github.com/vmop/sdk/vmop/names"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Stamp records a digest of an object, and of what else it is made from, in the object itself,
// which is about to be written. See [Applied].
func Stamp(o Object, more ...[]byte) {
	h := sha256.New()
	a := o.GetAnnotations()
	if a == nil {
		a = map[string]string{}
	}
	// Another version of the operator is no reason to write an object.
	version, has := a[names.AnnotationVersion]
	delete(a, names.AnnotationVersion)
	o.SetAnnotations(a)
	h.Write(encoded(o))
	h.Write([]byte{'\n'}) // stored digests were made with a json.Encoder
	for _, m := range more {
		h.Write(m)
	}
	if has {
		a[names.AnnotationVersion] = version
	}
	a[names.AnnotationApplied] = hex.EncodeToString(h.Sum(nil)[:16])
	o.SetAnnotations(a)
}

// encoded returns an object as JSON. A ConfigMap with metadata alone, which nearly every decision
// about a machine creates, is written without reflection.
func encoded(o Object) []byte {
	if cm, ok := o.(*corev1.ConfigMap); ok && cm.Data == nil && cm.BinaryData == nil && cm.Immutable == nil && onlyNamed(&cm.ObjectMeta) {
		w := jsonwriter.New(make([]byte, 0, 1024))
		w.Open('{')
		w.Text("kind", cm.Kind)
		w.Text("apiVersion", cm.APIVersion)
		w.Key("metadata")
		writeMeta(w, &cm.ObjectMeta)
		w.Close('}')
		out, _ := w.Result() // no raw values, no errors
		return out
	}
	// API types always encode; if one did not, the object would count as unchanged.
	out, _ := json.Marshal(o)
	return out
}

// onlyNamed reports whether metadata have only what [writeMeta] writes.
func onlyNamed(m *metav1.ObjectMeta) bool {
	return m.GenerateName == "" && m.GetSelfLink() == "" && m.UID == "" && m.ResourceVersion == "" && m.Generation == 0 &&
		m.CreationTimestamp.IsZero() && m.DeletionTimestamp == nil && m.DeletionGracePeriodSeconds == nil &&
		len(m.Finalizers) == 0 && len(m.ManagedFields) == 0
}

func writeMeta(w *jsonwriter.Writer, m *metav1.ObjectMeta) {
	w.Open('{')
	w.Text("name", m.Name)
	w.Text("namespace", m.Namespace)
	for _, part := range [...]struct {
		key     string
		entries map[string]string
	}{{"labels", m.Labels}, {"annotations", m.Annotations}} {
		if len(part.entries) > 0 {
			w.Key(part.key)
			w.Strings(part.entries)
		}
	}
	if len(m.OwnerReferences) > 0 {
		w.Key("ownerReferences")
		w.Open('[')
		for i := range m.OwnerReferences {
			writeOwner(w, &m.OwnerReferences[i])
		}
		w.Close(']')
	}
	w.Close('}')
}

func writeOwner(w *jsonwriter.Writer, r *metav1.OwnerReference) {
	w.Open('{')
	w.Key("apiVersion")
	w.String(r.APIVersion)
	w.Key("kind")
	w.String(r.Kind)
	w.Key("name")
	w.String(r.Name)
	w.Key("uid")
	w.String(string(r.UID))
	if r.Controller != nil {
		w.Key("controller")
		w.Bool(*r.Controller)
	}
	if r.BlockOwnerDeletion != nil {
		w.Key("blockOwnerDeletion")
		w.Bool(*r.BlockOwnerDeletion)
	}
	w.Close('}')
}

// Applied reports whether a stored object was made from a wanted one that has its [Stamp], and
// still has its labels, annotations and owners. Additions by others are allowed. Changes to the
// rest of the object are not detected.
func Applied(wanted, stored metav1.Object) bool {
	if !contains(stored.GetAnnotations(), wanted.GetAnnotations(), notCompared) || !contains(stored.GetLabels(), wanted.GetLabels(), nil) {
		return false
	}
	for _, w := range wanted.GetOwnerReferences() {
		found := false
		for _, s := range stored.GetOwnerReferences() {
			found = found || s.UID == w.UID && s.Kind == w.Kind && s.Name == w.Name && s.APIVersion == w.APIVersion
		}
		if !found {
			return false
		}
	}
	return true
}

func contains(all, some map[string]string, skip func(key string) bool) bool {
	for k, v := range some {
		if got, ok := all[k]; (!ok || got != v) && (skip == nil || !skip(k)) {
			return false
		}
	}
	return true
}

func notCompared(key string) bool {
	return key == names.AnnotationVersion || slices.Contains(unread, key)
}

// unread are annotations that other programs write into objects and that no decision reads. They
// are not reconciled either if a manifest has them.
var unread = []string{
	corev1.LastAppliedConfigAnnotation,
	"pv.kubernetes.io/bind-completed", "pv.kubernetes.io/bound-by-controller",
	"volume.beta.kubernetes.io/storage-provisioner", "volume.kubernetes.io/storage-provisioner",
	"volume.kubernetes.io/selected-node",
}

// Readable returns a map of annotations without those that no decision reads: the map itself if
// it has none of them.
func Readable(m map[string]string) map[string]string {
	copied := false
	for _, k := range unread {
		if _, ok := m[k]; !ok {
			continue
		}
		if !copied {
			m, copied = maps.Clone(m), true
		}
		delete(m, k)
	}
	return m
}
