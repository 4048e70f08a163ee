package limits_test

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/vmop/sdk/vmop/limits"
)

func TestCPULevels(t *testing.T) {
	const v2 = "kvm64,+cx16,+lahf-lm,+popcnt,+pni,+sse4.1,+sse4.2,+ssse3"
	const v3 = v2 + ",+abm,+avx,+avx2,+bmi1,+bmi2,+f16c,+fma,+movbe,+xsave,+xsaveopt"
	for model, want := range map[string]string{
		"x86-64-v2": v2, "x86-64-v2,+aes": v2 + ",+aes", "x86-64-v3": v3, "x86-64-v3,-abm,hv_time": v3 + ",-abm,hv_time",
		"x86-64-v4": v3 + ",+avx512f,+avx512bw,+avx512cd,+avx512dq,+avx512vl",
		"x86-64-v5": "x86-64-v5", "x86-64": "x86-64", "Nehalem,+aes": "Nehalem,+aes", "": "", "max,x86-64-v2": "max,x86-64-v2",
	} {
		if got := limits.QEMUCPUModel(model); got != want {
			t.Errorf("%s: %s, want %s", model, got, want)
		}
	}
}

// What QEMU is told is a model as it may be given, is told once, and says last what the
// manifest says.
func TestCPULevelsAreModels(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		model := rapid.SampledFrom([]string{limits.CPULevel2, limits.CPULevel3, limits.CPULevel4, "host", "Nehalem-v1"}).Draw(t, "level")
		more := rapid.StringMatching(`(,[+-]?[a-z0-9][a-z0-9._-]{0,8}){0,8}`).Draw(t, "features")
		if limits.CPUModel(model+more) != nil {
			t.Skip("too much")
		}
		got := limits.QEMUCPUModel(model + more)
		if err := limits.CPUModel(got); err != nil || limits.QEMUCPUModel(got) != got || !strings.HasSuffix(got, more) {
			t.Fatalf("%s: %s, %v", model+more, got, err)
		}
	})
}

// The level of some features is the highest that they have all of, whatever else there
// is and in which order.
func TestCPULevelOf(t *testing.T) {
	levels := []string{"", limits.CPULevel2, limits.CPULevel3, limits.CPULevel4}
	rapid.Check(t, func(t *rapid.T) {
		level := rapid.IntRange(0, 3).Draw(t, "level")
		features := rapid.SliceOfN(rapid.StringMatching(`zz[a-z]{1,4}`), 0, 5).Draw(t, "others")
		if level > 0 {
			all := strings.Split(limits.QEMUCPUModel(levels[level]), ",+")[1:]
			features = rapid.Permutation(append(features, all...)).Draw(t, "features")
			if got := limits.CPULevelOf(slices.DeleteFunc(slices.Clone(features), func(f string) bool { return f == all[len(all)-1] })); got != levels[level-1] {
				t.Fatalf("without %s of %s: %s", all[len(all)-1], levels[level], got)
			}
		}
		if got := limits.CPULevelOf(features); got != levels[level] {
			t.Fatalf("%q: %s, want %s", features, got, levels[level])
		}
	})
	if got := limits.CPULevelOf([]string{"cx16", "lahf_lm", "popcnt", "pni", "sse4.1", "sse4.2", "ssse3"}); got != limits.CPULevel2 {
		t.Errorf("by libvirt's names: %q", got)
	}
}
