package machinetest

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/vmop/sdk/vmop/names"
	"github.com/vmop/sdk/vmop/reconcile/machine"
	"github.com/vmop/sdk/vmop/spec"
)

func provisionedBy(p *spec.Provisioning) func(*spec.VirtualMachine) {
	return func(vm *spec.VirtualMachine) { vm.Spec.Provisioning = p }
}

func cloudInitFrom(secret string) func(*spec.VirtualMachine) {
	return func(vm *spec.VirtualMachine) {
		vm.Spec.CloudInit = &spec.CloudInit{UserDataFrom: &spec.CloudInitSource{SecretRef: spec.SecretKeyReference{Name: secret}}}
	}
}

func typed(of string) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "init"}, Type: corev1.SecretType(of)}
}

// Without the Secret that its guest is provisioned from, or with one of another type, a
// machine has no pod and says what is missing, by every run policy; with it, it is
// started by itself.
func TestSecretsOfTheGuestAreAwaited(t *testing.T) {
	userData := provisionedBy(&spec.Provisioning{Type: spec.ProvisioningUserDataRef, UserDataRef: &spec.ProvisioningSecret{Name: "init"}})
	sysprep := provisionedBy(&spec.Provisioning{Type: spec.ProvisioningSysprepRef, SysprepRef: &spec.ProvisioningSecret{Name: "init"}})
	for name, c := range map[string]struct {
		change func(*spec.VirtualMachine)
		first  *corev1.Secret
		says   string
		then   *corev1.Secret
	}{
		"user data":        {userData, nil, "Secret init of spec.provisioning.userDataRef does not exist", typed(names.SecretTypeCloudInit)},
		"Deckhouse's type": {userData, nil, "of the type vmoperator.jdrupes.org/cloud-init or provisioning.virtualization.deckhouse.io/cloud-init", typed(names.SecretTypeCloudInitDeckhouse)},
		"another type":     {userData, typed("Opaque"), "Secret init of spec.provisioning.userDataRef has another type than", typed(names.SecretTypeCloudInit)},
		"that of sysprep":  {userData, typed(names.SecretTypeSysprep), "has another type than vmoperator.jdrupes.org/cloud-init and", typed(names.SecretTypeCloudInit)},
		"sysprep":          {sysprep, nil, "Secret init of spec.provisioning.sysprepRef does not exist", typed(names.SecretTypeSysprepDeckhouse)},
		"user data's type": {sysprep, typed(names.SecretTypeCloudInit), "has another type than vmoperator.jdrupes.org/sysprep and", typed(names.SecretTypeSysprep)},
		"cloudInit":        {cloudInitFrom("init"), nil, "Secret init of spec.cloudInit.userDataFrom.secretRef does not exist; the machine is started when it does", typed("Opaque")},
		"Manual": {func(vm *spec.VirtualMachine) {
			userData(vm)
			vm.Spec.RunPolicy, vm.Annotations = spec.RunPolicyManual, map[string]string{names.AnnotationPowerRequest: "start 1"}
		}, nil, "does not exist", typed(names.SecretTypeCloudInit)},
	} {
		w := fair()
		vm := get[*spec.VirtualMachine](w, theVM)
		c.change(vm)
		w.put(theVM, vm)
		if c.first != nil {
			w.put("provisioning/init", c.first)
		}
		for range 10 {
			w.work()
			w.pass(time.Second)
		}
		status := get[*spec.VirtualMachine](w, theVM).Status
		ready, pod := spec.FindCondition(status.Conditions, spec.ConditionProvisioningReady), spec.FindCondition(status.Conditions, spec.ConditionPodReady)
		if get[*corev1.Pod](w, thePod) != nil || ready == nil || ready.Status != metav1.ConditionFalse || ready.Reason != spec.ReasonProvisioningNotReady ||
			!strings.Contains(ready.Message, c.says) || pod.Reason != ready.Reason || status.Phase != spec.PhasePending {
			t.Errorf("%s: phase %s, %+v, %+v", name, status.Phase, ready, pod)
		}
		w.put("provisioning/init", c.then)
		for range 4 {
			w.work()
			w.pass(time.Second)
		}
		ready = spec.FindCondition(get[*spec.VirtualMachine](w, theVM).Status.Conditions, spec.ConditionProvisioningReady)
		if get[*corev1.Pod](w, thePod) == nil || ready.Status != metav1.ConditionTrue {
			t.Errorf("%s: not started when the Secret is there: %+v", name, ready)
		}
	}
}

// A machine that runs, is stopped or is being deleted has nobody look for its Secrets.
func TestSecretsThatNobodyLooksFor(t *testing.T) {
	now := metav1.Now()
	for name, c := range map[string]struct {
		change func(*spec.VirtualMachine)
		pod    *corev1.Pod
		want   int
	}{
		"to start": {cloudInitFrom("a"), nil, 1},
		"it runs":  {cloudInitFrom("a"), &corev1.Pod{}, 0},
		"stopped":  {func(vm *spec.VirtualMachine) { cloudInitFrom("a")(vm); vm.Spec.VM.State = spec.StateStopped }, nil, 0},
		"deleted":  {func(vm *spec.VirtualMachine) { cloudInitFrom("a")(vm); vm.DeletionTimestamp = &now }, nil, 0},
		"none":     {func(*spec.VirtualMachine) {}, nil, 0},
		"inline":   {provisionedBy(&spec.Provisioning{Type: spec.ProvisioningUserData, UserData: "#!/bin/sh"}), nil, 0},
		"the same": {func(vm *spec.VirtualMachine) {
			cloudInitFrom("a")(vm)
			vm.Spec.CloudInit.MetaDataFrom = vm.Spec.CloudInit.UserDataFrom
		}, nil, 1},
	} {
		vm := get[*spec.VirtualMachine](fair(), theVM)
		c.change(vm)
		if got := machine.NeededSecrets(vm, c.pod); len(got) != c.want {
			t.Errorf("%s: looks for %v, want %d", name, got, c.want)
		}
	}
}

// The longer a Secret is missing, the rarer it is looked for; and never later than
// after a minute.
func TestPausesBetweenLooksForASecret(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		since := time.Duration(rapid.Int64Range(-int64(time.Hour), int64(48*time.Hour)).Draw(t, "since"))
		w := fair()
		vm := get[*spec.VirtualMachine](w, theVM)
		cloudInitFrom("init")(vm)
		vm.Status.Conditions = spec.WithCondition(vm.Status.Conditions, spec.Condition{
			Type: spec.ConditionProvisioningReady, Status: metav1.ConditionFalse, Reason: spec.ReasonProvisioningNotReady, LastTransitionTime: metav1.NewTime(w.now.Add(-since))})
		w.put(theVM, vm)
		w.observeAll()
		pause := w.decided(nil).Wake.Sub(w.now)
		if want := min(max(since/8, time.Second), time.Minute); pause <= 0 || pause > want {
			t.Fatalf("looked for again after %v, missing for %v", pause, since)
		}
	})
}

// User data that cloud-init makes nothing of starts the machine, and is told of once.
func TestUserDataOfNoUseIsToldOf(t *testing.T) {
	w := fair()
	vm := get[*spec.VirtualMachine](w, theVM)
	vm.Spec.Provisioning = &spec.Provisioning{Type: spec.ProvisioningUserData, UserData: "#cloud-config\npassword: [correct-horse\n"}
	w.put(theVM, vm)
	told := 0
	for range 10 {
		w.controllers()
		w.observeAll()
		for _, e := range w.reconcile(false).Events {
			if e.Reason == spec.ReasonProvisioningReadyWithWarnings {
				told++
			}
		}
		w.pass(time.Second)
	}
	ready := spec.FindCondition(get[*spec.VirtualMachine](w, theVM).Status.Conditions, spec.ConditionProvisioningReady)
	if get[*corev1.Pod](w, thePod) == nil || ready == nil || ready.Status != metav1.ConditionTrue || ready.Reason != spec.ReasonProvisioningReadyWithWarnings ||
		!strings.Contains(ready.Message, "is no YAML that can be used") || strings.Contains(ready.Message, "horse") || told != 1 {
		t.Errorf("told %d times: %+v", told, ready)
	}
}
