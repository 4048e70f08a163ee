package machinetest

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/vmop/sdk/vmop/names"
	"github.com/vmop/sdk/vmop/reconcile"
	"github.com/vmop/sdk/vmop/reconcile/changes"
	"github.com/vmop/sdk/vmop/reconcile/machine"
	"github.com/vmop/sdk/vmop/spec"
	corev1 "k8s.io/api/core/v1"
)

// withSecret is a machine that runs, and whose user data is in a Secret.
func withSecret(t *testing.T, change func(*spec.VirtualMachine)) *world {
	t.Helper()
	w := fair()
	vm := get[*spec.VirtualMachine](w, theVM)
	vm.Spec.CloudInit = userDataFrom("web-init")
	if change != nil {
		change(vm)
	}
	w.put(theVM, vm)
	w.provide(vm)
	for range 10 {
		w.work()
		w.pass(time.Second)
	}
	w.observeAll()
	return w
}

// A Secret whose content has changed waits for a restart, and nothing says what is in it.
func TestNewContentOfASecret(t *testing.T) {
	w := withSecret(t, nil)
	first := w.podUID()
	w.newContent(get[*spec.VirtualMachine](w, theVM))
	w.comesToRest()
	vm := get[*spec.VirtualMachine](w, theVM)
	message := "the content of the Secret web-init has changed; " + changes.OfKnownInstance(vm, "spec.cloudInit.userDataFrom")
	if all := vm.Status.RestartAwaitingChanges; len(all) != 1 || all[0].Path != "spec.cloudInit.userDataFrom" || all[0].Operation != spec.OperationReplace ||
		all[0].Message != message || !strings.Contains(message, "bootcmd") || all[0].CurrentValue != nil || all[0].DesiredValue != nil {
		t.Fatalf("%+v\n%s", all, strings.Join(w.log, "\n"))
	}
	c := spec.FindCondition(vm.Status.Conditions, spec.ConditionAwaitingRestart)
	if c.Status != "True" || c.Message != "the change of spec.cloudInit.userDataFrom waits for the next start of the machine: the content of the Secret web-init has changed; see status.restartAwaitingChanges" {
		t.Errorf("%+v", c)
	}
	if cm := get[*corev1.ConfigMap](w, theConfig); !strings.Contains(cm.Data[names.ConfigKey], "guestResetEnds: true") {
		t.Error("a reboot of the guest does not apply it")
	}
	if w.podUID() != first {
		t.Error("it is restarted without approval")
	}

	// The next pod has it.
	w.askFor(vm, machine.VerbRestart)
	w.comesToRest()
	if vm = get[*spec.VirtualMachine](w, theVM); w.podUID() == first || len(vm.Status.RestartAwaitingChanges) > 0 || spec.ConditionIsTrue(vm.Status.Conditions, spec.ConditionAwaitingRestart) {
		t.Errorf("%+v", vm.Status)
	}
}

// With automatic approval it restarts the machine once, and its guest has its time.
func TestNewContentRestartsOnce(t *testing.T) {
	w := withSecret(t, func(vm *spec.VirtualMachine) {
		vm.Spec.Disruptions = &spec.Disruptions{RestartApprovalMode: spec.RestartAutomatic}
		vm.Spec.VM.PowerdownTimeout = new(int32(90))
	})
	first := w.podUID()
	w.newContent(get[*spec.VirtualMachine](w, theVM))
	var asked []reconcile.Action
	for range 4 {
		w.observeAll()
		asked = append(asked, w.reconcile(false).Actions...)
	}
	if !slices.ContainsFunc(asked, func(a reconcile.Action) bool {
		d, is := a.(reconcile.DeletePod)
		return is && d.UID == first && d.GraceSeconds > 90
	}) {
		t.Errorf("%+v", asked)
	}
	w.comesToRest()
	second := w.podUID()
	if second == first || !w.runs() {
		t.Fatalf("it was not restarted\n%s", strings.Join(w.log, "\n"))
	}
	w.pass(time.Hour)
	if w.comesToRest(); w.podUID() != second {
		t.Error("it is restarted again")
	}
}

// A Secret that is gone is nothing to restart for, whatever else waits: the machine
// would not start. It says so, and a reboot of the guest stays one.
func TestAMissingSecretKeepsAMachineRunning(t *testing.T) {
	w := withSecret(t, nil)
	p := w.decided(func(s *machine.Snapshot) {
		s.VM.Status.ChangedDocuments = []spec.ChangedDocument{{Name: spec.DocumentUserData, Missing: true}}
		s.VM.Spec.Disruptions = &spec.Disruptions{RestartApprovalMode: spec.RestartAutomatic}
		s.VM.Spec.VM.MaximumCPUs = new(int32(8))
		s.VM.Generation++
		s.VM.Annotations = map[string]string{names.AnnotationPowerRequest: machine.Request(machine.VerbRestart, "1")}
	})
	for _, a := range p.Actions {
		switch a := a.(type) {
		case reconcile.DeletePod:
			t.Errorf("%+v", a)
		case reconcile.Apply:
			if cm, is := a.Object.(*corev1.ConfigMap); is && strings.Contains(cm.Data[names.ConfigKey], "guestResetEnds: true") {
				t.Error("a reboot of the guest ends the machine")
			}
		}
	}
	if _, text := said(p, spec.ConditionAwaitingRestart); text != "the change of spec.vm.maximumCpus waits for the next start of the machine" {
		t.Errorf("%q", text)
	}
	if _, text := said(p, spec.ConditionConfigurationApplied); !strings.Contains(text, "spec.cloudInit.userDataFrom: the Secret web-init, or the key in it, is not there any more") {
		t.Errorf("%q", text)
	}
}

// So it is with what sets a guest up by Deckhouse's field.
func TestNewContentOfProvisioning(t *testing.T) {
	ref := &spec.ProvisioningSecret{Kind: "Secret", Name: "set-up"}
	const changed = "the content of the Secret set-up has changed"
	for document, c := range map[string]struct {
		provisioning *spec.Provisioning
		ends         string
	}{
		spec.DocumentUserData: {&spec.Provisioning{Type: spec.ProvisioningUserDataRef, UserDataRef: ref}, changed + "; see status.restartAwaitingChanges"},
		spec.DocumentSysprep:  {&spec.Provisioning{Type: spec.ProvisioningSysprepRef, SysprepRef: ref}, changed},
	} {
		w := running(t, nil)
		p := w.decided(func(s *machine.Snapshot) {
			s.VM.Spec.Provisioning = c.provisioning
			s.VM.Status.ChangedDocuments = []spec.ChangedDocument{{Name: document}}
		})
		_, text := said(p, spec.ConditionAwaitingRestart)
		if !strings.Contains(text, "the change of spec.provisioning.") || !strings.Contains(text, changed) || !strings.HasSuffix(text, c.ends) {
			t.Errorf("%s: %q", document, text)
		}
		waits := fmt.Sprint(p.Statuses[0].Status["restartAwaitingChanges"])
		if known := "; cloud-init clean in the guest has it set up everything anew, with other SSH host keys"; strings.Contains(waits, known) != (document == spec.DocumentUserData) {
			t.Errorf("%s: %s", document, waits)
		}
	}
}

// What the manifest does not name any more, or names otherwise, is told once or not at all.
func TestDocumentsThatTheManifestNamesOtherwise(t *testing.T) {
	for name, change := range map[string]func(*spec.VirtualMachine) string{
		"another Secret": func(vm *spec.VirtualMachine) string {
			vm.Spec.CloudInit = userDataFrom("other")
			return "spec.cloudInit.userDataFrom.secretRef.name"
		},
		"none": func(vm *spec.VirtualMachine) string {
			vm.Spec.CloudInit.UserDataFrom = nil
			return "spec.cloudInit.userDataFrom"
		},
		"no cloud-init": func(vm *spec.VirtualMachine) string { vm.Spec.CloudInit = nil; return "spec.cloudInit" },
	} {
		w := withSecret(t, nil)
		vm, want := get[*spec.VirtualMachine](w, theVM), ""
		vm.Status.ChangedDocuments = []spec.ChangedDocument{{Name: spec.DocumentUserData}, {Name: spec.DocumentNetworkConfig}}
		want = change(vm)
		vm.Generation++
		w.put(theVM, vm)
		w.observeAll()
		w.reconcile(false)
		if all := get[*spec.VirtualMachine](w, theVM).Status.RestartAwaitingChanges; len(all) != 1 || all[0].Path != want || all[0].Message != "" {
			t.Errorf("%s: %+v, want %s", name, all, want)
		}
	}
}

// An automatic restart waits for the Secrets that the next pod needs: the machine goes
// on, says which is missing, and is restarted when it is there.
func TestAutomaticRestartWaitsForSecrets(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*spec.VirtualMachine)
		key    string
		secret *corev1.Secret
		says   string
	}{
		"user data": {
			provisionedBy(&spec.Provisioning{Type: spec.ProvisioningUserDataRef, UserDataRef: &spec.ProvisioningSecret{Name: "init"}}),
			"provisioning/init", typed(names.SecretTypeCloudInit), "there is no Secret init of spec.provisioning.userDataRef",
		},
		"certificate": {
			func(vm *spec.VirtualMachine) {
				vm.Spec.VM.Display = &spec.Display{Spice: &spec.Spice{}, TLS: &spec.DisplayTLS{SecretName: "desk-tls"}}
				spec.Default(vm)
			},
			"certificate/desk-tls", certificateSecret("tls.crt", "tls.key"), "there is no certificate in Secret desk-tls of spec.vm.display.tls.secretName",
		},
	} {
		w := newWorld(func(string, int) int { return 0 }, decideOnLess)
		vm := get[*spec.VirtualMachine](w, theVM)
		c.change(vm)
		vm.Spec.Disruptions = &spec.Disruptions{RestartApprovalMode: spec.RestartAutomatic}
		w.put(theVM, vm)
		w.put(c.key, c.secret)
		w.rounds(10)
		first := w.podUID()
		if !w.runs() {
			t.Fatalf("%s: it does not run", name)
		}
		w.put(c.key, nil)
		vm = get[*spec.VirtualMachine](w, theVM)
		vm.Spec.VM.MaximumCPUs, vm.Generation = new(int32(7)), vm.Generation+1
		w.put(theVM, vm)
		w.rounds(10)
		vm = get[*spec.VirtualMachine](w, theVM)
		if a := spec.FindCondition(vm.Status.Conditions, spec.ConditionAwaitingRestart); w.podUID() != first || a.Status != "True" || !strings.Contains(a.Message, c.says) {
			t.Fatalf("%s: pod %s, was %s: %+v", name, w.podUID(), first, a)
		}
		p := w.decided(nil)
		if len(p.Actions)+len(p.Statuses)+len(p.Events) > 0 || p.Wake.IsZero() || p.Wake.Sub(w.now) > time.Minute {
			t.Errorf("%s: it goes on with %+v", name, p)
		}
		w.put(c.key, c.secret)
		w.pass(time.Minute)
		w.rounds(20)
		vm = get[*spec.VirtualMachine](w, theVM)
		if w.podUID() == first || !w.runs() || len(vm.Status.RestartAwaitingChanges) > 0 {
			t.Errorf("%s: it is not restarted: %+v", name, vm.Status.Conditions)
		}
	}
}
