package controller

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/vmop/sdk/vmop/spec"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func TestWhatTheCacheShowsOfAWrite(t *testing.T) {
	pod := func(uid types.UID, version string, going bool) client.Object {
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: uid, ResourceVersion: version}}
		if going {
			p.DeletionTimestamp = &metav1.Time{}
		}
		return p
	}
	for _, test := range []struct {
		name   string
		w      written
		cached client.Object
		want   bool
	}{
		{"a new object is not there yet", written{uid: "a", version: "10"}, nil, false},
		{"it is there", written{uid: "a", version: "10"}, pod("a", "10", false), true},
		{"it is there, changed since", written{uid: "a", version: "10"}, pod("a", "100", false), true},
		{"a change is not there yet", written{uid: "a", version: "100"}, pod("a", "99", false), false},
		{"there is another object of the name", written{uid: "a", version: "100"}, pod("b", "99", false), true},
		{"a deleted object is still there", written{uid: "a"}, pod("a", "10", false), false},
		{"it is going", written{uid: "a"}, pod("a", "11", true), true},
		{"it is gone", written{uid: "a"}, nil, true},
		{"it was replaced", written{uid: "a"}, pod("b", "12", false), true},
	} {
		if got := test.w.confirmedBy(test.cached); got != test.want {
			t.Errorf("%s: got %v", test.name, got)
		}
	}
}

// What the types cannot hold is an error that names the machine.
func TestDecodeNamesTheMachine(t *testing.T) {
	for _, cpus := range []string{`"many"`, "4294967298"} {
		m := &machine{}
		if err := json.Unmarshal([]byte(`{"metadata":{"name":"broken"},"spec":{"vm":{"maximumCpus":`+cpus+`}},"status":{"phase":"Stopped"}}`), m); err != nil {
			t.Fatal(err)
		}
		if vm, err := m.decode(); !errors.As(err, new(*decodeError)) || !strings.Contains(err.Error(), "broken") {
			t.Errorf("%v: got %v, %v", cpus, vm, err)
		}
		if m.phase != "Stopped" || m.Name != "broken" || m.status()["phase"] != "Stopped" {
			t.Errorf("%v: the rest is lost: %+v", cpus, m)
		}
	}
}

func TestIndexOfClaims(t *testing.T) {
	m := &machine{}
	if err := json.Unmarshal([]byte(`{"metadata":{"name":"one"},"spec":{"vm":{"disks":[
		{"cdrom":{"image":""}},
		{"persistentVolumeClaim":{"claimName":"precious"}},
		{"persistentVolumeClaim":{"claimName":"one-more"}},
		{"volumeClaimTemplate":{"metadata":{"name":"system"}}}],
		"shares":[{"tag":"src","persistentVolumeClaim":{"claimName":"folder"}},{"tag":"docs"}]}}}`), m); err != nil {
		t.Fatal(err)
	}
	if got := foreignOf(m); len(got) != 1 || got[0] != "precious" {
		t.Errorf("in the index: %q", got)
	}
	if got := sharedBy(m); len(got) != 1 || got[0] != "folder" {
		t.Errorf("folders in the index: %q", got)
	}
}

// A machine that is only just made is none of a lost node.
func TestPhasesThatAreCounted(t *testing.T) {
	for status, want := range map[string]string{
		`{}`: spec.PhasePending, `{"phase":"Running"}`: spec.PhaseRunning, `{"phase":"Unknown"}`: spec.PhaseUnknown, `{"phase":"Odd"}`: spec.PhaseUnknown,
	} {
		m := &machine{}
		if err := json.Unmarshal([]byte(`{"metadata":{"name":"web"},"status":`+status+`}`), m); err != nil || m.phase != want {
			t.Errorf("status %s counts as %s, want %s (%v)", status, m.phase, want, err)
		}
	}
}

// The operator looks after all kinds that there are, under their names.
func TestEveryKindIsRegistered(t *testing.T) {
	var got, want [][2]string
	for _, r := range registrations() {
		got = append(got, [2]string{r.kind, r.resource})
	}
	for _, k := range spec.Kinds() {
		want = append(want, [2]string{k.Name, k.Plural})
	}
	if !slices.Equal(got, want) {
		t.Errorf("registered %q, there are %q", got, want)
	}
}
