package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/vmop/sdk/vmop/names"
	"github.com/vmop/sdk/vmop/spec"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// A machine waits without a pod for the Secret that its guest is provisioned from, also
// while there is one of another type, which the API server tells without its content;
// it starts by itself when the right one is there.
func TestProvisioningThatComesLater(tt *testing.T) {
	tt.Parallel()
	t := newTest(tt)
	t.startKubelet()
	t.start(cluster.Kubeconfig())
	t.create(strings.Replace(machine("one", "Running"), "spec:\n", "spec:\n  provisioning: {type: UserDataRef, userDataRef: {kind: Secret, name: init}}\n", 1))
	says := func(want string) {
		t.eventually("it says "+want, func() error {
			vm, err := t.status("one")
			if err != nil {
				return err
			}
			if c := spec.FindCondition(vm.Status.Conditions, spec.ConditionProvisioningReady); c == nil || c.Reason != spec.ReasonProvisioningNotReady || !strings.Contains(c.Message, want) {
				return fmt.Errorf("the condition is %+v", c)
			}
			return nil
		})
	}
	says("Secret init of spec.provisioning.userDataRef does not exist")
	if _, err := t.kube.CoreV1().Pods(t.namespace).Get(t.Context(), "one", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("there is a pod (%v)", err)
	}
	secrets := t.kube.CoreV1().Secrets(t.namespace)
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "init"}, StringData: map[string]string{"userData": "#cloud-config"}}
	if _, err := secrets.Create(t.Context(), secret, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	says("has another type than vmoperator.jdrupes.org/cloud-init")
	if err := secrets.Delete(t.Context(), "init", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	secret.Type = names.SecretTypeCloudInit
	if _, err := secrets.Create(t.Context(), secret, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	t.phase("one", spec.PhaseRunning)
}

// User data of a manifest is in a Secret of the machine's own, beside what somebody else
// has under the name, and nowhere else; other user data is another Secret, and the first
// goes when its pod has.
func TestUserDataOfAManifest(tt *testing.T) {
	tt.Parallel()
	t := newTest(tt)
	t.startKubelet()
	const first, second = "correct-horse-one", "correct-horse-two"
	other := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "one.user-data"}, StringData: map[string]string{"mine": "mine"}}
	if _, err := t.kube.CoreV1().Secrets(t.namespace).Create(t.Context(), other, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	o := t.start(cluster.Kubeconfig())
	t.create(strings.Replace(machine("one", "Running"), "spec:\n", "spec:\n  provisioning: {type: UserData, userData: \"#cloud-config\\npassword: "+first+"\\n\"}\n", 1))
	t.phase("one", spec.PhaseRunning)
	held := func(name string) (*corev1.Secret, *corev1.ConfigMap, error) {
		secret, err := t.kube.CoreV1().Secrets(t.namespace).Get(t.Context(), name, metav1.GetOptions{})
		if err != nil {
			return nil, nil, err
		}
		holder, err := t.kube.CoreV1().ConfigMaps(t.namespace).Get(t.Context(), name, metav1.GetOptions{})
		return secret, holder, err
	}
	secret, holder, err := held("one.user-data-2")
	if err != nil {
		t.Fatal(err)
	}
	vm, err := t.status("one")
	if err != nil {
		t.Fatal(err)
	}
	if string(secret.Data["userData"]) != "#cloud-config\npassword: "+first+"\n" || secret.Immutable == nil || len(secret.OwnerReferences) != 1 || secret.OwnerReferences[0].UID != holder.UID ||
		len(holder.Data) > 0 || len(holder.OwnerReferences) != 1 || holder.OwnerReferences[0].UID != vm.UID {
		t.Errorf("the Secret is %+v, of %+v", secret.ObjectMeta, holder)
	}
	pod, err := t.kube.CoreV1().Pods(t.namespace).Get(t.Context(), "one", metav1.GetOptions{})
	if err != nil || pod.Annotations[names.AnnotationUserData] != secret.Name {
		t.Errorf("the pod has %q, %v", pod.Annotations, err)
	}
	patch := []byte(`{"spec":{"provisioning":{"userData":"#cloud-config\npassword: ` + second + `\n"}}}`)
	if _, err := t.vms.Patch(t.Context(), "one", types.MergePatchType, patch, metav1.PatchOptions{FieldManager: "kubectl"}); err != nil {
		t.Fatal(err)
	}
	t.eventually("the change waits, and has a Secret", func() error {
		vm, err := t.status("one")
		if err != nil {
			return err
		}
		if all := vm.Status.RestartAwaitingChanges; len(all) != 1 || all[0].Path != "spec.provisioning.userData" {
			return fmt.Errorf("%+v", all)
		}
		_, _, err = held("one.user-data-3")
		return err
	})
	if _, _, err := held(secret.Name); err != nil {
		t.Errorf("what the pod has is gone: %v", err)
	}
	t.setState("one", spec.StateStopped)
	t.phase("one", spec.PhaseStopped)
	t.setState("one", spec.StateRunning)
	t.phase("one", spec.PhaseRunning)
	t.eventually("the next pod has the other one, and the first goes", func() error {
		pod, err := t.kube.CoreV1().Pods(t.namespace).Get(t.Context(), "one", metav1.GetOptions{})
		if err != nil || pod.Annotations[names.AnnotationUserData] != "one.user-data-3" {
			return fmt.Errorf("the pod has %q, %v", pod.Annotations, err)
		}
		if _, err := t.kube.CoreV1().ConfigMaps(t.namespace).Get(t.Context(), secret.Name, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
			return fmt.Errorf("%s is there (%v)", secret.Name, err)
		}
		return nil
	})
	if other, err = t.kube.CoreV1().Secrets(t.namespace).Get(t.Context(), "one.user-data", metav1.GetOptions{}); err != nil || string(other.Data["mine"]) != "mine" || len(other.Data) != 1 {
		t.Errorf("what was there is %v, %v", other.Data, err)
	}
	told := o.log.String()
	for _, e := range t.eventsOf() {
		told += e.Note
	}
	configs, err := t.kube.CoreV1().ConfigMaps(t.namespace).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if vm, err = t.status("one"); err != nil {
		t.Fatal(err)
	}
	all, err := json.Marshal([]any{configs.Items, pod, vm.Status, told})
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(all), "correct-horse") {
		t.Errorf("the user data is told: %s", all)
	}
}
