package sourcemutants

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// root of the module, seen from this package.
const root = "../.."

// mutant is one fault.
type mutant struct {
	fault string
	// file is where old, which is there once, becomes new. Paths are relative to the
	// root of the module.
	file     string
	old, new string
	// run is a test of the package, which must fail and say what the regular expression
	// says matches: of two messages, draws decide which is first.
	run  string
	pkg  string
	says string
}

const (
	machines   = "vmop/reconcile/machine"
	worlds     = "vmop/reconcile/machine/machinetest"
	reconciled = "vmop/reconcile/objects"
	operator   = "frontends/operator/controller"
)

var mutants = []mutant{
	{
		fault: "nobody looks whether another pod uses the disks",
		file:  machines + "/decide_pod.go", old: "case d.disksInUse(), d.delayed(), d.unreported(), d.exporting():", new: "case d.delayed(), d.unreported(), d.exporting():",
		pkg: worlds, run: "^TestPromises$", says: "a disk has one machine",
	},
	{
		fault: "what is noted of documents counts for a ConfigMap that somebody has changed",
		file:  machines + "/decide_objects.go", old: "note == old.Annotations[names.AnnotationDocuments] && unchanged(wanted, old)", new: "wanted != nil && note == old.Annotations[names.AnnotationDocuments]",
		pkg: worlds, run: "^TestPromisesOfDocuments$", says: "what is noted of documents decides the same",
	},
	{
		fault: "what is noted of documents counts for all else",
		file:  machines + "/decide_objects.go", old: "note == old.Annotations[names.AnnotationDocuments] && unchanged(wanted, old)", new: "note != \"\" && unchanged(wanted, old)",
		pkg: worlds, run: "^TestPromisesOfDocuments$", says: "what is noted of documents decides the same",
	},
	{
		fault: "documents are noted with a configuration that counts as unmade",
		file:  machines + "/decide_objects.go", old: "	note, _ := d.notedDocuments(wanted.Annotations[names.AnnotationApplied])\n	d.unmade = true\n", new: "	d.unmade = true\n	note, _ := d.notedDocuments(wanted.Annotations[names.AnnotationApplied])\n",
		pkg: worlds, run: "^TestPromisesOfDocuments$", says: "what is noted of documents decides the same",
	},
	{
		fault: "who may report is told with what else changes",
		file:  machines + "/decide_status.go", old: "	if !d.mayReport() {\n		return false\n	}\n", new: "",
		pkg: worlds, run: "^TestPromisesOfNames$", says: "the runner of the active pod may report",
	},
	{
		fault: "a start that is under way does not tell who may report",
		file:  machines + "/decide_status.go", old: "d.underWay() && d.mayReport()", new: "d.underWay()",
		pkg: worlds, run: "^TestPromisesOfNames$", says: "the runner of the active pod may report",
	},
	{
		fault: "the active pod is left out where there are many",
		file:  machines + "/decide_status.go", old: "out[last] = out[i]", new: "_ = out[i]",
		pkg: machines, run: "^TestTheActivePodIsInTheStatus$", says: "the active pod is in no status",
	},
	{
		fault: "pods that there are not stay in the status",
		file:  machines + "/decide_status.go", old: "overwritingAll(d.shown.VirtualMachinePods, next.VirtualMachinePods)", new: "next.VirtualMachinePods",
		pkg: worlds, run: "^TestPromisesOfNames$", says: "the world comes to rest",
	},
	{
		fault: "a pod's end is told before its runner's last report is there",
		file:  machines + "/decide_status.go", old: "d.plan.Passing = d.lastReportDue() && ", new: "d.plan.Passing = false && ",
		pkg: worlds, run: "^TestAShortStopIsToldOnce$", says: "the pod is gone: passing: false",
	},
	{
		fault: "the runner of a pod that is not active reports",
		file:  reconciled + "/podroles.go", old: "return p.Active\n", new: "return true\n",
		pkg: reconciled, run: "^TestOneRunnerMayReport$", says: "is in the status, and may report: true",
	},
	{
		fault: "the runner of the machine's name reports beside the active one",
		file:  reconciled + "/podroles.go", old: "case p.Active && p.Name != pod:", new: "case false:",
		pkg: reconciled, run: "^TestOneRunnerMayReport$", says: "may report",
	},
	{
		fault: "a disk is taken from the guest of a pod that is not the active one",
		file:  machines + "/pods.go", old: "uid != \"\" && pod.UID == uid && !finished(pod)", new: "false",
		pkg: machines, run: "^TestThePodSomethingWasBegunWith$", says: "it goes on beside the active one",
	},
	{
		fault: "the caches are said to lack what they have",
		file:  operator + "/stores.go", old: "return err == nil && !found", new: "return err == nil && (found || !found)",
		pkg: operator, run: "^TestNothingIsLackingThatThereIs$", says: "is said to be lacking",
	},
	{
		fault: "an index is said to lack what it has",
		file:  operator + "/stores.go", old: "return err == nil && len(keys) == 0", new: "return err == nil && len(keys) >= 0",
		pkg: operator, run: "^TestNothingIsLackingThatThereIs$", says: "is said to be lacking",
	},
	{
		fault: "a failed machine is started again at once",
		file:  machines + "/lastend.go", old: "if e == nil || e.Failures == 0 ||", new: "if e == nil || e.Failures >= 0 ||",
		pkg: worlds, run: "^TestPromises$", says: "a failed machine is started again after a delay",
	},
	{
		fault: "claims are deleted that another machine mentions",
		file:  machines + "/deletedisks.go", old: "if slices.Contains(d.s.Mentioned, pvc.Name) {", new: "if false {",
		pkg: worlds, run: "^TestPromisesOfDeletion$", says: "only what is its own goes with a machine that wants it",
	},
	{
		fault: "claims are deleted that were made for another machine",
		file:  machines + "/deletedisks.go", old: "pvc.Annotations[names.AnnotationMadeFor] != string(uid)", new: "pvc.Annotations[names.AnnotationMadeFor] == \"\"",
		pkg: worlds, run: "^TestPromisesOfDeletion$", says: "only what is its own goes with a machine that wants it",
	},
	{
		fault: "claims are deleted that a pod uses",
		file:  machines + "/deletedisks.go", old: "!finished(pod) && slices.Contains(objects.PodClaims(pod), pvc.Name)", new: "false && slices.Contains(objects.PodClaims(pod), pvc.Name)",
		pkg: worlds, run: "^TestPromisesOfDeletion$", says: "only what is its own goes with a machine that wants it",
	},
	{
		fault: "a disk that is gone is replaced by an empty one",
		file:  machines + "/neededclaim.go", old: "return c.found == nil && c.former != nil && !c.renewed", new: "return false",
		pkg: worlds, run: "^TestPromisesOfClaims$", says: "a disk is not replaced without a word",
	},
	{
		fault: "guests get processors before their pods do",
		file:  machines + "/resize.go", old: "want.CPUs > had.CPUs && !d.pod.hasRoom(c, corev1.ResourceCPU, need)", new: "false",
		pkg: worlds, run: "^TestPromisesOfResizing$", says: "a guest uses what its pod has",
	},
	{
		fault: "claims shrink",
		file:  machines + "/decide_claims.go", old: "		case order > 0:", new: "		case order != 0:",
		pkg: worlds, run: "^TestPromises$", says: "no claim shrinks",
	},
	{
		fault: "what was found of other pods is not looked at",
		file:  operator + "/starts.go", old: "t.others = append(t.others, look.Pods[i].Object)", new: "_ = i",
		pkg: operator, run: "^TestPromisesOfAnOperator$", says: "a disk has one machine",
	},
	{
		fault: "pods that were just made are not looked at",
		file:  operator + "/starts.go", old: "t.others = append(t.others, m.Object)", new: "_ = m",
		pkg: operator, run: "^TestPromisesOfAnOperator$", says: "a disk has one machine",
	},
	{
		fault: "pods of others that wait for a claim are not looked at",
		file:  operator + "/starts.go", old: "s.of(pod.Namespace).Awaits(string(pod.UID), claims)", new: "_ = claims",
		pkg: operator, run: "^TestNewClaimThatOthersAwait$", says: "a disk has one machine",
	},
	{
		fault: "a refusal is not tried again",
		file:  operator + "/engine.go", old: "return ctrl.Result{RequeueAfter: time.Millisecond}, nil", new: "return ctrl.Result{}, nil",
		pkg: operator, run: "^TestPromisesOfAnOperator$", says: "what is wanted is reached|a run policy is followed: .* and the status says <nil>",
	},
	{
		fault: "nobody is told that a class has come",
		file:  operator + "/classes.go", old: "if f.cache.List(ctx, &named, client.MatchingFields{byClass: o.GetName()}) == nil {", new: "if false {",
		pkg: operator, run: "^TestPromisesOfAnOperator$", says: "what is wanted is reached",
	},
	{
		fault: "a missing Secret is taken for one that is there",
		file:  operator + "/observe.go", old: "return machinekind.SecretMissing", new: "return machinekind.SecretThere",
		pkg: operator, run: "^TestPromisesOfAnOperator$", says: "a machine is not started without its Secret",
	},
	{
		fault: "a missing class keeps no machine from starting",
		file:  machines + "/class.go", old: "func (d *decision) unfit() bool { return d.unclassed || d.oversized }", new: "func (d *decision) unfit() bool { return d.oversized }",
		pkg: operator, run: "^TestPromisesOfAnOperator$", says: "a machine is not started without its class",
	},
	{
		fault: "labels reach new pods only",
		file:  machines + "/decide_pod.go", old: "labels, annotations := objects.PassOn(d.s.VM, &d.s.Settings.Allowed).Missing(d.pod.pod)", new: "var labels map[string]*string; _, annotations := objects.PassOn(d.s.VM, &d.s.Settings.Allowed).Missing(d.pod.pod)",
		pkg: operator, run: "^TestPromisesOfAnOperator$", says: "what a machine is labelled with its pod is, too",
	},
	{
		fault: "a guest that powers itself off is started again",
		file:  machines + "/power.go", old: "case f.cause == runnerconfig.CauseGuestShutdown && policy != spec.RunPolicyAlwaysOn:", new: "case f.cause == runnerconfig.CauseGuestShutdown && byHand:",
		pkg: operator, run: "^TestPromisesOfAnOperator$", says: "an end is kept",
	},
	{
		fault: "changes that nobody need approve wait",
		file:  machines + "/renewal.go", old: "if !d.vm.Spec.RestartsAutomatically() || len(d.awaiting) <= d.unplugged {", new: "if true {",
		pkg: operator, run: "^TestPromisesOfAnOperator$", says: "changes that nobody need approve do not wait",
	},
	{
		fault: "what waits already is not asked what becomes of a proposal",
		file:  machines + "/foresee.go", old: "changes.Proposed(before, proposed, d.awaiting,", new: "changes.Between(before, proposed,",
		pkg: worlds, run: "^TestForeseenIsWhatHappens$", says: "and the disk comes: false|nothing waits for a restart as",
	},
	{
		fault: "a change of a class restarts a machine that has a plugged disk",
		file:  machines + "/class.go", old: "changes.Between(old, &own, changes.Options{Pod: d.inPod()})", new: "changes.Between(old, &own, changes.Options{})",
		pkg: worlds, run: "^TestAPluggedDiskIsNoReasonToRestart$", says: "it is restarted",
	},
	{
		fault: "more disks come than a machine has places for",
		file:  "vmop/reconcile/changes/devices.go", old: "case places >= limits.MaxAttached:", new: "case false:",
		pkg: worlds, run: "^TestDisksThatWait$", says: "all_places_are_taken",
	},
	{
		fault: "a pool gives away machines whose console is in use",
		file:  "vmop/reconcile/pool/assign.go", old: "if spec.ConditionIsTrue(vm.Status.Conditions, spec.ConditionConsoleConnected) {", new: "if false {",
		pkg: "vmop/reconcile/pool", run: "^Test", says: "TestAssign/not_while_a_console_is_connected",
	},
	{
		fault: "a machine is given to the next user before its time is over",
		file:  "vmop/reconcile/pool/assign.go", old: "} else if r.Now.Before(end) {", new: "} else if false {",
		pkg: "vmop/reconcile/pool", run: "^TestUsersNeverShareAMachine$", says: "and belongs to",
	},
	{
		fault: "two starts of one claim go on at once",
		file:  "vmop/reconcile/observation/starts.go", old: "is && t.machine != w.Machine && !t.over(now) {\n\t\t\treturn Wait, nil", new: "is && t.over(now) {\n\t\t\treturn Wait, nil",
		pkg: "vmop/reconcile/observation", run: "^TestAtMostOnePodWritesToAClaim$", says: "gets a pod beside",
	},
	{
		fault: "an image that continues in another file is taken",
		file:  "vmop/imageinspect/qcow2_header.go", old: "case h.backingOffset != 0 || h.backingSize != 0:", new: "case false:",
		pkg: "vmop/imageinspect", run: "^TestProbeFormat", says: "backing",
	},
	{
		fault: "a comma in a text begins an option",
		file:  "vmop/qemucmd/value.go", old: "i := strings.IndexByte(s, ',')", new: "i := strings.IndexByte(s, 0)",
		pkg: "vmop/qemucmd", run: "^Test(TextIsLiteral|RenderedOptionsReadBack)$", says: "QEMU would read",
	},
	{
		fault: "a disk of the running machine grows that is another one by now",
		file:  "vmop/live/disks.go", old: " || started[i].Where() != w.Where() {", new: " {",
		pkg: "vmop/live", run: "^TestDisksGrow$", says: "of a disk that is another one|it is told",
	},
}

func (m *mutant) source(t *testing.T) (before, after []byte) {
	before, err := os.ReadFile(filepath.Join(root, m.file))
	if err != nil {
		t.Fatal(err)
	}
	if n := bytes.Count(before, []byte(m.old)); n != 1 {
		t.Fatalf("%s has %d times %q, want it once", m.file, n, m.old)
	}
	return before, bytes.Replace(before, []byte(m.old), []byte(m.new), 1)
}

// Each mutant fits the source, and its package has the test that notices it, for more than
// that it fails.
func TestMutantsFit(t *testing.T) {
	for _, m := range mutants {
		t.Run(m.fault, func(t *testing.T) {
			m.source(t)
			if !m.tested(t) {
				t.Errorf("%s has no test %s", m.pkg, m.run)
			}
			if strings.Contains(m.run, m.says) {
				t.Errorf("any failure of %s will do, as it has to say %q", m.run, m.says)
			}
		})
	}
}

var testDeclaration = regexp.MustCompile(`(?m)^func (Test\w+)\(`)

// tested reports whether the mutant's package has a test that is run.
func (m *mutant) tested(t *testing.T) bool {
	files, err := filepath.Glob(filepath.Join(root, m.pkg, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	run := regexp.MustCompile(m.run)
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, found := range testDeclaration.FindAllSubmatch(text, -1) {
			if run.Match(found[1]) {
				return true
			}
		}
	}
	return false
}

// Each mutant is noticed. It takes some minutes.
func TestMutantsAreNoticed(t *testing.T) {
	if os.Getenv("VMOP_MUTANTS") == "" {
		t.Skip("make mutants runs it")
	}
	for _, m := range mutants {
		t.Run(m.fault, func(t *testing.T) {
			_, after := m.source(t)
			dir := t.TempDir()
			changed, overlay := filepath.Join(dir, "changed.go"), filepath.Join(dir, "overlay.json")
			file, err := filepath.Abs(filepath.Join(root, m.file))
			if err != nil {
				t.Fatal(err)
			}
			list, err := json.Marshal(map[string]any{"Replace": map[string]string{file: changed}})
			if err != nil {
				t.Fatal(err)
			}
			for path, data := range map[string][]byte{changed: after, overlay: list} {
				if err := os.WriteFile(path, data, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			cmd := exec.CommandContext(t.Context(), "go", "test", "-overlay", overlay, "-count=1", "-timeout=30m", "-run", m.run, "./"+m.pkg)
			cmd.Dir = root
			// Some faults show rarely, which is no reason to fall now and then; what is found need
			// not be small, nor be tried again.
			cmd.Env = append(os.Environ(), "RAPID_SEED=1", "RAPID_CHECKS=4000", "RAPID_SHRINKTIME=5s", "RAPID_NOFAILFILE=true")
			out, err := cmd.CombinedOutput()
			text := string(out)
			switch {
			case err == nil:
				t.Error("nobody notices")
			case strings.Contains(text, "[build failed]"):
				t.Errorf("it is no program: %s", text)
			case !strings.Contains(text, "--- FAIL") || !regexp.MustCompile(m.says).MatchString(text):
				t.Errorf("it is noticed as %.2000s; want %q", text, m.says)
			}
		})
	}
}
