package controller

import (
	"fmt"
	"slices"
	"time"

	"github.com/vmop/sdk/vmop/names"
	"github.com/vmop/sdk/vmop/reconcile/objects"
	"github.com/vmop/sdk/vmop/runnerconfig"
	"github.com/vmop/sdk/vmop/spec"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// What people have beside machines: a class of the cluster, and a Secret in each
// namespace that guests are provisioned from.
const (
	theClass  = "large"
	theSecret = "seed"
	aLabel    = "tier"
)

// lastRequest is the last operation that somebody has asked for on a machine, if nothing
// has happened since that decides whether it runs.
type lastRequest struct {
	operation modelKey
	upsets    int
	// second is when it was made; API servers know no more of the time.
	second time.Time
}

// lastEnd is what the last end of a guest means for its machine, if nothing has happened
// since that decides whether it runs.
type lastEnd struct {
	stays  bool
	upsets int
}

// clusterPolicies are the run policies, and that there is none.
var clusterPolicies = []spec.RunPolicy{
	"", spec.RunPolicyAlwaysOn, spec.RunPolicyAlwaysOff, spec.RunPolicyManual, spec.RunPolicyAlwaysOnUnlessStoppedManually,
}

func (w *clusterWorld) createMachine(k modelKey) {
	u := ownKind(k.namespace, k.kind, k.name)
	u.SetGeneration(1)
	disks := []any{map[string]any{"volumeClaimTemplate": map[string]any{
		"metadata": map[string]any{"name": "system"},
		"spec":     map[string]any{"resources": map[string]any{"requests": map[string]any{"storage": "1Gi"}}},
	}}}
	if w.choose("shares a disk", 2) == 1 {
		disks = append(disks, map[string]any{"persistentVolumeClaim": map[string]any{"claimName": sharedDisk}})
	}
	state := "Running"
	if slices.Contains(w.members[k.namespace], k.name) && w.choose("off at first", 2) == 1 {
		state = "Stopped"
	}
	s := map[string]any{"vm": map[string]any{"state": state, "maximumCpus": int64(1), "maximumRam": "1Gi", "disks": disks}}
	if pools := w.poolsFor(k); len(pools) > 0 {
		s["pools"] = pools
	}
	if policy := clusterPolicies[w.choose("run policy", len(clusterPolicies))]; policy != "" {
		s["runPolicy"] = string(policy)
	}
	if w.choose("of the class", 3) == 1 {
		s["virtualMachineClassName"] = theClass
	}
	if w.choose("from a Secret", 3) == 1 {
		s["provisioning"] = map[string]any{"type": "UserDataRef", "userDataRef": map[string]any{"kind": "Secret", "name": theSecret}}
	}
	if w.choose("restarts", 3) == 1 {
		s["disruptions"] = map[string]any{"restartApprovalMode": "Automatic"}
	}
	u.Object["spec"] = s
	w.api.put(k, u.Object)
	w.upsets[k]++
	w.note("somebody creates %s: %v", k, s)
}

// person is somebody with kubectl.
func (w *clusterWorld) person() {
	k := modelKey{spec.KindVirtualMachine, []string{"apps", "lab"}[w.choose("namespace", 2)], []string{"db", "web"}[w.choose("machine", 2)]}
	if members := w.members[k.namespace]; len(members) > 0 && w.choose("made for a pool", 4) == 1 {
		k.name = members[w.choose("member", len(members))]
	}
	o := w.api.copied(k)
	if o == nil {
		if w.choose("with new disks", 2) == 1 {
			w.deleteClaims(k)
		}
		w.createMachine(k)
		return
	}
	u := unstructured.Unstructured{Object: o}
	switch what := w.choose("person", 15); what {
	case 0, 1:
		state, _, _ := unstructured.NestedString(o, "spec", "vm", "state")
		state = map[string]string{"Running": "Stopped", "Stopped": "Running"}[state]
		_ = unstructured.SetNestedField(o, state, "spec", "vm", "state")
		w.upsets[k]++
		w.note("somebody wants %s %s", k, state)
	case 2:
		policy := clusterPolicies[w.choose("run policy", len(clusterPolicies))]
		if unstructured.RemoveNestedField(o, "spec", "runPolicy"); policy != "" {
			_ = unstructured.SetNestedField(o, string(policy), "spec", "runPolicy")
		}
		w.upsets[k]++
		w.note("somebody gives %s the run policy %q", k, policy)
	case 3, 4:
		_ = unstructured.SetNestedField(o, int64(1+w.choose("CPUs", 4)), "spec", "vm", "maximumCpus")
		w.note("somebody changes %s", k)
	case 5:
		if pod := (modelKey{kindPod, k.namespace, k.name}); w.api.top(pod) != nil {
			w.note("somebody deletes %s", pod)
			w.upsets[k]++
			w.api.remove(pod, 30)
		}
		return
	case 6:
		w.note("somebody deletes %s", k)
		w.upsets[k]++
		if len(u.GetFinalizers()) == 0 {
			w.api.put(k, nil)
			return
		}
		if u.GetDeletionTimestamp() == nil {
			at := metav1.NewTime(w.now)
			u.SetDeletionTimestamp(&at)
			w.api.put(k, o)
		}
		return
	case 7:
		u.SetLabels([]map[string]string{nil, {aLabel: "front"}, {aLabel: "back"}, {aLabel: "back", names.LabelInstance: "other"}}[w.choose("labels", 4)])
		w.note("somebody labels %s %v", k, u.GetLabels())
		w.api.put(k, o)
		return
	case 8:
		w.changeClass()
		return
	case 9:
		w.changeSecret(k.namespace)
		return
	case 10:
		w.changePool(clusterPools[w.choose("pool", len(clusterPools))])
		return
	default:
		w.operate(k)
		return
	}
	u.SetGeneration(u.GetGeneration() + 1)
	w.api.put(k, o)
}

// deleteClaims is somebody who deletes what a former machine of that name has left.
func (w *clusterWorld) deleteClaims(vm modelKey) {
	for _, claim := range []string{spec.DiskClaimName(vm.name, "system-disk"), spec.RunnerDataClaimName(vm.name)} {
		k := modelKey{kindClaim, vm.namespace, claim}
		used := slices.ContainsFunc(w.api.keys(kindPod), func(p modelKey) bool {
			return p.namespace == k.namespace && objects.PodHasClaim(into(w.api.top(p), &corev1.Pod{}), claim)
		})
		if w.api.top(k) != nil && !used {
			w.note("somebody deletes %s", k)
			w.api.put(k, nil)
		}
	}
}

// operate asks for an operation on a machine.
func (w *clusterWorld) operate(k modelKey) {
	types := []string{"Start", "Stop", "Restart", "Evict"}
	w.request(k, types[w.choose("type", len(types))], w.choose("force", 3) == 1)
}

func (w *clusterWorld) request(k modelKey, operation string, force bool) {
	w.asked++
	o := ownKind(k.namespace, spec.KindOperation, fmt.Sprintf("%s-%d", k.name, w.asked))
	o.SetGeneration(1)
	o.Object["spec"] = map[string]any{"type": operation, "virtualMachineName": k.name, "force": force}
	w.note("somebody asks for %s: %v", o.GetName(), o.Object["spec"])
	w.api.put(keyOf(o), o.Object)
	w.upsets[k]++
	last := lastRequest{keyOf(o), w.upsets[k], w.now.Truncate(time.Second)}
	if w.last[k].second.Equal(last.second) {
		last.upsets = -1 // nobody knows which of both is the last
	}
	w.last[k] = last
}

// changeClass is an administrator who makes the class, changes or deletes it.
func (w *clusterWorld) changeClass() {
	k := modelKey{spec.KindClass, "", theClass}
	if w.api.top(k) != nil && w.choose("deleted", 3) == 0 {
		w.note("the class is deleted")
		w.api.put(k, nil)
		return
	}
	class := spec.NewClass(theClass)
	if o := w.api.top(k); o != nil {
		into(o, class)
	}
	class.Generation++
	class.Annotations = map[string]string{names.AnnotationDefaultClass: []string{"false", "true"}[w.choose("default", 2)]}
	class.Spec = spec.VirtualMachineClassSpec{}
	switch w.choose("CPU", 3) {
	case 1:
		class.Spec.CPU = &spec.ClassCPU{Type: spec.ClassCPUModel, Model: "EPYC"}
	case 2:
		class.Spec.CPU = &spec.ClassCPU{Type: spec.ClassCPUModel} // not valid
	}
	w.note("the class is %+v", class.Spec)
	w.api.put(k, content(class))
}

// changeSecret is somebody who makes the Secret of a namespace, with the type that it
// must have or another one, or deletes it.
func (w *clusterWorld) changeSecret(namespace string) {
	k := modelKey{kindSecret, namespace, theSecret}
	if w.api.top(k) != nil {
		w.note("%s is deleted", k)
		w.api.put(k, nil)
		return
	}
	w.createSecret(k, []corev1.SecretType{names.SecretTypeCloudInit, names.SecretTypeCloudInitDeckhouse, corev1.SecretTypeOpaque}[w.choose("type", 3)])
}

func (w *clusterWorld) createSecret(k modelKey, t corev1.SecretType) {
	w.note("%s is made: %s", k, t)
	w.api.put(k, content(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: k.namespace, Name: k.name}, Type: t}))
}

// provide is somebody who does what conditions say: makes what machines wait for.
func (w *clusterWorld) provide() {
	class := spec.NewClass(theClass)
	class.Generation = 1
	w.api.put(modelKey{spec.KindClass, "", theClass}, content(class))
	for _, namespace := range []string{"apps", "lab"} {
		k := modelKey{kindSecret, namespace, theSecret}
		w.api.put(k, nil)
		w.createSecret(k, names.SecretTypeCloudInit)
	}
}

// backupPod is a pod of somebody else, which no cache shows.
var backupPod = modelKey{kindPod, "lab", "backup"}

// stranger is a pod that no cache shows and that uses a disk, which may not be there yet, or its
// end.
func (w *clusterWorld) stranger() {
	k := backupPod
	if o := w.api.top(k); o != nil {
		if pod := into(o, &corev1.Pod{}); w.guests[pod.UID] == nil {
			w.note("somebody needs no backup any more")
			w.starts.awaitsNoMore(pod)
			w.api.put(k, nil)
			return
		}
		w.api.remove(k, 30)
		return
	}
	// Claims that are not made yet come first.
	var claims []string
	for _, vm := range w.api.keys(spec.KindVirtualMachine) {
		claim := spec.DiskClaimName(vm.name, "system-disk")
		switch {
		case vm.namespace != k.namespace:
		case w.api.top(modelKey{kindClaim, k.namespace, claim}) == nil:
			claims = append([]string{claim}, claims...)
		default:
			claims = append(claims, claim)
		}
	}
	claim := sharedDisk
	if len(claims) > 0 && w.choose("a machine's own", 2) == 1 {
		claim = claims[w.choose("whose disk", len(claims))]
	}
	for _, other := range w.api.keys(kindPod) {
		if other.namespace == k.namespace && slices.Contains(objects.PodClaims(into(w.api.top(other), &corev1.Pod{})), claim) {
			return // somebody careful looks first
		}
	}
	// A start relies on a look for two seconds, and whoever comes within them is not seen.
	w.pass(3 * time.Second)
	w.note("somebody makes a backup of %s", claim)
	pod := podWith(k.name, claim)
	pod.Namespace = k.namespace
	o := w.api.put(k, content(pod))
	w.awaited(into(o, pod))
	if w.choose("at once", 2) == 1 {
		w.tend(k, 0)
		w.tend(k, 0)
	}
}

// awaited has the operator know of a pod of others that waits.
func (w *clusterWorld) awaited(pod *corev1.Pod) {
	if w.guests[pod.UID] == nil && !w.blind {
		w.starts.awaits(pod)
	}
}

// podWith is a pod that uses a claim.
func podWith(name, claim string) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name}}
	pod.Spec.Volumes = []corev1.Volume{{Name: "disk", VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claim}}}}
	return pod
}

// endsByPolicy remembers what an end means by the run policy, where that is certain: the
// operator has acted on the policy, nobody wants something else, and what has happened
// can be known.
func (w *clusterWorld) endsByPolicy(k modelKey, pod *corev1.Pod, cause runnerconfig.Cause, known, lost bool) {
	vm := into(w.api.top(k), &spec.VirtualMachine{})
	p, policy := vm.Status.Power, vm.Spec.RunPolicy
	if pod.DeletionTimestamp != nil || p == nil || p.Policy != policy || p.Request != vm.Annotations[names.AnnotationPowerRequest] || !vm.ShouldRun() {
		return
	}
	if !known || lost && p.PodUID != pod.UID {
		return
	}
	for _, o := range w.api.keys(spec.KindOperation) {
		if op := into(w.api.top(o), &spec.VirtualMachineOperation{}); o.namespace == k.namespace && op.Spec.VirtualMachineName == k.name && !op.Status.Phase.Finished() {
			return
		}
	}
	switch policy {
	case spec.RunPolicyManual:
		w.ends[k] = lastEnd{cause != runnerconfig.CauseGuestReset, w.upsets[k]}
	case spec.RunPolicyAlwaysOnUnlessStoppedManually:
		w.ends[k] = lastEnd{cause == runnerconfig.CauseGuestShutdown, w.upsets[k]}
	}
}

// checkProvided holds for every pod that is made: what its machine needs is there. A
// machine that was made anew meanwhile may need something else.
func (w *clusterWorld) checkProvided(pod modelKey) {
	k := modelKey{spec.KindVirtualMachine, pod.namespace, pod.name}
	seen, _ := w.cache.object(k).(*machine)
	o := w.api.top(k)
	if seen == nil || o == nil || !is(o, seen.UID, "") {
		return
	}
	vm := into(o, &spec.VirtualMachine{})
	if vm.Spec.VirtualMachineClassName != "" && w.cache.object(modelKey{spec.KindClass, "", theClass}) == nil {
		w.violated("a machine is not started without its class", "%s", k)
	}
	if vm.Spec.Provisioning != nil {
		seed := w.api.top(modelKey{kindSecret, pod.namespace, theSecret})
		if t, _, _ := unstructured.NestedString(seed, "type"); seed == nil || t == string(corev1.SecretTypeOpaque) {
			w.violated("a machine is not started without its Secret", "%s", k)
		}
	}
}

// checkPower is what must hold of run policies when nothing happens any more, whatever
// the status says.
func (w *clusterWorld) checkPower(k modelKey, vm *spec.VirtualMachine) {
	p, policy := vm.Status.Power, vm.Spec.RunPolicy
	if policy == "" {
		return
	}
	if p == nil || p.Policy != policy || p.Request != vm.Annotations[names.AnnotationPowerRequest] {
		w.violated("a run policy is followed", "%s is %s, and the status says %+v", k, policy, p)
	}
	on := p.State == spec.StateRunning
	manual := policy == spec.RunPolicyManual || policy == spec.RunPolicyAlwaysOnUnlessStoppedManually
	end, ended := w.ends[k]
	last, asked := w.last[k]
	var o spec.VirtualMachineOperation
	if asked = asked && last.upsets == w.upsets[k] && w.api.top(last.operation) != nil; asked {
		into(w.api.top(last.operation), &o)
		asked = o.Status.Phase == spec.OperationCompleted
	}
	switch {
	case policy == spec.RunPolicyAlwaysOn && !on, policy == spec.RunPolicyAlwaysOff && on:
		w.violated("a run policy is followed", "%s is %s, and the status says %+v", k, policy, p)
	case manual && ended && end.upsets == w.upsets[k] && end.stays == on:
		w.violated("an end is kept", "%s is %s, its last end means that it stays stopped: %v, and the status says %+v", k, policy, end.stays, p)
	case asked && (o.Spec.Type == spec.OperationStop) == on:
		w.violated("what was asked for last is so", "%s on %s, and the status says %+v", o.Spec.Type, k, p)
	}
}

// checkRunning is what must hold of a machine that runs when nothing happens any more.
func (w *clusterWorld) checkRunning(k modelKey, vm *spec.VirtualMachine) {
	pod := into(w.api.top(modelKey{kindPod, k.namespace, k.name}), &corev1.Pod{})
	if got, want := pod.Labels[aLabel], vm.Labels[aLabel]; got != want || pod.Labels[names.LabelInstance] != vm.Name {
		w.violated("what a machine is labelled with its pod is, too", "%s has %v, its pod %v", k, vm.Labels, pod.Labels)
	}
	// A class changes nothing else than the CPU model, and causes no restart.
	own := func(c spec.AwaitingChange) bool { return c.Path != "spec.vm.cpuModel" }
	if vm.Spec.RestartsAutomatically() && slices.ContainsFunc(vm.Status.RestartAwaitingChanges, own) {
		w.violated("changes that nobody need approve do not wait", "%s: %+v", k, vm.Status.RestartAwaitingChanges)
	}
}
