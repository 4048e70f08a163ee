package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/vmop/sdk/vmop/conditions"
	"github.com/vmop/sdk/vmop/names"
	machinekind "github.com/vmop/sdk/vmop/reconcile/machine"
	"github.com/vmop/sdk/vmop/reconcile/objects"
	"github.com/vmop/sdk/vmop/runner/tunnel"
	"github.com/vmop/sdk/vmop/runnerconfig"
	"github.com/vmop/sdk/vmop/spec"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
)

// attachments are those of a test's namespace.
type attachments struct {
	*test
	all dynamic.ResourceInterface
}

func (t *test) attachments() *attachments {
	t.Helper()
	all, err := dynamic.NewForConfig(cluster.Config())
	if err != nil {
		t.Fatal(err)
	}
	return &attachments{t, all.Resource(spec.GroupVersion().WithResource(spec.ResourceAttachments)).Namespace(t.namespace)}
}

// attach attaches the claim data to a machine.
func (a *attachments) attach(name, machine string) {
	a.Helper()
	manifest := fmt.Sprintf("apiVersion: vmoperator.jdrupes.org/v1\nkind: VirtualMachineBlockDeviceAttachment\nmetadata: {name: %s}\nspec: {virtualMachineName: %s, blockDeviceRef: {kind: PersistentVolumeClaim, name: data}}\n", name, machine)
	if _, err := a.all.Create(a.Context(), a.object(manifest), metav1.CreateOptions{}); err != nil {
		a.Fatal(err)
	}
}

// becomes waits until an attachment has a phase and says something.
func (a *attachments) becomes(name string, phase spec.AttachmentPhase, condition, says string) *spec.VirtualMachineBlockDeviceAttachment {
	a.Helper()
	out := &spec.VirtualMachineBlockDeviceAttachment{}
	a.eventually(name+" is "+string(phase), func() error {
		u, err := a.all.Get(a.Context(), name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		*out = spec.VirtualMachineBlockDeviceAttachment{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, out); err != nil {
			return err
		}
		if c := spec.FindCondition(out.Status.Conditions, condition); out.Status.Phase != phase || c == nil || !strings.Contains(c.Message, says) {
			return fmt.Errorf("want %s, %q: %+v", phase, says, out.Status)
		}
		return nil
	})
	return out
}

// told waits until the runner of a machine is told of attachments.
func (a *attachments) told(machine string, is func([]runnerconfig.Attachment) bool) {
	a.Helper()
	a.eventually(machine+" is told", func() error {
		cm, err := a.kube.CoreV1().ConfigMaps(a.namespace).Get(a.Context(), machine, metav1.GetOptions{})
		if err != nil {
			return err
		}
		c, _, err := runnerconfig.Parse([]byte(cm.Data[names.ConfigKey]))
		if err != nil {
			return err
		}
		if got := c.Runner.VM.Attachments; !is(got) {
			return fmt.Errorf("%+v", got)
		}
		return nil
	})
}

// A claim is attached to a machine that runs, which the runner has to agree to, and nobody
// else gets it meanwhile: neither another attachment nor a machine that has it in its
// manifest. It is detached when the guest has released it.
func TestAttachments(tt *testing.T) {
	tt.Parallel()
	t := newTest(tt)
	a := t.attachments()
	k := t.startKubelet()
	config := filepath.Join(t.TempDir(), "config.yaml")
	if err := os.WriteFile(config, []byte("/Operator: {runnerImage: \"registry.test/runner:1\"}\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	first := t.start(cluster.Kubeconfig(), "--config="+config)
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: "data"}, Spec: corev1.PersistentVolumeClaimSpec{
		AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
		Resources:   corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}},
	}}

	// What is missing is waited for.
	a.attach("first", "web")
	a.becomes("first", spec.AttachmentPending, conditions.Attached, "there is no claim data")
	if _, err := t.kube.CoreV1().PersistentVolumeClaims(t.namespace).Create(t.Context(), claim, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	a.becomes("first", spec.AttachmentPending, conditions.Attached, "there is no machine web")
	t.create(machine("web", "Running"))
	t.phase("web", spec.PhaseRunning)

	// The runner is told, and tells its key; it is told where the disk is, and has it.
	uid := ""
	a.told("web", func(all []runnerconfig.Attachment) bool {
		if len(all) != 1 {
			return false
		}
		uid = all[0].UID
		return all[0].Name == "first" && all[0].Address == "" && !all[0].Detach
	})
	key := strings.Repeat("0a", 32)
	reports := func(phase string) {
		k.say("web", map[string]any{"attachmentKey": key, "attachments": []any{map[string]any{"uid": uid, "name": "first", "phase": phase}}})
	}
	reports("Pending")
	a.told("web", func(all []runnerconfig.Attachment) bool { return len(all) == 1 && all[0].Address == "10.0.0.1:10809" })
	secret, err := t.kube.CoreV1().Secrets(t.namespace).Get(t.Context(), "first-vmbda", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	known, err := tunnel.Fingerprint(secret.Data[corev1.TLSCertKey])
	if err != nil {
		t.Fatal(err)
	}
	a.told("web", func(all []runnerconfig.Attachment) bool { return len(all) == 1 && all[0].Fingerprint == known })
	pod, err := t.kube.CoreV1().Pods(t.namespace).Get(t.Context(), "first-vmbda", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if args := strings.Join(pod.Spec.Containers[0].Args, " "); !strings.Contains(args, "-client="+key) || pod.Spec.Containers[0].Image != "registry.test/runner:1" || objects.ExportsFor(pod) != "web" {
		t.Errorf("%s\n%+v", args, pod.Spec)
	}
	reports("Attached")
	if got := a.becomes("first", spec.AttachmentAttached, conditions.Attached, "the guest has the disk"); got.Status.VirtualMachineName != "web" {
		t.Errorf("%+v", got.Status)
	}

	// Nobody else gets it.
	a.attach("second", "web")
	a.becomes("second", spec.AttachmentFailed, conditions.Attached, "attachment first has the disk, for machine web")
	if err := a.all.Delete(t.Context(), "second", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	t.create(strings.Replace(machine("db", "Running"), "disks:", "disks:\n    - persistentVolumeClaim: {claimName: data}", 1))
	t.waits("db", spec.ConditionPodReady, spec.ReasonDisksInUse)
	if _, err := a.all.Patch(t.Context(), "first", types.MergePatchType, []byte(`{"spec":{"virtualMachineName":"db"}}`), metav1.PatchOptions{}); !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "create another one") {
		t.Errorf("an attachment is changed: %v", err)
	}

	// It is kept until the guest has released it.
	if err := a.all.Delete(t.Context(), "first", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	a.told("web", func(all []runnerconfig.Attachment) bool {
		return len(all) == 1 && all[0].Detach && all[0].Address != ""
	})
	reports("Detaching")
	a.becomes("first", spec.AttachmentTerminating, conditions.AttachmentTerminating, "machine web has the disk yet")
	if now, err := t.kube.CoreV1().Pods(t.namespace).Get(t.Context(), "first-vmbda", metav1.GetOptions{}); err != nil || now.UID != pod.UID || now.DeletionTimestamp != nil {
		t.Errorf("the exporter of a disk that the guest has: %+v, %v", now, err)
	}
	reports("Detached")
	t.eventually("the attachment goes", func() error {
		if _, err := a.all.Get(t.Context(), "first", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
			return fmt.Errorf("it is there: %v", err)
		}
		return nil
	})
	a.told("web", func(all []runnerconfig.Attachment) bool { return len(all) == 0 })
	t.phase("db", spec.PhaseRunning)
	a.attach("third", "web")
	a.becomes("third", spec.AttachmentFailed, conditions.Attached, "claim data is used by pod db")
	if code := first.stop(); code != 0 {
		t.Errorf("exit code %d\n%s", code, first.log)
	}
}

// A machine whose pod has another name than it, as pods of later versions may, gets a disk
// and releases it: the exporter is for that pod, and no second one is made.
func TestAttachmentToAPodOfAnotherName(tt *testing.T) {
	tt.Parallel()
	t := newTest(tt)
	a := t.attachments()
	k := t.startKubelet()
	config := t.file("/Operator: {runnerImage: \"registry.test/runner:1\"}\n")
	first := t.start(cluster.Kubeconfig(), "--config="+config)
	t.createClaim("data")
	t.create(machine("web", "Running"))
	t.phase("web", spec.PhaseRunning)
	if code := first.stop(); code != 0 {
		t.Fatalf("exit code %d\n%s", code, first.log)
	}
	pods := t.kube.CoreV1().Pods(t.namespace)
	former, err := pods.Get(t.Context(), "web", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if err := pods.Delete(t.Context(), "web", metav1.DeleteOptions{GracePeriodSeconds: new(int64)}); err != nil {
		t.Fatal(err)
	}
	other := former.DeepCopy()
	other.ObjectMeta = metav1.ObjectMeta{Name: "web-2", Labels: former.Labels, Annotations: former.Annotations, OwnerReferences: former.OwnerReferences, Finalizers: former.Finalizers}
	other.Spec.NodeName, other.Status = "", corev1.PodStatus{}
	if other, err = pods.Create(t.Context(), other, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	t.eventually("pod web-2 runs", func() error {
		pod, err := pods.Get(t.Context(), "web-2", metav1.GetOptions{})
		if err != nil || pod.Status.Phase != corev1.PodRunning {
			return fmt.Errorf("%v, %v", pod.Status.Phase, err)
		}
		return nil
	})

	second := t.start(cluster.Kubeconfig(), "--config="+config)
	a.attach("first", "web")
	uid := ""
	a.told("web", func(all []runnerconfig.Attachment) bool {
		if len(all) == 1 {
			uid = all[0].UID
		}
		return len(all) == 1
	})
	reports := func(phase string) {
		k.say("web", map[string]any{"attachmentKey": strings.Repeat("0a", 32), "attachments": []any{map[string]any{"uid": uid, "name": "first", "phase": phase}}})
	}
	reports("Pending")
	a.told("web", func(all []runnerconfig.Attachment) bool { return len(all) == 1 && all[0].Address == "10.0.0.1:10809" })
	exporter, err := pods.Get(t.Context(), "first-vmbda", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if objects.ExportsFor(exporter) != "web" {
		t.Errorf("%+v", exporter.ObjectMeta)
	}
	reports("Attached")
	a.becomes("first", spec.AttachmentAttached, conditions.Attached, "the guest has the disk")
	if err := a.all.Delete(t.Context(), "first", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	a.told("web", func(all []runnerconfig.Attachment) bool { return len(all) == 1 && all[0].Detach })
	reports("Detached")
	t.eventually("the attachment goes", func() error {
		if _, err := a.all.Get(t.Context(), "first", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
			return fmt.Errorf("it is there: %v", err)
		}
		return nil
	})
	t.phase("web", spec.PhaseRunning)
	if now := t.podUID("web-2"); now != string(other.UID) || t.podUID("web") != "" {
		t.Errorf("pod web-2 is %q instead of %q, pod web %q", now, other.UID, t.podUID("web"))
	}
	if code := second.stop(); code != 0 {
		t.Errorf("exit code %d\n%s", code, second.log)
	}
}

// The manifest of a machine that runs gains a disk: the operator attaches it, and the
// machine goes on. When the disk leaves the manifest, the guest is asked to release it,
// and the attachment goes.
func TestDisksOfARunningMachine(tt *testing.T) {
	tt.Parallel()
	t := newTest(tt)
	a := t.attachments()
	k := t.startKubelet()
	config := filepath.Join(t.TempDir(), "config.yaml")
	if err := os.WriteFile(config, []byte("/Operator: {runnerImage: \"registry.test/runner:1\"}\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	operator := t.start(cluster.Kubeconfig(), "--config="+config)
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: "data"}, Spec: corev1.PersistentVolumeClaimSpec{
		AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
		Resources:   corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}},
	}}
	if _, err := t.kube.CoreV1().PersistentVolumeClaims(t.namespace).Create(t.Context(), claim, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	t.create(machine("web", "Running"))
	t.phase("web", spec.PhaseRunning)
	pod, err := t.kube.CoreV1().Pods(t.namespace).Get(t.Context(), "web", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	disks := func(operation string) {
		t.Helper()
		if _, err := t.vms.Patch(t.Context(), "web", types.JSONPatchType, []byte(operation), metav1.PatchOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	// What is foreseen of a manifest, with what the API server has, is what happens.
	foresees := func(change func(*spec.VirtualMachine), want ...string) {
		t.Helper()
		vm, err := t.status("web")
		if err != nil {
			t.Fatal(err)
		}
		after := vm.DeepCopy()
		change(after)
		var got []string
		for _, c := range machinekind.Foresee(t.runsWith(vm), after) {
			got = append(got, c.Operation+" "+c.Path+" "+string(c.Applied))
		}
		if !slices.Equal(got, want) {
			t.Errorf("foreseen: %q, want %q", got, want)
		}
	}
	withData := func(vm *spec.VirtualMachine) {
		vm.Spec.VM.Disks = append(vm.Spec.VM.Disks, spec.Disk{PersistentVolumeClaim: &spec.VolumeClaimReference{ClaimName: "data"}})
	}
	foresees(withData, "add spec.vm.disks[1] live")
	foresees(func(vm *spec.VirtualMachine) {
		withData(vm)
		vm.Spec.VM.BootMenu = !vm.Spec.VM.BootMenu
	}, "replace spec.vm.bootMenu restart", "add spec.vm.disks[1] restart")
	disks(`[{"op":"add","path":"/spec/vm/disks/-","value":{"persistentVolumeClaim":{"claimName":"data"}}}]`)
	uid := ""
	a.told("web", func(all []runnerconfig.Attachment) bool {
		if len(all) != 1 {
			return false
		}
		uid = all[0].UID
		return all[0].Name == "data-claim" && all[0].Address == "" && !all[0].Detach
	})
	reports := func(phase string) {
		k.say("web", map[string]any{"attachmentKey": strings.Repeat("0a", 32), "attachments": []any{map[string]any{"uid": uid, "name": "data-claim", "phase": phase}}})
	}
	reports("Pending")
	a.told("web", func(all []runnerconfig.Attachment) bool { return len(all) == 1 && all[0].Address != "" })
	reports("Attached")
	list, err := a.all.List(t.Context(), metav1.ListOptions{})
	if err != nil || len(list.Items) != 1 {
		t.Fatalf("%v, %v", list, err)
	}
	name := list.Items[0].GetName()
	if got := a.becomes(name, spec.AttachmentAttached, conditions.Attached, "the guest has the disk"); got.OwnerReferences[0].Name != "web" || got.Status.VirtualMachineName != "web" {
		t.Errorf("%+v", got)
	}

	foresees(func(vm *spec.VirtualMachine) {
		vm.Spec.VM.Disks = vm.Spec.VM.Disks[:1]
		vm.Spec.VM.BootMenu = !vm.Spec.VM.BootMenu
	}, "replace spec.vm.bootMenu restart", "remove spec.vm.disks[1] live")
	foresees(func(vm *spec.VirtualMachine) { vm.Spec.VM.Disks = vm.Spec.VM.Disks[1:] }, "remove spec.vm.disks[0] restart")
	disks(`[{"op":"test","path":"/spec/vm/disks/1/persistentVolumeClaim/claimName","value":"data"},{"op":"remove","path":"/spec/vm/disks/1"}]`)
	a.told("web", func(all []runnerconfig.Attachment) bool { return len(all) == 1 && all[0].Detach })
	reports("Detached")
	t.eventually("the attachment goes", func() error {
		if _, err := a.all.Get(t.Context(), name, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
			return fmt.Errorf("it is there: %v", err)
		}
		return nil
	})
	a.told("web", func(all []runnerconfig.Attachment) bool { return len(all) == 0 })
	if now, err := t.kube.CoreV1().Pods(t.namespace).Get(t.Context(), "web", metav1.GetOptions{}); err != nil || now.UID != pod.UID || now.DeletionTimestamp != nil {
		t.Errorf("the pod was replaced: %v, %v", now, err)
	}
	if code := operator.stop(); code != 0 {
		t.Errorf("exit code %d\n%s", code, operator.log)
	}
}

// runsWith is what a machine runs with, as far as that says what becomes of its disks.
func (t *test) runsWith(vm *spec.VirtualMachine) machinekind.Snapshot {
	t.Helper()
	s := machinekind.Snapshot{VM: vm}
	pods, err := t.kube.CoreV1().Pods(t.namespace).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	claims, err := t.kube.CoreV1().PersistentVolumeClaims(t.namespace).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	s.Pods, s.Claims = pods.Items, claims.Items
	list, err := t.attachments().all.List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, u := range list.Items {
		var a spec.VirtualMachineBlockDeviceAttachment
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, &a); err != nil {
			t.Fatal(err)
		}
		s.Attachments = append(s.Attachments, a)
	}
	return s
}
