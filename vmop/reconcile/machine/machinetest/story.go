package machinetest

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/vmop/sdk/vmop/names"
	"github.com/vmop/sdk/vmop/reconcile"
	"github.com/vmop/sdk/vmop/reconcile/machine"
	"github.com/vmop/sdk/vmop/runnerconfig"
	"github.com/vmop/sdk/vmop/spec"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// grammar is what a script may say: a line of another form is an error, rather than ignored.
var grammar = regexp.MustCompile(`^(?:` + strings.Join([]string{
	`reconcile(?: seeing-the-machine-of \d\d:\d\d:\d\d)?`, `wait \d+[smh]`, `waits are-read`,
	`api-server (?:refuses|takes) \S+`, `operator is-replaced`,
	`kubelet(?: (?:schedule|start|removes|ends-it|unschedulable|pull-error|evict))+`,
	`runner reports`, `runner ends (?:` + causes() + `)`,
	`volumes are-(?:awaited|made)`, `claim \S+ is-(?:deleted|restored)`,
	`secret \S+ (?:is-deleted|has-type \S+)`, `class \S+ (?:is-deleted|is-made \d+)`,
	`garbage-collector`, `node-(?:dies|lives) \S+`, `vm-operator(?: 3\.4)?`,
	`person (?:starts|stops|sets-cpus|shrinks|grows|wants-shutdown-to-stop|breaks|approves-restarts|deletes-pod|deletes-machine|orphans-pod|makes-machine-again|forces-stop|wants-new-disks|asks-for-reset)`,
	`person sets-policy (?:AlwaysOn|AlwaysOff|Manual|AlwaysOnUnlessStoppedManually)`, `person asks-for (?:start|stop|restart)`,
	`person (?:sets-image|provisions-by|names-class) \S+`, `person labels(?: \S+=\S*)*`, `person sets-timeout \d+`,
	`person (?:wants-nodes|wants-to-be-with|wants-to-be-apart-from) \S+=\S+`,
}, `|`) + `)$`)

func causes() string {
	all := []runnerconfig.Cause{
		runnerconfig.CauseGuestShutdown, runnerconfig.CauseGuestReset, runnerconfig.CauseRequested, runnerconfig.CauseForced, runnerconfig.CauseHostQuit,
		runnerconfig.CauseGuestPanic, runnerconfig.CauseQEMUFailure, runnerconfig.CauseHelperFailure, runnerconfig.CauseStartFailure,
	}
	var out []string
	for _, c := range all {
		out = append(out, string(c))
	}
	return strings.Join(out, "|")
}

// Play runs a story: each line of the script is an event, and the decisions of decide are
// executed. It returns what was written, and the events that users see. An unknown line, one
// about a missing object and a broken promise are errors; the output until then is returned, too.
func Play(decide func(machine.Snapshot) reconcile.Plan, script string) (told string, err error) {
	var out strings.Builder
	w := newWorld(func(string, int) int { return 0 }, decide)
	for line := range strings.Lines(script) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		if !grammar.MatchString(line) {
			return out.String(), fmt.Errorf("unknown: %s", line)
		}
		fmt.Fprintf(&out, "%s> %s\n", w.now.Format("15:04:05 "), line)
		words := strings.Fields(line)
		err := w.guarded(func() {
			switch {
			case line == "reconcile":
				w.tellRounds(&out)
			case words[0] == "reconcile":
				w.seeMachineOf(words[2])
				w.tellRound(&out)
			case words[0] == "waits":
				w.tellWaits(&out)
			default:
				happenings[words[0]](w, words[1:])
			}
			w.check()
		})
		if err != nil {
			return out.String(), fmt.Errorf("%s: %w", line, err)
		}
	}
	return out.String(), nil
}

func (i impossible) Error() string { return string(i) }

func (w *world) mustRun() (*corev1.Pod, *guest) {
	pod := mustGet[*corev1.Pod](w, thePod)
	if w.guests[pod.UID] == nil {
		panic(impossible("no guest is started in " + thePod))
	}
	return pod, w.guests[pod.UID]
}

func (w *world) tellRounds(out *strings.Builder) {
	for range 10 {
		w.observeAll()
		p := w.tellRound(out)
		if len(p.Actions) == 0 && len(p.Statuses) == 0 {
			return
		}
	}
	w.violated("the world comes to rest", "there is no end of writes")
}

func (w *world) tellRound(out *strings.Builder) reconcile.Plan {
	old := get[*spec.VirtualMachine](w, theVM)
	p := w.reconcile(false)
	w.controllers()
	for _, a := range p.Actions {
		fmt.Fprintf(out, "  %s%s\n", a.Target(), detail(a))
	}
	for _, st := range p.Statuses {
		fmt.Fprintf(out, "  status of %s: %s\n", st.Manager, summary(&old.Status, st.Status))
	}
	for _, e := range p.Events {
		fmt.Fprintf(out, "  event %s\n", e)
	}
	if !p.Wake.IsZero() {
		fmt.Fprintf(out, "  look again at %s\n", p.Wake.Format(time.TimeOnly))
	}
	return p
}

// seeMachineOf lets a new operator observe the machine as it was at a time of the day, and all
// else as it is.
func (w *world) seeMachineOf(clock string) {
	mustGet[*spec.VirtualMachine](w, theVM)
	w.observeAll()
	h := w.objects[theVM]
	at := func(i int) string { return h.versions[i].at.Format(time.TimeOnly) }
	for h.seen > 0 && at(h.seen) > clock {
		h.seen--
	}
	if h.versions[h.seen].object == nil {
		panic(impossible("there was no machine at " + clock))
	}
}

// tellWaits writes the waits in the status, after verifying that lasting ones were reported by
// events.
func (w *world) tellWaits(out *strings.Builder) {
	w.checkWaitsTold()
	for _, of := range mustGet[*spec.VirtualMachine](w, theVM).Status.Waits {
		told := "not told"
		if of.Told {
			told = "told"
		}
		fmt.Fprintf(out, "  %s waits for %s since %s: %s, %s\n", of.Condition, of.Object, of.Since.UTC().Format(time.TimeOnly), of.Reason, told)
	}
}

func detail(a reconcile.Action) string {
	switch a := a.(type) {
	case reconcile.DeletePod:
		return fmt.Sprintf(" (%s, grace %d s)", a.UID, a.GraceSeconds)
	case reconcile.Patch:
		return " to " + string(stateOf(a))
	case reconcile.Create:
		if pod, is := a.Object.(*corev1.Pod); is {
			return placed(pod)
		}
	case reconcile.SetFinalizers:
		if a.Releases {
			return " and let it go"
		}
		return " to hold it"
	case reconcile.UpdateClaim:
		if a.Storage != nil {
			return " to " + a.Storage.String()
		}
		if o := a.Annotations[names.AnnotationOrigin]; o != "" {
			return " as made by " + o
		}
	case reconcile.Apply:
		m := a.Object.GetAnnotations()
		if n := m[names.AnnotationResetCounter]; n != "" && m[names.AnnotationGuestResetEnds] != "" {
			return " with resetCounter " + n + "; a reset by the guest ends the machine"
		} else if n != "" {
			return " with resetCounter " + n
		}
	}
	return ""
}

func summary(old *spec.VirtualMachineStatus, part map[string]any) string {
	var out []string
	if p, ok := part["phase"]; ok && p != old.Phase {
		out = append(out, fmt.Sprint(p))
	}
	if p, ok := part["power"].(map[string]any); ok && (old.Power == nil || p["state"] != string(old.Power.State) || p["reason"] != old.Power.Reason) {
		out = append(out, fmt.Sprintf("power: %v (%v)", p["state"], p["reason"]))
	}
	if c, ok := part["restartAwaitingChanges"].([]any); ok {
		for _, v := range c {
			m := v.(map[string]any)
			out = append(out, fmt.Sprintf("waits: %v %v -> %v", m["path"], m["currentValue"], m["desiredValue"]))
		}
	}
	for _, v := range part["conditions"].([]any) {
		c := v.(map[string]any)
		o := spec.FindCondition(old.Conditions, c["type"].(string))
		if o != nil && string(o.Status) == c["status"] && o.Reason == c["reason"] && o.Message == c["message"] {
			continue
		}
		out = append(out, fmt.Sprintf("%s=%s %s (%s)", c["type"], c["status"], c["reason"], c["message"]))
	}
	if len(out) == 0 {
		return "the same for the new generation, or for another field"
	}
	return strings.Join(out, "\n    ")
}

var happenings = map[string]func(*world, []string){
	"wait": func(w *world, args []string) {
		d, err := time.ParseDuration(args[0])
		if err != nil {
			panic(impossible(err.Error()))
		}
		w.pass(d)
	},
	"kubelet": func(w *world, args []string) {
		words := map[string]way{
			"schedule": goodWay, "start": goodWay, "removes": goodWay, "ends-it": goodWay, "unschedulable": firstBad, "pull-error": firstBad, "evict": secondBad,
		}
		for _, a := range args {
			w.tend(mustGet[*corev1.Pod](w, thePod), words[a])
		}
	},
	"runner": func(w *world, args []string) {
		pod, g := w.mustRun()
		if args[0] == "ends" {
			w.finish(pod, runnerconfig.Cause(args[1]))
			return
		}
		w.choose = func(string, int) int { return 1 }
		w.runnerReports(g)
		w.choose = func(string, int) int { return 0 }
	},
	"volumes": func(w *world, args []string) {
		w.unbound = args[0] == "are-awaited"
	},
	"claim": func(w *world, args []string) {
		if args[1] == "is-restored" {
			w.restoreClaims()
			return
		}
		pvc := mustGet[*corev1.PersistentVolumeClaim](w, "claim/"+args[0])
		at := metav1.NewTime(w.now)
		pvc.DeletionTimestamp = &at
		w.put("claim/"+args[0], pvc)
	},
	"secret": func(w *world, args []string) {
		key := "provisioning/" + args[0]
		if args[1] == "is-deleted" {
			w.put(key, nil)
			return
		}
		w.put(key, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: args[0]}, Type: corev1.SecretType(args[2])})
	},
	"class": func(w *world, args []string) {
		key := "class/" + args[0]
		if args[1] == "is-deleted" {
			w.put(key, nil)
			return
		}
		class := spec.NewClass(args[0])
		class.CreationTimestamp = metav1.NewTime(w.now)
		class.Spec.SizingPolicies = []spec.SizingPolicy{{Cores: spec.CoreRange{Min: number(args[2]), Max: 64}}}
		w.put(key, class)
	},
	"api-server": func(w *world, args []string) {
		if w.forbidden == nil {
			w.forbidden = map[string]bool{}
		}
		w.forbidden[args[1]] = args[0] == "refuses"
	},
	"operator":          func(w *world, _ []string) { clear(w.failures) },
	"garbage-collector": func(w *world, _ []string) { w.collector() },
	"node-dies":         func(w *world, args []string) { w.dead[args[0]] = true },
	"node-lives":        func(w *world, args []string) { w.repair(args[0]) },
	"person":            personDoes,
	"vm-operator":       func(w *world, args []string) { takeover(w, len(args) > 0 && args[0] == "3.4", true) },
}

func number(text string) int32 {
	n, err := strconv.ParseInt(text, 10, 32)
	if err != nil {
		panic(impossible(err.Error()))
	}
	return int32(n)
}

func personDoes(w *world, args []string) {
	if args[0] == "makes-machine-again" {
		w.createVM()
		return
	}
	vm := mustGet[*spec.VirtualMachine](w, theVM)
	switch args[0] {
	case "starts":
		vm.Spec.VM.State = spec.StateRunning
	case "stops":
		vm.Spec.VM.State = spec.StateStopped
	case "sets-cpus":
		vm.Spec.VM.MaximumCPUs = new(int32(4))
	case "shrinks":
		vm.Spec.VM.Disks[0].VolumeClaimTemplate.Spec.Resources.Requests[corev1.ResourceStorage] = quantity("512Mi")
	case "grows":
		vm.Spec.VM.Disks[0].VolumeClaimTemplate.Spec.Resources.Requests[corev1.ResourceStorage] = quantity("2Gi")
	case "wants-shutdown-to-stop":
		vm.Spec.GuestShutdownStops = true
	case "sets-image":
		vm.Spec.Image = &spec.RunnerImage{Source: args[1]}
	case "breaks":
		vm.Spec.VM.CPUModel = "host,\n"
	case "sets-policy":
		vm.Spec.RunPolicy = spec.RunPolicy(args[1])
	case "approves-restarts":
		vm.Spec.Disruptions = &spec.Disruptions{RestartApprovalMode: spec.RestartAutomatic}
	case "asks-for":
		w.askFor(vm, machine.Verb(args[1]))
		return
	case "deletes-pod":
		w.deletePod(mustGet[*corev1.Pod](w, thePod), 30)
		return
	case "deletes-machine":
		at := metav1.NewTime(w.now)
		vm.DeletionTimestamp = &at
	case "orphans-pod": // kubectl delete --cascade=orphan
		w.orphans = map[types.UID]bool{w.podUID(): true}
		at := metav1.NewTime(w.now)
		vm.DeletionTimestamp = &at
		vm.Finalizers = append(vm.Finalizers, metav1.FinalizerOrphanDependents)
	case "provisions-by":
		vm.Spec.Provisioning = &spec.Provisioning{Type: spec.ProvisioningUserDataRef, UserDataRef: &spec.ProvisioningSecret{Name: args[1]}}
	case "names-class":
		w.classes = true
		vm.Spec.VirtualMachineClassName = args[1]
	case "labels":
		vm.Labels = map[string]string{}
		for _, a := range args[1:] {
			key, value, _ := strings.Cut(a, "=")
			vm.Labels[key] = value
		}
		w.put(theVM, vm)
		return
	case "wants-nodes":
		key, value, _ := strings.Cut(args[1], "=")
		vm.Spec.NodeSelector = map[string]string{key: value}
	case "wants-to-be-with":
		a := affinityOf(vm)
		a.VirtualMachineAndPodAffinity = &spec.VirtualMachineAndPodAffinity{
			PreferredDuringSchedulingIgnoredDuringExecution: []spec.WeightedVirtualMachineAndPodAffinityTerm{{Weight: 1, Term: beside(args[1])}},
		}
	case "wants-to-be-apart-from":
		a := affinityOf(vm)
		a.VirtualMachineAndPodAntiAffinity = &spec.VirtualMachineAndPodAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{beside(args[1])}}
	case "sets-timeout":
		vm.Spec.VM.PowerdownTimeout = new(number(args[1]))
	case "forces-stop":
		vm.Annotations = map[string]string{names.AnnotationForceStop: "now"}
		w.put(theVM, vm)
		return
	case "wants-new-disks":
		w.wantNewDisks()
		return
	case "asks-for-reset":
		w.askForReset()
		return
	default:
		panic(args[0])
	}
	vm.Generation++
	w.put(theVM, vm)
}

func affinityOf(vm *spec.VirtualMachine) *spec.Affinity {
	if vm.Spec.Affinity == nil {
		vm.Spec.Affinity = &spec.Affinity{}
	}
	return vm.Spec.Affinity
}

// beside returns an affinity term for the same node: KEY=VALUE.
func beside(label string) corev1.PodAffinityTerm {
	key, value, _ := strings.Cut(label, "=")
	return corev1.PodAffinityTerm{LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{key: value}}, TopologyKey: corev1.LabelHostname}
}

func placed(pod *corev1.Pod) string {
	var out []string
	for _, key := range slices.Sorted(maps.Keys(pod.Spec.NodeSelector)) {
		out = append(out, "on nodes with "+key+"="+pod.Spec.NodeSelector[key])
	}
	of := func(t *corev1.PodAffinityTerm) string { return metav1.FormatLabelSelector(t.LabelSelector) }
	if a := pod.Spec.Affinity; a != nil {
		if p := a.PodAffinity; p != nil {
			for _, t := range p.PreferredDuringSchedulingIgnoredDuringExecution {
				out = append(out, "rather with "+of(&t.PodAffinityTerm))
			}
		}
		if p := a.PodAntiAffinity; p != nil {
			for _, t := range p.RequiredDuringSchedulingIgnoredDuringExecution {
				out = append(out, "not with "+of(&t))
			}
		}
	}
	if len(out) == 0 {
		return ""
	}
	return " " + strings.Join(out, ", ")
}
