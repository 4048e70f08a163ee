package machine

import (
	"cmp"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/vmop/sdk/vmop/conditions"
	"github.com/vmop/sdk/vmop/names"
	"github.com/vmop/sdk/vmop/reconcile"
	"github.com/vmop/sdk/vmop/reconcile/objects"
	"github.com/vmop/sdk/vmop/spec"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func (d *decision) report() {
	if d.released || d.s.Bare {
		return // the machine is released, or has no status to compare with
	}
	if d.holds {
		// A status is bound to the observed version, which this plan makes an old one; it follows
		// with the next decision.
		d.plan.Events = nil
		return
	}
	applied, _ := conditions.List(append(append([]string{"all objects are as specified"}, d.amended()...), d.remarks...), "; ", 0)
	d.configuration.setTrue(spec.ReasonConfigurationApplied, applied)
	if d.devices.status == "" {
		d.devices = finding{status: metav1.ConditionUnknown, reason: d.configuration.reason, message: "the disks were not looked at: the specification is not valid"}
		if !d.invalid && d.unfit() {
			d.devices.message = "the disks were not looked at: the machine is not started because of its class"
		}
	}
	if d.provisioning.status == "" {
		d.provisioning = finding{status: metav1.ConditionUnknown, reason: d.configuration.reason, message: "what the guest is provisioned by was not looked at"}
	}
	d.accelerate()
	d.sole.setTrue(spec.ReasonSoleOperator, "no other operator looks after the machine")
	now := metav1.NewTime(d.s.Now.UTC().Truncate(time.Second))
	conditions := d.inRunnersPlace(now)
	d.ready, d.upToDate = d.readiness(), d.runnerImage()
	findings := [...]struct {
		name string
		*finding
	}{
		{spec.ConditionConfigurationApplied, &d.configuration},
		{spec.ConditionBlockDevicesReady, &d.devices},
		{spec.ConditionPodReady, &d.running},
		{spec.ConditionAwaitingRestart, &d.restart},
		{spec.ConditionReady, &d.ready},
		{spec.ConditionAccelerated, &d.accelerated},
		{spec.ConditionRunnerUpToDate, &d.upToDate},
		{spec.ConditionSoleOperator, &d.sole},
		{spec.ConditionProvisioningReady, &d.provisioning},
		{spec.ConditionVirtualMachineClassReady, &d.class},
		{spec.ConditionSizingPolicyMatched, &d.size},
	}
	found := make([]spec.Condition, 0, len(findings))
	for _, c := range findings {
		if c.status == "" {
			// It has no class.
			conditions = withoutCondition(conditions, c.name)
			continue
		}
		d.waitFor(c.name, c.finding, now)
		found = append(found, spec.Condition{
			Type: c.name, Status: c.status, Reason: camel(c.reason), Message: c.message,
			ObservedGeneration: d.s.VM.Generation, LastTransitionTime: now,
		})
	}
	conditions = spec.WithConditions(conditions, found...)
	// The report in the runner's name must be about the observed version, so it comes first.
	d.reportStopped(now)
	d.disown()
	if d.passing() {
		d.plan.Passing = len(d.plan.Statuses) == 0
		return
	}
	d.reportOperator(conditions)
	d.plan.Passing = d.lastReportDue() && len(d.plan.Statuses) > 0 && len(d.plan.Actions)+len(d.plan.Events) == 0
	if !d.due.IsZero() {
		d.wakeAt(d.due)
	}
}

func (d *decision) amended() []string {
	var out []string
	if d.vm.Spec.RunPolicy != "" && d.vm.Spec.VM.State == spec.StateRunning && !d.wanted() {
		out = append(out, "spec.vm.state: is Running and counts for nothing beside spec.runPolicy")
	}
	for _, a := range d.amendments {
		out = append(out, a.String())
	}
	if d.vm.Spec.LoggingProperties != "" {
		out = append(out, "spec.loggingProperties: only VM-Operator's runner, a Java program, reads it")
	}
	return out
}

const (
	// settling is how long a new pod may take to start before the status reports the steps in
	// between.
	settling = 2 * time.Second
	// ending is how long a stopping pod may take to end before the status reports that it is
	// stopping: two seconds, and the one by which deletion times, which are whole seconds, may be
	// too early.
	ending = 3 * time.Second
	// lasting is how long a wait that may pass by itself lasts before an event is emitted. The
	// steps of a start that takes longer than settling are reported together then.
	lasting = 10 * time.Second
)

// passing reports whether the findings will soon change by themselves; they are reported when
// they last. This keeps the number of writes for a new machine small.
func (d *decision) passing() bool {
	if !d.mayReport() {
		return false
	}
	if !d.wanted() {
		return d.stopping()
	}
	if d.invalid || d.s.VM.DeletionTimestamp != nil || len(d.plan.Events) > 0 ||
		d.configuration.urgent() || d.devices.urgent() || d.provisioning.urgent() || d.running.urgent() {
		return false
	}
	switch d.pod.state {
	case podAbsent:
		// The next decision follows when the new objects are observed.
		return len(d.plan.Actions) > 0 && (d.unmade || d.stored.Phase == "")
	case podPending, podRunning:
		if d.pod.state == podRunning && d.pod.container != nil && d.pod.container.State.Terminated != nil {
			// Its end is reported at once with its cause, if it is one.
			soon := d.pod.container.State.Terminated.FinishedAt.Add(settling)
			if d.s.Now.Before(soon) && !soon.After(d.s.Now.Add(settling)) {
				d.wakeAt(soon)
				return true
			}
			return false
		}
		made := d.pod.pod.CreationTimestamp
		soon := made.Add(settling)
		if w := findWait(d.stored.Waits, spec.ConditionPodReady); w != nil && !w.Since.Before(&made) && !w.Since.After(d.s.Now) && d.stored.ObservedGeneration == d.s.VM.Generation {
			soon = w.Since.Add(lasting)
		}
		if reports := d.reportsBy(); reports.After(soon) {
			soon = reports
		}
		if d.executing() || d.paused() || !d.s.Now.Before(soon) {
			return false
		}
		d.wakeAt(soon)
		return true
	}
	return false
}

// reportsBy returns by when the runner of a pod that has just started should have reported, if
// the status says already that the machine is starting. The report changes the phase, and what the
// pod does until then is told with it.
func (d *decision) reportsBy() time.Time {
	c := d.pod.container
	if c == nil || c.State.Running == nil || d.stored.Phase != spec.PhaseStarting || d.stored.ObservedGeneration != d.s.VM.Generation {
		return time.Time{}
	}
	by := c.State.Running.StartedAt.Add(settling)
	if by.After(d.s.Now.Add(settling)) {
		return time.Time{} // the node's clock is ahead
	}
	return by
}

// stopping reports whether a machine that should stop has just begun to, so that its stop is
// reported in one write.
func (d *decision) stopping() bool {
	if !slices.Equal(d.ranWith, d.stored.Claims) {
		return false // it has hardly run, and its claims are not noted yet
	}
	if d.s.VM.DeletionTimestamp != nil || len(d.plan.Events) > 0 || d.configuration.urgent() || d.devices.urgent() || d.provisioning.urgent() || d.running.urgent() {
		return false
	}
	began := d.s.Now
	switch d.pod.state {
	case podPending, podRunning: // deleted by this plan
	case podTerminating:
		pod := d.pod.pod
		if pod.DeletionGracePeriodSeconds == nil {
			return false
		}
		began = pod.DeletionTimestamp.Add(-time.Duration(*pod.DeletionGracePeriodSeconds) * time.Second)
	default:
		return false
	}
	soon := began.Add(ending)
	if !d.s.Now.Before(soon) || soon.After(d.s.Now.Add(ending)) || len(d.plan.Actions) == 0 && d.stored.Phase == spec.PhaseStopping {
		return false
	}
	d.wakeAt(soon)
	return true
}

// waitFor notes what a finding waits for, and emits an event if it is due and was not emitted
// before. The status remembers it across decisions and operator restarts.
func (d *decision) waitFor(conditionType string, f *finding, now metav1.Time) {
	if f.object == "" {
		return
	}
	w := spec.Wait{Condition: conditionType, Reason: waitReason(f.reason), Object: f.object, Since: now}
	// The condition that reports a wait may change.
	for _, old := range d.stored.Waits {
		if old.Reason == w.Reason && old.Object == w.Object && (!w.Told || old.Condition == w.Condition) {
			w.Since, w.Told = old.Since, old.Told
		}
	}
	if now.Before(&w.Since) {
		w.Since = now // the former operator's clock was ahead
	}
	due := w.Since.Time
	if f.brief {
		due = due.Add(lasting)
	}
	switch {
	case w.Told:
	case slices.ContainsFunc(d.waits, func(o spec.Wait) bool { return o.Told && o.Reason == w.Reason && o.Object == w.Object }):
		w.Told = true
	case d.s.Now.Before(due):
		if d.due.IsZero() || due.Before(d.due) {
			d.due = due
		}
	default:
		w.Told = true
		d.tell(f)
	}
	d.waits = append(d.waits, w)
}

// waitReason returns the reason by which a wait is known. The kubelet alternates between two for
// an image that it cannot pull.
func waitReason(reason string) string {
	if reason == "ErrImagePull" {
		return "ImagePullBackOff"
	}
	return camel(reason)
}

func findWait(waits []spec.Wait, conditionType string) *spec.Wait {
	for i := range waits {
		if waits[i].Condition == conditionType {
			return &waits[i]
		}
	}
	return nil
}

func (d *decision) tell(f *finding) {
	kind := corev1.EventTypeNormal
	if f.warning {
		kind = corev1.EventTypeWarning
	}
	d.plan.Events = append(d.plan.Events, reconcile.Event{Type: kind, Reason: camel(f.reason), Action: "Reconcile", Note: f.message + f.further, Related: d.related(f.object)})
}

func (d *decision) related(object string) *corev1.ObjectReference {
	kind, name, _ := strings.Cut(object, " ")
	ref := &corev1.ObjectReference{APIVersion: "v1", Kind: kind, Namespace: d.vm.Namespace, Name: name}
	switch kind {
	case names.KindNode:
		ref.Namespace = ""
	case kindRoleBinding:
		ref.APIVersion = "rbac.authorization.k8s.io/v1"
	case kindServiceAccount:
	case names.KindConfigMap, names.KindSecret, names.KindService, names.KindPod, names.KindClaim:
	default:
		return nil
	}
	return ref
}

func (d *decision) reportOperator(conditions []spec.Condition) {
	old, next := d.stored, spec.VirtualMachineStatus{
		Phase: d.phase(), ObservedGeneration: d.s.VM.Generation,
		RestartAwaitingChanges: d.awaiting, LastEnd: d.end, Power: d.powered, Waits: d.waits, Claims: d.ranWith, BlockDeviceRefs: d.blockDevices(),
		VirtualMachinePods: d.ownPods(), Conditions: conditions,
	}
	if d.pod.exists() {
		pod := d.pod.pod
		next.Created, next.Ready = true, d.executing() && d.s.VM.DeletionTimestamp == nil
		next.NodeName, next.IPAddress = pod.Spec.NodeName, d.address()
	} else {
		next.Created = d.pod.state == podFinished || d.creates
	}
	if !d.pretended() && old.Phase == next.Phase && old.Created == next.Created && old.Ready == next.Ready &&
		old.NodeName == next.NodeName && old.IPAddress == next.IPAddress &&
		old.ObservedGeneration == next.ObservedGeneration &&
		sameEnd(old.LastEnd, next.LastEnd) && samePower(old.Power, next.Power) && sameConditions(old.Conditions, next.Conditions) &&
		equality.Semantic.DeepEqual(old.Waits, next.Waits) && slices.Equal(old.Claims, next.Claims) && equality.Semantic.DeepEqual(old.BlockDeviceRefs, next.BlockDeviceRefs) &&
		(slices.Equal(old.VirtualMachinePods, next.VirtualMachinePods) || d.underWay() && d.mayReport()) &&
		slices.EqualFunc(old.RestartAwaitingChanges, next.RestartAwaitingChanges, sameAwaiting) {
		return
	}
	mine, version := d.inRunnersName(next.Conditions)
	if d.vm.Spec.RunPolicy != "" && !d.reportsAsRunner() {
		// The result of a run policy must not overwrite a newer one: a deleted pod or an answered
		// request leaves no other trace.
		version = d.s.VM.ResourceVersion
	}
	part := operatorStatus{
		Phase: next.Phase, Created: next.Created, Ready: next.Ready,
		NodeName: overwriting(d.shown.NodeName, next.NodeName), IPAddress: overwriting(d.shown.IPAddress, next.IPAddress),
		ObservedGeneration:     next.ObservedGeneration,
		RestartAwaitingChanges: overwritingAll(d.shown.RestartAwaitingChanges, next.RestartAwaitingChanges),
		LastEnd:                next.LastEnd, Power: next.Power, Waits: next.Waits, Claims: next.Claims,
		BlockDeviceRefs:    overwritingAll(d.shown.BlockDeviceRefs, next.BlockDeviceRefs),
		VirtualMachinePods: overwritingAll(d.shown.VirtualMachinePods, next.VirtualMachinePods), Stats: d.stats(next.Phase),
		Conditions: reportedConditions(next.Conditions, append(spec.OperatorConditionTypes(), mine...)),
	}
	d.plan.Statuses = append(d.plan.Statuses, d.statusOf(names.OperatorStatusManager, version, part))
}

func (d *decision) ownPods() []spec.VirtualMachinePod {
	var out []spec.VirtualMachinePod
	for i, role := range d.s.roles() {
		pod := &d.s.Pods[i]
		switch role {
		case roleActive, roleTarget, roleLeftover:
			out = append(out, spec.VirtualMachinePod{Name: pod.Name, UID: pod.UID, Active: role == roleActive && !finished(pod)})
		}
	}
	if last := spec.MaxVirtualMachinePods - 1; len(out) > last {
		// The active one is always listed: otherwise its runner may not report.
		if i := slices.IndexFunc(out, func(p spec.VirtualMachinePod) bool { return p.Active }); i > last {
			out[last] = out[i]
		}
		out = out[:last+1]
	}
	return out
}

// mayReport reports whether the stored status permits the runner of the active pod to report. The
// operator waits for that report, so the write of the active pod must not be postponed.
func (d *decision) mayReport() bool {
	return !d.pod.exists() || finished(d.pod.pod) || objects.MayReport(d.s.VM, d.pod.pod.Name, d.pod.pod.UID)
}

// underWay reports whether the machine's phase is about to change, so that a change of its pods
// is not worth a write of its own.
func (d *decision) underWay() bool {
	return d.creates || d.pod.state == podFinished || d.pod.exists() && !d.executing() && !d.paused()
}

// pretended reports whether the operator's part of the status has something that the operator did
// not write.
func (d *decision) pretended() bool {
	was, is := *d.shown, *d.stored
	if was.Phase != is.Phase || was.Created != is.Created || was.Ready != is.Ready || was.NodeName != is.NodeName || was.IPAddress != is.IPAddress ||
		was.ObservedGeneration != is.ObservedGeneration || len(was.RestartAwaitingChanges) != len(is.RestartAwaitingChanges) || len(was.BlockDeviceRefs) != len(is.BlockDeviceRefs) ||
		len(was.VirtualMachinePods) != len(is.VirtualMachinePods) || d.pretendedRecords() {
		return true
	}
	return slices.ContainsFunc(spec.OperatorConditionTypes(), func(t string) bool {
		return spec.FindCondition(was.Conditions, t) != nil && spec.FindCondition(is.Conditions, t) == nil
	})
}

func (d *decision) pretendedRecords() bool {
	return (d.shown.LastEnd == nil) != (d.stored.LastEnd == nil) || (d.shown.Power == nil) != (d.stored.Power == nil) || len(d.shown.Waits) != len(d.stored.Waits) ||
		(d.shown.Stats == nil) != (d.stored.Stats == nil)
}

// disown emits an event about what others wrote into the operator's part of the status. The
// operator's report replaces it; optional fields are removed.
func (d *decision) disown() {
	if !d.pretended() {
		return
	}
	d.plan.Events = append(d.plan.Events, reconcile.Event{
		Type: corev1.EventTypeWarning, Reason: spec.ReasonStatusOfOthers, Action: "Reconcile",
		Note: "the status has what the operator did not write: " + cmp.Or(d.s.Authors.strangers(), "nobody says who did") + "; it is not believed, and replaced",
	})
	if d.pretendedRecords() {
		d.do(reconcile.Patch{
			Kind: names.KindVirtualMachine, Subresource: "status", Name: d.vm.Name, UID: d.s.VM.UID, ResourceVersion: d.s.VM.ResourceVersion,
			Manager: names.OperatorStatusManager, Fields: map[string]any{"status": map[string]any{"lastEnd": nil, "power": nil, "waits": nil, "stats": nil}},
		}, &d.configuration)
	}
}

// address returns where the machine is reached. A guest on a bridge of the node has addresses of
// its own, which its agent reports; all others are reached at their pod's.
func (d *decision) address() string {
	for _, n := range d.vm.Spec.VM.Networks {
		if n.Tap == nil {
			continue
		}
		if d.pod.state == podRunning {
			return guestAddress(d.stored.Interfaces)
		}
		return ""
	}
	return d.pod.pod.Status.PodIP
}

func guestAddress(interfaces []spec.Interface) string {
	other := ""
	for _, i := range interfaces {
		for _, text := range i.IPAddresses {
			p, err := netip.ParsePrefix(text)
			if err != nil || !p.Addr().IsGlobalUnicast() {
				continue
			}
			if p.Addr().Is4() {
				return p.Addr().String()
			}
			if other == "" {
				other = p.Addr().String()
			}
		}
	}
	return other
}

func (d *decision) phase() string {
	wanted := d.wanted() && !d.poweredOff()
	switch {
	case d.s.VM.DeletionTimestamp != nil:
		return spec.PhaseTerminating
	case d.lost():
		return spec.PhaseUnknown
	case d.pod.state == podTerminating:
		return spec.PhaseStopping
	case !wanted && d.pod.state != podAbsent && d.pod.state != podForeign && d.pod.state != podOrphaned:
		return spec.PhaseStopping
	case !wanted:
		return spec.PhaseStopped
	case d.pod.state == podRunning && d.executing():
		return spec.PhaseRunning
	case d.pod.state == podRunning && d.paused():
		if d.failed() {
			return spec.PhaseDegraded
		}
		return spec.PhasePaused
	case d.pod.state == podRunning && d.endsByItself():
		return spec.PhaseStopping
	case d.pod.state == podRunning, d.pod.state == podPending && !d.running.warning && d.pod.pod.Spec.NodeName != "":
		return spec.PhaseStarting
	}
	return spec.PhasePending
}

func sameEnd(a, b *spec.MachineEnd) bool {
	return a == b || a != nil && b != nil && a.PodUID == b.PodUID
}

func samePower(a, b *spec.Power) bool {
	return a == b || a != nil && b != nil && a.Since.Equal(&b.Since) &&
		a.Policy == b.Policy && a.State == b.State && a.Reason == b.Reason && a.Request == b.Request && a.PodUID == b.PodUID
}

func sameConditions(a, b []spec.Condition) bool {
	// WithCondition returns the list itself if nothing changed.
	return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0])
}

// reportStopped reports in the runner's name that the machine does not run, if the status says
// otherwise and no runner exists to correct it.
func (d *decision) reportStopped(now metav1.Time) {
	// What others wrote in the runner's place is corrected, too.
	if d.pod.state != podAbsent && d.pod.state != podFinished || reportsStopped(d.shown) && (!d.reportedLate() || d.lastWords()) {
		return
	}
	if d.unsure() {
		d.wakeAt(spec.FindCondition(d.shown.Conditions, spec.ConditionRunning).LastTransitionTime.Add(lag))
		return
	}
	conditions := d.stored.Conditions
	for _, t := range spec.ConditionTypes() {
		message := "the machine does not run"
		if old := spec.FindCondition(conditions, t); old != nil && old.Reason == spec.ReasonVMStopped && old.Message != "" {
			message = old.Message // the runner's last message has the cause
		}
		conditions = spec.WithCondition(conditions, spec.Condition{
			Type: t, Status: metav1.ConditionFalse, Reason: spec.ReasonVMStopped, Message: message,
			ObservedGeneration: d.s.VM.Generation, LastTransitionTime: now,
		})
	}
	part := stoppedStatus{
		DeviceGroups: d.stored.DeviceGroups, RunnerEnd: d.stored.RunnerEnd, GuestPanics: d.stored.GuestPanics,
		RunnerVersion: overwriting(d.shown.RunnerVersion, ""), ConsoleClient: overwriting(d.shown.ConsoleClient, ""), LoggedInUser: overwriting(d.shown.LoggedInUser, ""),
		Conditions: reportedConditions(conditions, spec.ConditionTypes()),
	}
	d.plan.Statuses = append(d.plan.Statuses, d.statusOf(names.RunnerStatusManager, d.s.VM.ResourceVersion, part))
}

func (d *decision) statusOf(manager, version string, part any) reconcile.StatusApply {
	out := reconcile.StatusOf(names.KindVirtualMachine, d.s.VM, manager, part)
	out.ResourceVersion = version
	return out
}
