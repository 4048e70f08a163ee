package spectest

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"pgregory.net/rapid"

	"github.com/vmop/sdk/vmop/spec"
)

// VirtualMachine generates machines that [spec.Validate] finds nothing wrong
// with, as somebody could have written them: with and without the fields that
// have defaults, with awkward but valid texts wherever a text is free, and
// sometimes with a status.
//
// Clusters and single hosts take all of it; [OneHost] has the rest.
func VirtualMachine() *rapid.Generator[*spec.VirtualMachine] { return virtualMachine(false) }

// OneHost generates machines as [VirtualMachine] does, and with what only a machine of
// one host may have: its folders, its USB devices and images that are files of it.
func OneHost() *rapid.Generator[*spec.VirtualMachine] { return virtualMachine(true) }

func virtualMachine(oneHost bool) *rapid.Generator[*spec.VirtualMachine] {
	return rapid.Custom(func(t *rapid.T) *spec.VirtualMachine {
		vm := &spec.VirtualMachine{
			TypeMeta: metav1.TypeMeta{APIVersion: spec.GroupVersion().String(), Kind: spec.KindVirtualMachine},
			ObjectMeta: metav1.ObjectMeta{
				Name:      MachineName().Draw(t, "name"),
				Namespace: rapid.SampledFrom([]string{"", "default", "vmop-demo"}).Draw(t, "namespace"),
			},
		}
		if maybe(t, "labels") {
			vm.Labels = Labels().Draw(t, "labels")
		}
		drawSpec(t, &vm.Spec)
		vm.Spec.VM = *machine(oneHost).Draw(t, "vm")
		leaveRoom(&vm.Spec)
		drawBlockDevices(t, &vm.Spec)
		if rapid.IntRange(0, 3).Draw(t, "has status") == 0 {
			drawStatus(t, &vm.Status)
		}
		return vm
	})
}

// Pool generates pools that [spec.ValidatePool] finds nothing wrong with.
func Pool() *rapid.Generator[*spec.VmPool] {
	return rapid.Custom(func(t *rapid.T) *spec.VmPool {
		pool := &spec.VmPool{
			TypeMeta:   metav1.TypeMeta{APIVersion: spec.GroupVersion().String(), Kind: spec.KindVMPool},
			ObjectMeta: metav1.ObjectMeta{Name: MachineName().Draw(t, "name")},
		}
		if maybe(t, "retention") {
			pool.Spec.Retention = Retention().Draw(t, "retention")
		}
		pool.Spec.LoginOnAssignment = rapid.Bool().Draw(t, "loginOnAssignment")
		pool.Spec.Permissions = []spec.PoolPermission{}
		pool.Spec.Permissions = append(pool.Spec.Permissions, drawList(t, "permissions", 3, 1024, func(int) spec.PoolPermission {
			var p spec.PoolPermission
			p.User, p.Role = drawSubject(t)
			if maybe(t, "may") {
				p.May = append([]spec.PoolAction{}, drawList(t, "may", 3, 64, func(int) spec.PoolAction {
					return rapid.SampledFrom([]spec.PoolAction{
						spec.PoolActionStart, spec.PoolActionStop, spec.PoolActionReset,
						spec.PoolActionAccessConsole, spec.PoolActionAll,
					}).Draw(t, "action")
				})...)
			}
			return p
		})...)
		return pool
	})
}

func drawSpec(t *rapid.T, s *spec.VirtualMachineSpec) {
	if maybe(t, "image") {
		s.Image = rapid.SampledFrom([]*spec.RunnerImage{
			{Source: "registry.example.org/runner:1"},
			{Repository: "registry.example.org", Path: "vmop/runner"},
			{Repository: "registry.example.org:5000", Path: "runner", Version: "1.2"},
		}).Draw(t, "image").DeepCopy()
		s.Image.PullPolicy = rapid.SampledFrom([]corev1.PullPolicy{"", corev1.PullAlways, corev1.PullIfNotPresent, corev1.PullNever}).Draw(t, "pullPolicy")
	}
	drawCompute(t, s)
	drawPlacement(t, s)
	if maybe(t, "runnerTemplate") {
		s.RunnerTemplate = &spec.RunnerTemplate{Update: drawBool(t, "update")}
		if maybe(t, "source") {
			s.RunnerTemplate.Source = File().Draw(t, "source")
		}
	}
	drawLife(t, s)
	if maybe(t, "loadBalancerService") {
		s.LoadBalancerService = drawLoadBalancerService(t)
	}
	switch rapid.SampledFrom([]string{"", "cloudInit", "provisioning"}).Draw(t, "provisioned by") {
	case "provisioning":
		s.Provisioning = drawProvisioning(t)
	case "cloudInit":
		s.CloudInit = drawCloudInit(t)
	}
	s.Permissions = drawList(t, "permissions", 2, 1024, func(int) spec.Permission { return drawPermission(t) })
	if maybe(t, "pools") {
		s.Pools = append([]string{}, drawList(t, "pools", 2, 256, func(int) string { return subdomain().Draw(t, "pool") })...)
	}
	if maybe(t, "virtualMachineClassName") {
		s.VirtualMachineClassName = subdomain().Draw(t, "virtualMachineClassName")
	}
	if maybe(t, "loggingProperties") {
		s.LoggingProperties = "handlers=java.util.logging.ConsoleHandler\n" + Text().Draw(t, "loggingProperties")
	}
}

func drawLife(t *rapid.T, s *spec.VirtualMachineSpec) {
	s.DeletionPolicy = rapid.SampledFrom([]spec.DeletionPolicy{"", spec.DeletionRetain, spec.DeletionDelete}).Draw(t, "deletionPolicy")
	s.GuestShutdownStops = rapid.Bool().Draw(t, "guestShutdownStops")
	if maybe(t, "runPolicy") {
		s.RunPolicy = rapid.SampledFrom([]spec.RunPolicy{
			spec.RunPolicyAlwaysOn, spec.RunPolicyAlwaysOff, spec.RunPolicyManual, spec.RunPolicyAlwaysOnUnlessStoppedManually,
		}).Draw(t, "runPolicy")
	}
	if maybe(t, "disruptions") {
		s.Disruptions = &spec.Disruptions{RestartApprovalMode: rapid.SampledFrom([]spec.RestartApprovalMode{
			"", spec.RestartManual, spec.RestartAutomatic,
		}).Draw(t, "restartApprovalMode")}
	}
}

func drawCloudInit(t *rapid.T) *spec.CloudInit {
	c := &spec.CloudInit{}
	if maybe(t, "metaData") {
		c.MetaData = rapid.MapOfN(Text(), Text(), 0, 3).Draw(t, "metaData")
		fill(t, c.MetaData, "metaData", 256)
	} else {
		c.MetaDataFrom = cloudInitSource(t, "metaDataFrom")
	}
	if maybe(t, "userData") {
		c.UserData = RawObject().Draw(t, "userData")
	} else {
		c.UserDataFrom = cloudInitSource(t, "userDataFrom")
	}
	if maybe(t, "networkConfig") {
		c.NetworkConfig = RawObject().Draw(t, "networkConfig")
	} else {
		c.NetworkConfigFrom = cloudInitSource(t, "networkConfigFrom")
	}
	return c
}

func drawPermission(t *rapid.T) spec.Permission {
	var p spec.Permission
	p.User, p.Role = drawSubject(t)
	p.May = drawList(t, "may", 3, 64, func(int) spec.Action {
		return rapid.SampledFrom([]spec.Action{
			spec.ActionStart, spec.ActionStop, spec.ActionReset,
			spec.ActionAccessConsole, spec.ActionTakeConsole, spec.ActionAll,
		}).Draw(t, "action")
	})
	return p
}

func drawSubject(t *rapid.T) (user, role string) {
	if rapid.Bool().Draw(t, "by role") {
		return "", Text().Draw(t, "role")
	}
	return Text().Draw(t, "user"), ""
}

func drawStatus(t *rapid.T, s *spec.VirtualMachineStatus) {
	s.Phase = rapid.SampledFrom([]string{"", "Running"}).Draw(t, "phase")
	s.NodeName = "node-1"
	s.ObservedGeneration = rapid.Int64Range(0, 9).Draw(t, "observedGeneration")
	s.CPUs = rapid.Int32Range(0, 8).Draw(t, "cpus")
	if maybe(t, "ram") {
		ram := Bytes(0, 1<<36).Draw(t, "ram")
		s.RAM = &ram
	}
	s.DisplayPasswordSerial = rapid.Int64Range(-1, 5).Draw(t, "displayPasswordSerial")
	if maybe(t, "osinfo") {
		s.OSInfo = RawObject().Draw(t, "osinfo")
	}
	if maybe(t, "assignment") {
		s.Assignment = &spec.Assignment{Pool: "pool", User: Text().Draw(t, "user"), LastUsed: "2026-01-01T00:00:00Z"}
	}
	if maybe(t, "restartAwaitingChanges") {
		s.RestartAwaitingChanges = []spec.AwaitingChange{{
			Operation: spec.OperationReplace, Path: "spec.vm.firmware",
			CurrentValue: &runtime.RawExtension{Raw: []byte(`"bios"`)}, DesiredValue: &runtime.RawExtension{Raw: []byte(`"uefi"`)},
		}}
	}
	if maybe(t, "conditions") {
		for _, conditionType := range spec.ConditionTypes() {
			s.Conditions = append(s.Conditions, spec.Condition{
				Type:               conditionType,
				Status:             rapid.SampledFrom([]metav1.ConditionStatus{metav1.ConditionTrue, metav1.ConditionFalse}).Draw(t, "status"),
				LastTransitionTime: metav1.Unix(rapid.Int64Range(0, 4e9).Draw(t, "lastTransitionTime"), 0),
				Reason:             spec.ReasonVMStarted,
				Message:            Text().Draw(t, "message"),
			})
		}
	}
}

// cloudInitSource is nil in half of the cases.
func cloudInitSource(t *rapid.T, label string) *spec.CloudInitSource {
	if !maybe(t, label) {
		return nil
	}
	out := &spec.CloudInitSource{SecretRef: spec.SecretKeyReference{Name: Label().Draw(t, label+" secret")}}
	if maybe(t, label+" key") {
		out.SecretRef.Key = rapid.StringMatching(`[a-z][-._a-zA-Z0-9]{0,8}`).Draw(t, label+" key")
	}
	return out
}

func drawProvisioning(t *rapid.T) *spec.Provisioning {
	p := &spec.Provisioning{Type: rapid.SampledFrom([]spec.ProvisioningType{
		spec.ProvisioningUserData, spec.ProvisioningUserDataRef, spec.ProvisioningSysprepRef,
	}).Draw(t, "provisioning")}
	ref := func() *spec.ProvisioningSecret {
		return &spec.ProvisioningSecret{
			Kind: rapid.SampledFrom([]string{"", "Secret"}).Draw(t, "kind of provisioning"), Name: Label().Draw(t, "provisioning secret"),
		}
	}
	switch p.Type {
	case spec.ProvisioningUserData:
		p.UserData = rapid.SampledFrom([]string{"#cloud-config\n", "#!/bin/sh\n", ""}).Draw(t, "first line") +
			"provisioned: " + Text().Draw(t, "provisioning")
	case spec.ProvisioningUserDataRef:
		p.UserDataRef = ref()
	default:
		p.SysprepRef = ref()
	}
	return p
}
