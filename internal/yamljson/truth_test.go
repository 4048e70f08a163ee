package yamljson_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	yaml12 "go.yaml.in/yaml/v3"
	"sigs.k8s.io/yaml"

	"github.com/vmop/sdk/internal/yamljson"
	"github.com/vmop/sdk/vmop/operatorconfig"
	"github.com/vmop/sdk/vmop/runnerconfig"
	"github.com/vmop/sdk/vmop/spec"
)

// spellings are the truth values of YAML 1.1, and what is almost one, in all mixtures of
// capital and small letters.
func spellings() []string {
	var out []string
	for _, word := range []string{"true", "false", "yes", "no", "on", "off", "y", "n", "t", "f", "ye", "ja", "offf"} {
		for mask := range 1 << len(word) {
			b := []byte(word)
			for i := range b {
				if mask>>i&1 == 1 {
					b[i] -= 'a' - 'A'
				}
			}
			out = append(out, string(b))
		}
	}
	return out
}

// The table is kubectl's, and agrees with YAML 1.2 on what that takes for a truth value.
func TestTruthIsKubectls(t *testing.T) {
	truths := 0
	for _, word := range spellings() {
		value, is := yamljson.Truth(word)
		theirs, err := yaml.YAMLToJSON([]byte(word))
		if err != nil {
			t.Fatal(err)
		}
		want := fmt.Sprintf("%q", word)
		if is {
			want = fmt.Sprint(value)
			truths++
		}
		if got := strings.TrimSpace(string(theirs)); got != want {
			t.Errorf("%s is %s to kubectl, and %s here", word, got, want)
		}
		var core any
		if err := yaml12.Unmarshal([]byte(word), &core); err != nil {
			t.Fatal(err)
		}
		if b, isCore := core.(bool); isCore && (!is || b != value) {
			t.Errorf("%s is %v by YAML 1.2, and here %v, %v", word, b, value, is)
		}
	}
	if truths != 22 {
		t.Errorf("%d words are truth values", truths)
	}
}

// Whoever reads files of people means the same by a word, or refuses it: a manifest as
// kubectl reads it, and the configurations of operator and runner as VM-Operator does.
func TestReadersAgreeOnTruthValues(t *testing.T) {
	for _, word := range spellings() {
		value, is := yamljson.Truth(word)
		objects, err := spec.Load("vm.yaml", []byte("apiVersion: vmoperator.jdrupes.org/v1\nkind: VirtualMachine\nmetadata: {name: web}\n"+
			"spec: {guestShutdownStops: "+word+", vm: {maximumCpus: 1, maximumRam: 256Mi}}\n"), spec.Options{})
		if (err == nil) != is || is && objects[0].VirtualMachine.Spec.GuestShutdownStops != value {
			t.Errorf("%s in a manifest: %v", word, err)
		}

		value, is = yamljson.TruthOfSnakeYAML(word)
		runner, _, err := runnerconfig.Parse([]byte("/Runner:\n  vm: {name: a, useTpm: " + word + "}\n"))
		if (err == nil) != is || runner.Runner.VM.UseTPM != value {
			t.Errorf("%s in the runner's configuration: %v, %v", word, runner.Runner.VM.UseTPM, err)
		}
		operator, _, err := operatorconfig.Parse("config.yaml", []byte("/Operator:\n  privileged: "+word+"\n"))
		if (err == nil) != is || operator.Settings.Privileged != value {
			t.Errorf("%s in the operator's configuration: %v, %v", word, operator.Settings.Privileged, err)
		}
	}
}

// What is written as a text is one to every reader of it.
func TestWrittenTextsAreNoTruthValues(t *testing.T) {
	for _, word := range append(spellings(), "null", "Null", "nuLL") {
		written, err := yamljson.FromJSON(fmt.Appendf(nil, `{"text":%q}`, word))
		if err != nil {
			t.Fatal(err)
		}
		var by11, by12 map[string]any
		if err := yaml.Unmarshal(written, &by11); err != nil {
			t.Fatal(err)
		}
		if err := yaml12.Unmarshal(written, &by12); err != nil {
			t.Fatal(err)
		}
		if by11["text"] != word || by12["text"] != word {
			t.Errorf("%s is %v by YAML 1.1, and %v by 1.2", written, by11["text"], by12["text"])
		}
		plain := slices.Contains([]string{"ja", "ye", "t", "f", "offf"}, strings.ToLower(word))
		if quoted := strings.Contains(string(written), `"`); quoted == plain {
			t.Errorf("%s is in quotes: %v", written, quoted)
		}
	}
}
