package controller

import (
	"errors"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
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
		if got := test.w.shown(test.cached); got != test.want {
			t.Errorf("%s: got %v", test.name, got)
		}
	}
}

// What the types cannot hold is an error that names the machine.
func TestDecodeNamesTheMachine(t *testing.T) {
	for _, cpus := range []any{"many", int64(1<<32 + 2)} {
		u := newObject(machineKind)
		u.SetName("broken")
		u.Object["spec"] = map[string]any{"vm": map[string]any{"maximumCpus": cpus}}
		if vm, err := decodeMachine(u); !errors.As(err, new(*decodeError)) || !strings.Contains(err.Error(), "broken") {
			t.Errorf("%v: got %v, %v", cpus, vm, err)
		}
	}
}

func TestRefusedOrStaleOrUnreachable(t *testing.T) {
	pods := schema.GroupResource{Resource: "pods"}
	for _, test := range []struct {
		err            error
		refused, stale bool
	}{
		{apierrors.NewForbidden(pods, "a", nil), true, false},
		{apierrors.NewBadRequest(""), true, false},
		{apierrors.NewInternalError(errors.New("webhook")), true, false},
		{apierrors.NewConflict(pods, "a", nil), false, true},
		{apierrors.NewAlreadyExists(pods, "a"), false, true},
		{apierrors.NewNotFound(pods, "a"), false, true},
		{apierrors.NewTooManyRequests("", 1), false, false},
		{apierrors.NewServiceUnavailable(""), false, false},
		{errors.New("connection refused"), false, false},
	} {
		if refused(test.err) != test.refused || stale(test.err) != test.stale {
			t.Errorf("%v: refused %v, stale %v", test.err, refused(test.err), stale(test.err))
		}
	}
}

// What the caches forget is not what decisions look at: a stripped pod still
// tells which claims it uses, where it is and how it ended.
func TestStrippedPod(t *testing.T) {
	pod := &corev1.Pod{}
	pod.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "a"}}
	pod.Annotations = map[string]string{appliedByKubectl: "{}", "kept": "yes"}
	pod.Spec.NodeName = "node-1"
	pod.Spec.Containers = []corev1.Container{{Name: "a"}}
	pod.Spec.Volumes = []corev1.Volume{
		{Name: "config"},
		{Name: "disk", VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "disk"}}},
	}
	pod.Status.Phase = corev1.PodFailed
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{Message: "why"}}}}
	if _, err := stripPod(pod); err != nil {
		t.Fatal(err)
	}
	if pod.ManagedFields != nil || len(pod.Annotations) != 1 || pod.Spec.Containers != nil {
		t.Errorf("kept too much: %+v", pod)
	}
	if got := claimsOfPod(pod); len(got) != 1 || got[0] != "disk" || pod.Spec.NodeName != "node-1" ||
		pod.Status.Phase != corev1.PodFailed || pod.Status.ContainerStatuses[0].State.Terminated.Message != "why" {
		t.Errorf("kept too little: %+v", pod)
	}
}

func TestIndexOfClaims(t *testing.T) {
	u := &unstructured.Unstructured{Object: map[string]any{
		"metadata": map[string]any{"name": "one"},
		"spec": map[string]any{"vm": map[string]any{"disks": []any{
			map[string]any{"cdrom": map[string]any{"image": ""}},
			map[string]any{"persistentVolumeClaim": map[string]any{"claimName": "precious"}},
			map[string]any{"volumeClaimTemplate": map[string]any{"metadata": map[string]any{"name": "system"}}},
		}}},
	}}
	got := strings.Join(claimsOfObject(u), " ")
	if want := "one-runner-data precious one-system-disk"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
