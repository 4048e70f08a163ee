package spectest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
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

// MachineName generates names that a machine may have.
func MachineName() *rapid.Generator[string] {
	return rapid.StringMatching(`[a-z]([a-z0-9-]{0,30}[a-z0-9])?`)
}

// Label generates DNS labels, the names of disks, storage classes and volumes.
func Label() *rapid.Generator[string] {
	return rapid.StringMatching(`[a-z0-9]([a-z0-9-]{0,20}[a-z0-9])?`)
}

// Labels generates labels of objects.
func Labels() *rapid.Generator[map[string]string] {
	return rapid.MapOfN(
		rapid.StringMatching(`([a-z]{1,8}\.example\.org/)?[a-zA-Z0-9]([a-zA-Z0-9._-]{0,10}[a-zA-Z0-9])?`),
		rapid.StringMatching(`([a-zA-Z0-9]([a-zA-Z0-9._-]{0,10}[a-zA-Z0-9])?)?`), 0, 3)
}

// Text generates one-line texts that are free in form: with spaces, commas,
// quotes, equals signs, backslashes, colons and Unicode, and such that YAML
// would read as something else.
func Text() *rapid.Generator[string] {
	return rapid.OneOf(
		rapid.SampledFrom([]string{
			"yes", "on", "null", "~", "0755", "1e3", "{}", "- a", "a: b", "#x", "&a", "*a", "!t", "%y", "---",
			`a,b=c,,d`, `"quoted"`, `it's`, `back\slash`, "  spaces  ", "grün", "日本語", "🖥", "<<",
		}),
		rapid.StringOfN(rapid.OneOf(
			rapid.RuneFrom([]rune(`abcXYZ019 ,;=:"'\/#&*!|>%@{}[]<>?+-_.~$()`)),
			rapid.RuneFrom([]rune("äßéλЖ中文🖥\u00a0\u200b")),
		), 1, 24, -1),
	)
}

// File generates names of files: relative, or absolute, with awkward
// characters, never leaving their directory.
func File() *rapid.Generator[string] {
	segment := rapid.Custom(func(t *rapid.T) string {
		s := strings.ReplaceAll(Text().Draw(t, "segment"), "/", "_")
		s = strings.ReplaceAll(s, ":", "_") // or it may be taken for a URL
		if s == "." || s == ".." {
			return "dot"
		}
		return s
	})
	return rapid.Custom(func(t *rapid.T) string {
		name := strings.Join(rapid.SliceOfN(segment, 1, 3).Draw(t, "segments"), "/")
		if rapid.Bool().Draw(t, "absolute") {
			return "/" + name
		}
		return name
	})
}

// ImageName generates what a CD drive may have in it, an empty string included.
func ImageName() *rapid.Generator[string] {
	return rapid.OneOf(
		rapid.Just(""),
		File(),
		rapid.StringMatching(`https?://[a-z]{1,8}\.example\.org(:[1-9][0-9]{1,3})?/[a-z0-9,=&?+]{0,12}\.iso`),
		rapid.StringMatching(`file:(//)?/srv/[a-z0-9,=]{1,12}\.iso`),
	)
}

// RawObject generates JSON objects with any content.
func RawObject() *rapid.Generator[*runtime.RawExtension] {
	return rapid.Custom(func(t *rapid.T) *runtime.RawExtension {
		members := rapid.MapOfN(Text(), rapid.OneOf(
			rapid.Map(Text(), func(s string) string { return string(quote(s)) }),
			rapid.SampledFrom([]string{"1", "1.50", "-0.25", "1e3", "9007199254740993", "true", "null", "[]", "{}", `["a",{"b":1}]`}),
		), 0, 4).Draw(t, "members")
		var parts []string
		for key, value := range members {
			parts = append(parts, string(quote(key))+":"+value)
		}
		// Maps have no order of their own, and a test must be repeatable.
		slices.Sort(parts)
		return &runtime.RawExtension{Raw: []byte("{" + strings.Join(parts, ",") + "}")}
	})
}

// Toleration generates tolerations of all shapes.
func Toleration() *rapid.Generator[corev1.Toleration] {
	return rapid.Custom(func(t *rapid.T) corev1.Toleration {
		out := corev1.Toleration{
			Operator: rapid.SampledFrom([]corev1.TolerationOperator{"", corev1.TolerationOpEqual, corev1.TolerationOpExists}).Draw(t, "operator"),
			Effect:   rapid.SampledFrom([]corev1.TaintEffect{"", corev1.TaintEffectNoSchedule, corev1.TaintEffectPreferNoSchedule, corev1.TaintEffectNoExecute}).Draw(t, "effect"),
		}
		if out.Operator != corev1.TolerationOpExists || rapid.Bool().Draw(t, "has key") {
			out.Key = Label().Draw(t, "key")
		}
		if out.Operator != corev1.TolerationOpExists && rapid.Bool().Draw(t, "has value") {
			out.Value = Label().Draw(t, "value")
		}
		if out.Effect == corev1.TaintEffectNoExecute && rapid.Bool().Draw(t, "ends") {
			seconds := rapid.Int64Range(0, 3600).Draw(t, "tolerationSeconds")
			out.TolerationSeconds = &seconds
		}
		return out
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

// Bytes generates quantities of whole bytes in the given range, some of them
// round in binary or decimal units.
func Bytes(least, most int64) *rapid.Generator[resource.Quantity] {
	return rapid.Custom(func(t *rapid.T) resource.Quantity {
		n := rapid.Int64Range(least, most).Draw(t, "bytes")
		switch rapid.IntRange(0, 2).Draw(t, "unit") {
		case 0:
			if r := n &^ (1<<20 - 1); r >= least {
				return *resource.NewQuantity(r, resource.BinarySI)
			}
		case 1:
			if r := n / 1e6 * 1e6; r >= least {
				return *resource.NewQuantity(r, resource.DecimalSI)
			}
		}
		return *resource.NewQuantity(n, resource.DecimalSI)
	})
}

func maybe(t *rapid.T, what string) bool { return rapid.Bool().Draw(t, "has "+what) }

func drawBool(t *rapid.T, what string) *bool {
	if !maybe(t, what) {
		return nil
	}
	b := rapid.Bool().Draw(t, what)
	return &b
}

func drawInt(t *rapid.T, what string, least, most int32) *int32 {
	if !maybe(t, what) {
		return nil
	}
	n := rapid.Int32Range(least, most).Draw(t, what)
	return &n
}

// quote writes a string as JSON, without the escapes that are for HTML.
func quote(s string) []byte {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(s); err != nil {
		panic(err) // a string always has a JSON form
	}
	return bytes.TrimSpace(b.Bytes())
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
