package disktest

import (
	"encoding/json"
	"reflect"
	"slices"

	"github.com/vmop/sdk/internal/promises"
	"github.com/vmop/sdk/vmop/conditions"
	"github.com/vmop/sdk/vmop/names"
	"github.com/vmop/sdk/vmop/reconcile"
	"github.com/vmop/sdk/vmop/runnerconfig"
	"github.com/vmop/sdk/vmop/spec"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// reconcile decides and executes the first writes of the plan: all, and the status, if most is
// negative.
func (w *world) reconcile(most int) reconcile.Plan {
	if w.cache.disk == nil || !w.stale && w.dirty {
		return reconcile.Plan{}
	}
	s := w.snapshot()
	before, _ := json.Marshal(s)
	plan := w.Decide(s)
	if again := w.Decide(s); !reflect.DeepEqual(plan, again) {
		w.Violated("equal snapshots give equal plans", "two plans for one snapshot:\n%+v\n%+v", plan, again)
	}
	if after, _ := json.Marshal(s); string(before) != string(after) {
		w.Violated("a snapshot is not changed", "it has")
	}
	w.checkPlan(plan)
	for i, a := range plan.Actions {
		if i == most {
			w.Note("the operator dies")
			return plan
		}
		if !w.execute(a) {
			w.Note("conflict: %s", a.Target())
			return plan
		}
	}
	if most >= 0 {
		return plan
	}
	for _, st := range plan.Statuses {
		w.status(st)
	}
	return plan
}

func (w *world) checkPlan(plan reconcile.Plan) {
	for _, a := range plan.Actions {
		switch a := a.(type) {
		case reconcile.DeleteClaim, reconcile.DeleteSecret, reconcile.Apply, reconcile.Patch:
			w.Violated("no claim is deleted, and nothing is written over", "%s", a.Target())
		case reconcile.UpdateClaim:
			has := w.cache.claim.Spec.Resources.Requests[corev1.ResourceStorage]
			if w.image && a.Storage != nil {
				w.Violated("the claim of an image stays as it was made", "%s is to have %s", a.Name, a.Storage.String())
			}
			if a.Storage != nil && a.Storage.Cmp(has) <= 0 {
				w.Violated("no claim shrinks", "%s has %s and is to have %s", a.Name, has.String(), a.Storage.String())
			}
		}
	}
	w.told(plan)
	w.looksAgain(plan)
	for _, st := range plan.Statuses {
		all, _ := st.Status["conditions"].([]any)
		var ready map[string]any
		for _, c := range all {
			if m := c.(map[string]any); m["type"] == conditions.Ready {
				ready = m
			}
		}
		if ready == nil || ready["reason"] == "" || ready["message"] == "" || st.Status["phase"] == nil {
			w.Violated("what is awaited is told", "the status is %v", st.Status)
		}
		if long := promises.LongMessage(plan); long != "" {
			w.Violated("a message is one line", "%d bytes: %s", len(long), long)
		}
		resized := slices.ContainsFunc(all, func(c any) bool {
			m := c.(map[string]any)
			return m["type"] == conditions.DiskResized && m["status"] == string(metav1.ConditionTrue) && m["observedGeneration"] == w.cache.disk.Generation
		})
		if w.outgrown() && (resized || st.Status["phase"] == string(spec.DiskReady) && w.cache.claim.Status.Capacity.Storage().Cmp(w.cache.disk.Spec.PersistentVolumeClaim.Size) >= 0) {
			w.Violated("a disk has not grown before its guest has it", "the guest has %s: %v", w.cache.guest, st.Status)
		}
		if phase := st.Status["phase"]; (phase == string(spec.DiskReady) || phase == string(spec.DiskResizing)) && !w.usable() {
			w.Violated("a disk that is ready has its content", "it is told to be %v, and its claim is %+v", phase, w.truth.claim)
		}
		was, before := w.cache.disk.Status.Progress, percent(w.cache.disk.Status.Progress)
		switch now, is := st.Status["progress"].(string); {
		case !is:
		case now == "100%" && (w.cache.claim == nil || w.cache.claim.Annotations[names.AnnotationFilled] != string(w.cache.disk.UID)):
			w.Violated("what is not there is not told to be whole", "the status is %v", st.Status)
		case percent(now) < before && before < 100 && w.cache.pod != nil && w.cache.pod.Status.Phase == corev1.PodRunning:
			w.Violated("progress does not go back", "from %s to %s", was, now)
		}
	}
}

// looksAgain: no watch shows that a pod or Secret goes that has none of the operator's labels.
func (w *world) looksAgain(plan reconcile.Plan) {
	d := w.cache.disk
	has := d.Status.Conditions
	for _, st := range plan.Statuses {
		var next spec.VirtualDiskStatus
		data, _ := json.Marshal(st.Status["conditions"])
		if err := json.Unmarshal(data, &next.Conditions); err != nil {
			panic(err)
		}
		has = next.Conditions
	}
	c := spec.FindCondition(has, conditions.Ready)
	if d.DeletionTimestamp == nil && c != nil && (c.Reason == conditions.ReasonDiskPodInTheWay || c.Reason == conditions.ReasonDiskSecretInTheWay) && plan.Wake.IsZero() {
		w.Violated("what is in the way is looked for again", "there is no time for that: %s", c.Message)
	}
}

func (w *world) makeDisk() {
	d := spec.NewDisk("lab", "data", resource.MustParse(choose(w, "size", "1Gi", "2Gi")))
	d.UID, d.Generation, d.ResourceVersion = w.UID(), 1, w.Version()
	if w.cluster {
		d.Namespace = ""
	}
	what := w.Draw("source", 6)
	switch {
	case w.restores:
		what = 6
	case w.cluster:
		what = 0
	case w.image:
		what = what / 3 * 4 // a server, or an upload
	}
	switch what {
	case 0, 1:
		d.Spec.DataSource = &spec.VirtualDiskSource{Type: spec.DiskSourceHTTP, HTTP: &spec.VirtualDiskHTTP{URL: choose(w, "url", "http://images.test/a", "http://images.test/a", "http://127.0.0.1/a")}}
		if !w.image && w.Draw("block", 3) == 0 {
			mode := corev1.PersistentVolumeBlock
			d.Spec.PersistentVolumeClaim.VolumeMode = &mode
		}
	case 2:
		mode := corev1.PersistentVolumeFilesystem
		d.Spec.PersistentVolumeClaim.VolumeMode = &mode
	case 4, 5:
		d.Spec.DataSource = &spec.VirtualDiskSource{Type: spec.DiskSourceUpload}
		if w.Draw("asked for", 2) == 0 {
			d.Annotations = map[string]string{names.AnnotationUploadRequest: "r0"}
		}
	}
	if what == 6 {
		w.madeOfSnapshot(d)
	}
	w.truth.disk = d
	w.Note("disk %s: %s, source %v", d.UID, d.Spec.PersistentVolumeClaim.Size.String(), d.Spec.DataSource)
}

func (w *world) fills() {
	p, c := w.truth.pod, w.truth.claim
	if p == nil || p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed || len(p.OwnerReferences) == 0 {
		return
	}
	if p.DeletionTimestamp != nil {
		w.truth.pod = nil
		return
	}
	p = p.DeepCopy()
	p.ResourceVersion = w.Version()
	ends := func(phase corev1.PodPhase, said runnerconfig.Imported) {
		p.Status.Phase = phase
		p.Status.ContainerStatuses = []corev1.ContainerStatus{{State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{Message: string(said.Encode())}}}}
	}
	switch what := w.Draw("the pod", 6); {
	case p.Status.Phase == "" && c != nil:
		p.Status.Phase = corev1.PodRunning
		c = c.DeepCopy()
		c.Status.Phase, c.ResourceVersion = corev1.ClaimBound, w.Version()
		c.Status.Capacity = c.Spec.Resources.Requests.DeepCopy()
		w.provisions(c)
		w.truth.claim = c
	case w.restores && c != nil && !w.wellRestored[c.UID] && what > 2:
		// It detects an empty volume, or takes old content for the disk.
		if ends(corev1.PodFailed, runnerconfig.Imported{Error: "there is no file", Final: true}); w.Draw("old content", 2) == 0 {
			ends(corev1.PodSucceeded, runnerconfig.Imported{Format: "raw", Size: 1})
		}
	case c == nil || what == 0:
		ends(corev1.PodFailed, runnerconfig.Imported{Error: "it is not there", Final: w.Draw("for good", 3) == 0})
	case what == 1:
		ends(corev1.PodFailed, runnerconfig.Imported{})
	case what == 2:
		// Killed after its work, or it finds that of the former attempt.
		w.fill(c, p)
		p.Status.Phase = corev1.PodFailed
	default:
		w.fill(c, p)
		ends(corev1.PodSucceeded, runnerconfig.Imported{Format: "raw", Size: 1, Stored: 1, SHA256: theDigest, Length: 1})
	}
	w.truth.pod = p
	w.Note("the pod: %s, %+v", p.Status.Phase, p.Status.ContainerStatuses)
}
