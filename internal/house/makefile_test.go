package house

import (
	"os/exec"
	"strings"
	"testing"
)

// What make removes is what it has built: machines that make run has made stay.
func TestCleanKeepsMachines(t *testing.T) {
	cmd := exec.Command("make", "-n", "clean")
	cmd.Dir = "../.."
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	for _, word := range strings.Fields(string(out)) {
		if word = strings.TrimRight(word, "/"); word == ".cache" || strings.HasSuffix(word, "/.cache") || strings.Contains(word, "machines") {
			t.Errorf("make clean removes %s", word)
		}
	}
}
