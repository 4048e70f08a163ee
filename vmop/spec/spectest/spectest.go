package spectest

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"pgregory.net/rapid"

	"github.com/vmop/sdk/vmop/limits"
	"github.com/vmop/sdk/vmop/spec"
)

// VirtualMachine generates machines that [spec.Validate] finds nothing wrong
// with, as somebody could have written them: with and without the fields that
// have defaults, with awkward but valid texts wherever a text is free, and
// sometimes with a status.
func VirtualMachine() *rapid.Generator[*spec.VirtualMachine] {
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
		vm.Spec.VM = *Machine().Draw(t, "vm")
		if vm.Spec.HasAnswerCD() {
			leaveRoomForACD(&vm.Spec.VM)
		}
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
		for range rapid.IntRange(0, 3).Draw(t, "permissions") {
			var p spec.PoolPermission
			p.User, p.Role = drawSubject(t)
			if maybe(t, "may") {
				p.May = rapid.SliceOfN(rapid.SampledFrom([]spec.PoolAction{
					spec.PoolActionStart, spec.PoolActionStop, spec.PoolActionReset,
					spec.PoolActionAccessConsole, spec.PoolActionAll,
				}), 0, 3).Draw(t, "may")
			}
			pool.Spec.Permissions = append(pool.Spec.Permissions, p)
		}
		return pool
	})
}

// Retention generates durations and instants that [spec.ParseRetention] takes.
func Retention() *rapid.Generator[string] {
	return rapid.Custom(func(t *rapid.T) string {
		if rapid.Bool().Draw(t, "instant") {
			at := time.Unix(rapid.Int64Range(0, 4e9).Draw(t, "seconds"), 0).UTC()
			return at.Format(time.RFC3339)
		}
		part := func(letters ...string) string {
			if rapid.Bool().Draw(t, "has "+letters[0]) {
				return fmt.Sprintf("%d%s", rapid.IntRange(0, 99).Draw(t, letters[0]), rapid.SampledFrom(letters).Draw(t, "letter"))
			}
			return ""
		}
		date := part("Y") + part("M") + part("W") + part("D")
		clock := part("H", "h") + part("M", "m") + part("S", "s")
		if date+clock == "" {
			return "PT0S"
		}
		if clock != "" {
			clock = "T" + clock
		}
		return "P" + date + clock
	})
}

func drawSpec(t *rapid.T, s *spec.VirtualMachineSpec) {
	if maybe(t, "image") {
		s.Image = rapid.SampledFrom([]*spec.RunnerImage{
			{Source: "registry.example.org/runner:1"},
			{Repository: "registry.example.org", Path: "vmop/runner", PullPolicy: corev1.PullAlways},
			{Repository: "registry.example.org:5000", Path: "runner", Version: "1.2"},
		}).Draw(t, "image").DeepCopy()
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
	for range rapid.IntRange(0, 2).Draw(t, "permissions") {
		s.Permissions = append(s.Permissions, drawPermission(t))
	}
	if maybe(t, "pools") {
		s.Pools = rapid.SliceOfN(Label(), 0, 2).Draw(t, "pools")
	}
	if maybe(t, "loggingProperties") {
		s.LoggingProperties = "handlers=java.util.logging.ConsoleHandler\n" + Text().Draw(t, "loggingProperties")
	}
}

// drawCompute draws what the pod asks of its node.
func drawCompute(t *rapid.T, s *spec.VirtualMachineSpec) {
	if maybe(t, "resources") {
		s.Resources = &corev1.ResourceRequirements{Requests: corev1.ResourceList{
			corev1.ResourceCPU:    *resource.NewMilliQuantity(rapid.Int64Range(0, 64000).Draw(t, "milli-CPUs"), resource.DecimalSI),
			corev1.ResourceMemory: Bytes(0, 1<<40).Draw(t, "memory"),
		}}
	}
	if !s.NamesCompute() && maybe(t, "coreFraction") {
		s.CoreFraction = fmt.Sprintf("%d%%", rapid.IntRange(1, 100).Draw(t, "coreFraction"))
	}
}

// drawPlacement draws which nodes the pod may run on.
func drawPlacement(t *rapid.T, s *spec.VirtualMachineSpec) {
	if maybe(t, "nodeName") {
		s.NodeName = Label().Draw(t, "nodeName")
	}
	if maybe(t, "nodeSelector") {
		s.NodeSelector = Labels().Draw(t, "nodeSelector")
	}
	if maybe(t, "affinity") {
		s.Affinity = drawAffinity(t)
	}
	if maybe(t, "tolerations") {
		s.Tolerations = rapid.SliceOfN(Toleration(), 0, 3).Draw(t, "tolerations")
	}
	if maybe(t, "topologySpreadConstraints") {
		s.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{
			MaxSkew: rapid.Int32Range(1, 100).Draw(t, "maxSkew"), TopologyKey: corev1.LabelHostname,
			WhenUnsatisfiable: rapid.SampledFrom([]corev1.UnsatisfiableConstraintAction{corev1.DoNotSchedule, corev1.ScheduleAnyway}).Draw(t, "whenUnsatisfiable"),
			LabelSelector:     &metav1.LabelSelector{MatchLabels: Labels().Draw(t, "spread")},
		}}
	}
	if maybe(t, "terminationGracePeriodSeconds") {
		s.TerminationGracePeriodSeconds = drawInt(t, "terminationGracePeriodSeconds", 0, 3600)
	}
	if maybe(t, "priorityClassName") {
		s.PriorityClassName = Label().Draw(t, "priorityClassName")
	}
}

// drawLife draws when the machine runs, and what becomes of it and its disks.
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

func drawLoadBalancerService(t *rapid.T) *spec.LoadBalancerService {
	service := &spec.LoadBalancerService{}
	for key, value := range Labels().Draw(t, "service labels") {
		if service.Labels == nil {
			service.Labels = map[string]*string{}
			service.Annotations = map[string]*string{}
		}
		service.Labels[key] = &value
		service.Annotations[key] = nil
	}
	return service
}

func drawCloudInit(t *rapid.T) *spec.CloudInit {
	c := &spec.CloudInit{}
	if maybe(t, "metaData") {
		c.MetaData = rapid.MapOfN(Text(), Text(), 0, 3).Draw(t, "metaData")
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
	p.May = rapid.SliceOfN(rapid.SampledFrom([]spec.Action{
		spec.ActionStart, spec.ActionStop, spec.ActionReset,
		spec.ActionAccessConsole, spec.ActionTakeConsole, spec.ActionAll,
	}), 0, 3).Draw(t, "may")
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

// drawAffinity draws one that Kubernetes takes.
func drawAffinity(t *rapid.T) *spec.Affinity {
	term := func() corev1.PodAffinityTerm {
		return corev1.PodAffinityTerm{
			LabelSelector: &metav1.LabelSelector{MatchLabels: Labels().Draw(t, "affinity")},
			TopologyKey:   rapid.SampledFrom([]string{corev1.LabelHostname, corev1.LabelTopologyZone}).Draw(t, "topologyKey"),
		}
	}
	weight := func() int32 { return rapid.Int32Range(1, 100).Draw(t, "weight") }
	a := &spec.Affinity{}
	if maybe(t, "nodeAffinity") {
		a.NodeAffinity = &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
			NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{{
				Key: corev1.LabelArchStable, Operator: corev1.NodeSelectorOpIn, Values: []string{"amd64"},
			}}}},
		}}
	}
	if maybe(t, "podAffinity") {
		a.PodAffinity = &corev1.PodAffinity{PreferredDuringSchedulingIgnoredDuringExecution: []corev1.WeightedPodAffinityTerm{{Weight: weight(), PodAffinityTerm: term()}}}
	}
	if maybe(t, "podAntiAffinity") {
		a.PodAntiAffinity = &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{term()}}
	}
	machines := func(name string) *spec.VirtualMachineAndPodAffinity {
		if !maybe(t, name) {
			return nil
		}
		return &spec.VirtualMachineAndPodAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution:  []corev1.PodAffinityTerm{term()},
			PreferredDuringSchedulingIgnoredDuringExecution: []spec.WeightedVirtualMachineAndPodAffinityTerm{{Weight: weight(), Term: term()}},
		}
	}
	a.VirtualMachineAndPodAffinity = machines("virtualMachineAndPodAffinity")
	a.VirtualMachineAndPodAntiAffinity = machines("virtualMachineAndPodAntiAffinity")
	return a
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

// leaveRoomForACD removes the last CD drive of a machine that has as many as there
// may be.
func leaveRoomForACD(m *spec.Machine) {
	cds, last := 0, 0
	for i := range m.Disks {
		if m.Disks[i].Cdrom != nil {
			cds, last = cds+1, i
		}
	}
	if cds == limits.MaxCDs {
		m.Disks = slices.Delete(m.Disks, last, last+1)
	}
}
