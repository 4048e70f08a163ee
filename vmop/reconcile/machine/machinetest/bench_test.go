package machinetest

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/vmop/sdk/vmop/names"
	"github.com/vmop/sdk/vmop/reconcile/internal/fixture"
	"github.com/vmop/sdk/vmop/reconcile/machine"
	"github.com/vmop/sdk/vmop/spec"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// BenchmarkDecide is a look at a machine of which nothing has changed.
func BenchmarkDecide(b *testing.B) {
	for _, name := range []string{"hello", "basic-vm.yaml"} {
		b.Run(name, func(b *testing.B) {
			s := converged(b, name)
			b.ReportAllocs()
			for b.Loop() {
				machine.Decide(s)
			}
		})
	}
}

// A look at a machine of which nothing has changed is what an operator does most.
func TestDecideAllocatesLittle(t *testing.T) {
	for name, most := range map[string]float64{"hello": 110, "basic-vm.yaml": 150} {
		s := converged(t, name)
		if n := testing.AllocsPerRun(10, func() { machine.Decide(s) }); n > most {
			t.Errorf("%s: %v allocations, want at most %v", name, n, most)
		}
	}
	// However long its documents are.
	s := convergedWith(t, 256<<10)
	if n := testing.AllocsPerRun(10, func() { machine.Decide(s) }); n > 135 {
		t.Errorf("with user data: %v allocations", n)
	}
}

// converged is what is seen of a machine that runs as it should.
func converged(t testing.TB, name string) machine.Snapshot {
	w := newWorld(func(string, int) int { return 0 }, machine.Decide)
	if name != "hello" {
		vm := get[*spec.VirtualMachine](w, theVM)
		vm.Spec = fixture.Load(t, name).Spec
		vm.Spec.VM.State = spec.StateRunning
		w.put(theVM, vm)
		w.put("claim/"+names.ImageRepositoryClaim, &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: names.ImageRepositoryClaim}})
	}
	return w.converge(t)
}

// converge lets everybody work until the machine runs as it should, and is what an operator
// sees of it then.
func (w *world) converge(t testing.TB) machine.Snapshot {
	t.Helper()
	for range 10 {
		w.work()
		w.pass(time.Second)
	}
	w.observeAll()
	s, _ := w.snapshot()
	s.Authors = machine.AuthorsOf(managedBy(t, &s.VM.Status, rightful))
	s.ConfigMap = machine.CondenseConfigMap(s.ConfigMap)
	for i := range s.Pods {
		s.Pods[i] = *machine.CondensePod(&s.Pods[i])
	}
	for i := range s.Claims {
		s.Claims[i] = *machine.CondenseClaim(&s.Claims[i])
	}
	for i := range s.DisplaySecrets {
		s.DisplaySecrets[i] = *machine.CondenseSecret(&s.DisplaySecrets[i])
	}
	if p := machine.Decide(s); len(p.Actions)+len(p.Statuses)+len(p.Events) > 0 || s.VM.Status.Phase != spec.PhaseRunning {
		t.Fatalf("the machine has not converged: %+v", p)
	}
	return s
}

// userDataOfSize is user data of about so many bytes, as people write it: files, each with
// some lines of text, and whether packages are updated.
func userDataOfSize(size int, updates bool) *runtime.RawExtension {
	const file = `{"path":"/etc/app/%04d.conf","permissions":"0644","content":"%s"}`
	var files []string
	for n := 0; n < size; n += 1024 {
		files = append(files, fmt.Sprintf(file, len(files), strings.Repeat(`key = \"value\"\n`, 60)))
	}
	return &runtime.RawExtension{Raw: fmt.Appendf(nil, `{"package_update":%t,"write_files":[%s]}`, updates, strings.Join(files, ","))}
}

// convergedWith is what is seen of a machine with so much user data that runs as it should.
func convergedWith(t testing.TB, size int) machine.Snapshot {
	w := newWorld(func(string, int) int { return 0 }, machine.Decide)
	if size > 0 {
		vm := get[*spec.VirtualMachine](w, theVM)
		vm.Spec.CloudInit = &spec.CloudInit{UserData: userDataOfSize(size, true)}
		w.put(theVM, vm)
	}
	return w.converge(t)
}

// BenchmarkDecideUserData is a look at a machine with user data in its manifest: of one of
// which nothing has changed, and of one whose user data has.
func BenchmarkDecideUserData(b *testing.B) {
	for _, size := range []int{0, 16 << 10, 256 << 10} {
		s := convergedWith(b, size)
		b.Run(fmt.Sprintf("%dKiB/unchanged", size>>10), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				machine.Decide(s)
			}
		})
		changed := s
		changed.VM = s.VM.DeepCopy()
		changed.VM.Generation++
		changed.VM.Spec.CloudInit = &spec.CloudInit{UserData: userDataOfSize(size, false)}
		if p := machine.Decide(changed); len(p.Actions) == 0 {
			b.Fatalf("nothing has changed: %+v", p)
		}
		b.Run(fmt.Sprintf("%dKiB/changed", size>>10), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				machine.Decide(changed)
			}
		})
	}
}
