package imagebuild

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/vmop/sdk/internal/imagebases"
	"github.com/vmop/sdk/vmop/reconcile/objects"
)

// root is the folder of the module.
var root = filepath.Join("..", "..")

// programs are what there are images of, and the folders of frontends/ that they
// are in.
var programs = map[string]string{"vm-operator": "operator", "vmop-runner": "runner"}

// recipe reads the instructions of a recipe: a line each, without comments.
func recipe(t *testing.T, folder, distribution string) []string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(root, "deploy", "images", folder+"."+distribution+".Dockerfile"))
	if err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	for line := range strings.Lines(string(data)) {
		if !strings.HasPrefix(line, "#") {
			text.WriteString(line)
		}
	}
	var instructions []string
	for line := range strings.Lines(strings.ReplaceAll(text.String(), "\\\n", "")) {
		if line = strings.Join(strings.Fields(line), " "); line != "" {
			instructions = append(instructions, line)
		}
	}
	return instructions
}

// arguments are the defaults of a recipe's arguments.
func arguments(instructions []string) map[string]string {
	values := map[string]string{}
	for _, i := range instructions {
		if arg, is := strings.CutPrefix(i, "ARG "); is {
			if name, value, has := strings.Cut(arg, "="); has {
				values[name] = value
			}
		}
	}
	return values
}

// shared is what recipes have in common whatever the distribution is: all but the
// images that they stand on, and what has to do with packages.
func shared(instructions []string) []string {
	var out []string
	for _, i := range instructions {
		name, rest, _ := strings.Cut(i, " ")
		switch name {
		case "ARG", "FROM":
		case "RUN":
			steps := slices.DeleteFunc(strings.Split(rest, " && "), func(step string) bool {
				return strings.HasPrefix(step, "apk ") || strings.Contains(step, "apt-get ") || strings.Contains(step, "/etc/apt/") || strings.Contains(step, "/var/lib/apt/") || strings.Contains(step, "/etc/shadow")
			})
			if len(steps) > 0 {
				out = append(out, "RUN "+strings.Join(steps, " && "))
			}
		default:
			if !strings.HasPrefix(rest, "--from=ovmf ") {
				out = append(out, i)
			}
		}
	}
	return out
}

// The recipes for Alpine cannot be built where there is no Alpine. They differ
// from those for Debian, which are built, only where the distributions do.
func TestAlpineIsBuiltLikeDebian(t *testing.T) {
	for _, folder := range programs {
		if diff := cmp.Diff(shared(recipe(t, folder, "debian")), shared(recipe(t, folder, "alpine"))); diff != "" {
			t.Errorf("%s: -debian +alpine\n%s", folder, diff)
		}
	}
}

// The programs are built in the same way.
func TestTheOperatorIsBuiltLikeTheRunner(t *testing.T) {
	for _, distribution := range []string{"debian", "alpine"} {
		stages := map[string][]string{}
		for program, folder := range programs {
			stage := recipe(t, folder, distribution)
			stage = stage[:slices.IndexFunc(stage, func(i string) bool { return strings.HasPrefix(i, "RUN CGO_ENABLED=0 ") })+1]
			replace := strings.NewReplacer(program, "PROGRAM", "frontends/"+folder, "frontends/PROGRAM")
			for _, i := range stage {
				stages[folder] = append(stages[folder], replace.Replace(i))
			}
		}
		if diff := cmp.Diff(stages["operator"], stages["runner"]); diff != "" || len(stages["runner"]) < 8 {
			t.Errorf("%s: -operator +runner\n%s%q", distribution, diff, stages["runner"])
		}
	}
}

// What is said in several places is the same everywhere: the version of Go, what
// is copied, who runs what.
func TestRecipesAgreeWithTheModule(t *testing.T) {
	module, err := os.ReadFile(filepath.Join(root, "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	ignore, err := os.ReadFile(filepath.Join(root, ".dockerignore"))
	if err != nil {
		t.Fatal(err)
	}
	known, err := imagebases.Read(filepath.Join(root, "deploy", "images", "bases"))
	if err != nil {
		t.Fatal(err)
	}
	var allowed []string
	for line := range strings.Lines(string(ignore)) {
		if name, is := strings.CutPrefix(strings.TrimSpace(line), "!"); is {
			allowed = append(allowed, name)
		}
	}
	for program, folder := range programs {
		for _, distribution := range []string{"debian", "alpine"} {
			instructions := recipe(t, folder, distribution)
			args := arguments(instructions)
			if !strings.Contains(string(module), "\ngo "+args["GO"]+".") && !strings.Contains(string(module), "\ngo "+args["GO"]+"\n") {
				t.Errorf("%s.%s: Go %s is not that of go.mod", folder, distribution, args["GO"])
			}
			if distribution == "debian" && (args["DEBIAN"] != Release || GoImage != fmt.Sprintf("docker.io/library/golang:%s-%s", args["GO"], args["DEBIAN"])) {
				t.Errorf("%s: stands on %v, and there are %s and %s", folder, args, GoImage, DebianImage(Release))
			}
			// Each image that it stands on is one whose digest is known.
			var stages []string
			for _, i := range instructions {
				words := strings.Fields(i)
				if words[0] != "FROM" {
					continue
				}
				from := os.Expand(words[1], func(name string) string { return args[name] })
				if !slices.Contains(stages, from) && !slices.ContainsFunc(known, func(b imagebases.Base) bool { return b.Name == from }) {
					t.Errorf("%s.%s: stands on %s, which deploy/images/bases does not name", folder, distribution, from)
				}
				stages = append(stages, words[len(words)-1])
			}
			var copied []string
			for _, i := range instructions {
				if words := strings.Fields(i); words[0] == "COPY" && !strings.HasPrefix(words[1], "--") {
					copied = append(copied, words[1:len(words)-1]...)
				}
				if body, is := strings.CutPrefix(i, "RUN "); is {
					if out, err := exec.Command("sh", "-n", "-c", body).CombinedOutput(); err != nil {
						t.Errorf("%s.%s: %s: %v\n%s", folder, distribution, i, err, out)
					}
				}
			}
			if !slices.Equal(copied, allowed) {
				t.Errorf("%s.%s: copies %q, and .dockerignore lets %q through", folder, distribution, copied, allowed)
			}
			end := []string{fmt.Sprintf("USER %d:%[1]d", objects.RunnerUser), fmt.Sprintf("ENTRYPOINT [%q]", "/usr/local/bin/"+program)}
			if got := instructions[len(instructions)-2:]; !slices.Equal(got, end) {
				t.Errorf("%s.%s: ends with %q, want %q", folder, distribution, got, end)
			}
		}
	}
}
