package machinetest

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"strings"
	"testing"

	"github.com/vmop/sdk/vmop/names"
	"github.com/vmop/sdk/vmop/reconcile"
	"github.com/vmop/sdk/vmop/reconcile/machine"
	"github.com/vmop/sdk/vmop/spec"
	corev1 "k8s.io/api/core/v1"
)

// written is what is seen of a machine that runs with documents.
func written(t *testing.T) machine.Snapshot {
	t.Helper()
	w := newDocumentsWorld(func(string, int) int { return 0 }, decideOnLess)
	vm := get[*spec.VirtualMachine](w, theVM)
	vm.Spec.CloudInit.NetworkConfig = documentOf(`{"version": 2}`)
	w.put(theVM, vm)
	s := w.converge(t)
	s.ConfigMap = s.ConfigMap.DeepCopy()
	return s
}

// configMapOf is the ConfigMap that a plan writes.
func configMapOf(p reconcile.Plan) *corev1.ConfigMap {
	for _, a := range p.Actions {
		if a, is := a.(reconcile.Apply); is {
			if cm, is := a.Object.(*corev1.ConfigMap); is {
				return cm
			}
		}
	}
	return nil
}

// What an operator wrote that noted nothing stays as it is, until something changes.
func TestConfigMapsWithoutNotesStay(t *testing.T) {
	s := written(t)
	// This is what the last one wrote that noted nothing.
	for annotation, want := range map[string]string{
		names.AnnotationApplied: "fea471bd16bb119bb685151d95613763", names.AnnotationContent: "673a862df3e65e67d868d87c5af5f365",
	} {
		if got := s.ConfigMap.Annotations[annotation]; got != want {
			t.Errorf("%s is %s, was %s", annotation, got, want)
		}
	}
	delete(s.ConfigMap.Annotations, names.AnnotationDocuments)
	if p := decideOnLess(s); len(p.Actions)+len(p.Statuses)+len(p.Events) > 0 {
		t.Errorf("%+v", p)
	}
	s.VM.Spec.LoggingProperties, s.VM.Generation = "a=b", s.VM.Generation+1
	cm := configMapOf(decideOnLess(s))
	if cm == nil || cm.Annotations[names.AnnotationDocuments] == "" {
		t.Fatalf("nothing is noted: %+v", cm)
	}
	s.VM.Spec.CloudInit = nil
	if cm := configMapOf(decideOnLess(s)); cm == nil || cm.Annotations[names.AnnotationDocuments] != "" {
		t.Errorf("documents are noted that there are not: %+v", cm)
	}
}

// forgedNote is what somebody who knows the program would have a ConfigMap note of documents,
// but for the digest of all else.
func forgedNote(c *spec.CloudInit) string {
	h := sha256.New()
	h.Write([]byte("1"))
	for _, raw := range [][]byte{c.UserData.Raw, c.NetworkConfig.Raw} {
		h.Write(binary.BigEndian.AppendUint64(nil, uint64(len(raw))))
		h.Write(raw)
	}
	return hex.EncodeToString(h.Sum(nil)[:16]) + "."
}

// Who forges what is noted of documents has nothing written that is not valid, and no pod
// made with it.
func TestForgedNotesMakeNothingOfInvalidDocuments(t *testing.T) {
	for name, foreign := range map[string]bool{"of the machine": false, "of somebody else": true} {
		for _, runs := range []bool{true, false} {
			s := written(t)
			note := s.ConfigMap.Annotations[names.AnnotationDocuments]
			if forged := forgedNote(s.VM.Spec.CloudInit); !strings.HasPrefix(note, forged) {
				t.Fatalf("%s is noted, and not %s", note, forged)
			}
			s.VM.Spec.CloudInit.UserData = documentOf(invalidDocument)
			s.ConfigMap.Annotations[names.AnnotationDocuments] = forgedNote(s.VM.Spec.CloudInit) + note[strings.Index(note, ".")+1:]
			if foreign {
				s.ConfigMap.Labels = nil
			}
			if !runs {
				s.Pods = nil
			}
			for _, s := range []machine.Snapshot{s, condensed(s)} {
				p := machine.Decide(s)
				if reason, message := said(p, spec.ConditionConfigurationApplied); reason != spec.ReasonInvalidSpecification || !strings.Contains(message, "spec.cloudInit.userData") {
					t.Errorf("ConfigMap %s: %s: %s", name, reason, message)
				}
				if p.StartsPod() || configMapOf(p) != nil {
					t.Errorf("ConfigMap %s: %+v", name, p.Actions)
				}
			}
		}
	}
}

// A document that takes another one's place, or becomes none, is another one.
func TestDocumentsThatChangePlaces(t *testing.T) {
	s := written(t)
	c := s.VM.Spec.CloudInit
	for name, changed := range map[string]spec.CloudInit{
		"exchanged":   {UserData: c.NetworkConfig, NetworkConfig: c.UserData},
		"only one":    {UserData: c.UserData},
		"an empty":    {UserData: c.UserData, NetworkConfig: documentOf("{}")},
		"only others": {NetworkConfig: c.NetworkConfig},
		"none":        {},
	} {
		s.VM.Spec.CloudInit = &changed
		if p := decideOnLess(s); configMapOf(p) == nil {
			t.Errorf("%s: %+v", name, p)
		}
	}
}
