package debpackage

import (
	"bytes"
	"compress/gzip"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/vmop/sdk/internal/testbin"
)

// files are what the package must have, and nothing else. Units are none of them:
// vmop-cli enable makes one for a machine.
var files = []string{
	"./usr/bin/vmop-cli",
	"./usr/bin/vmop-runner",
	"./usr/share/bash-completion/completions/vmop-cli",
	"./usr/share/doc/vmop/changelog.gz",
	"./usr/share/doc/vmop/copyright",
	"./usr/share/fish/vendor_completions.d/vmop-cli.fish",
	"./usr/share/man/man1/vmop-cli.1.gz",
	"./usr/share/zsh/vendor-completions/_vmop-cli",
}

// needs are the packages that a machine may need on its host, by the field of the
// package that must name them.
var needs = map[string][]string{
	"Depends":    {"qemu-system-x86"},
	"Recommends": {"openssh-client", "ovmf", "qemu-system-modules-spice", "qemu-utils", "swtpm", "virtiofsd"},
	"Suggests":   {"qemu-block-extra"},
}

// onlyHere are packages that the package names and make deps does not install: an
// alternative on older releases, which the others need anyway, and a viewer for people.
var onlyHere = []string{"qemu-system-common", "virt-viewer"}

// TestDebianPackage makes the package of programs that are built already, as scripts/deb does
// with those of make build.
func TestDebianPackage(t *testing.T) {
	for _, program := range []string{"dpkg", "dpkg-deb", "make"} {
		testbin.Find(t, program)
	}
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	bin := filepath.Join(dir, "bin")
	run(t, root, "go", "build", "-o", bin+"/vmop-cli", "./frontends/cli")
	run(t, root, "go", "build", "-o", bin+"/vmop-runner", "./frontends/runner")
	// make install installs it, and the package leaves it out.
	if err := os.WriteFile(bin+"/vm-operator", nil, 0o755); err != nil {
		t.Fatal(err)
	}
	run(t, root, "scripts/deb", "v1.2.3-4-gabcdef", dir, bin)
	found, err := filepath.Glob(dir + "/vmop_*.deb")
	if err != nil || len(found) != 1 {
		t.Fatalf("packages %q, %v", found, err)
	}
	deb := found[0]
	if base := filepath.Base(deb); !strings.HasPrefix(base, "vmop_1.2.3+4.gabcdef_") {
		t.Errorf("the package is called %s", base)
	}
	content(t, deb)
	fields(t, root, deb)

	installed := filepath.Join(dir, "root")
	run(t, root, "dpkg-deb", "-x", deb, installed)
	version := run(t, root, installed+"/usr/bin/vmop-cli", "version")
	if !strings.Contains(version, "vmop-cli") || !strings.Contains(version, "QEMU") {
		t.Errorf("vmop-cli version: %s", version)
	}
	// Another release is no fault of the package: the manual is of this program.
	manual := unpack(t, installed+"/usr/share/man/man1/vmop-cli.1.gz")
	if got := run(t, root, installed+"/usr/bin/vmop-cli", "man"); got != manual {
		t.Error("the manual page is not that of the program")
	}
	if changes := unpack(t, installed+"/usr/share/doc/vmop/changelog.gz"); !strings.HasPrefix(changes, "# Changelog") {
		t.Errorf("the changelog begins with %.40q", changes)
	}
	for shell, file := range map[string]string{
		"bash": "bash-completion/completions/vmop-cli", "zsh": "zsh/vendor-completions/_vmop-cli", "fish": "fish/vendor_completions.d/vmop-cli.fish",
	} {
		got, err := os.ReadFile(installed + "/usr/share/" + file)
		if err != nil {
			t.Error(err)
		}
		if want := run(t, root, installed+"/usr/bin/vmop-cli", "completion", shell); string(got) != want {
			t.Errorf("the completion of %s is not the program's", shell)
		}
	}
}

// line is an entry as dpkg-deb --contents lists it: mode, owner, size, date, time, name.
var line = regexp.MustCompile(`^(\S+) (\S+) +\d+ \S+ \S+ (\S+)`)

// content compares the package's files, their owner and who may do what.
func content(t *testing.T, deb string) {
	t.Helper()
	var got []string
	for entry := range strings.Lines(run(t, ".", "dpkg-deb", "--contents", deb)) {
		m := line.FindStringSubmatch(entry)
		if m == nil {
			t.Fatalf("%q", entry)
		}
		mode, owner, name := m[1], m[2], m[3]
		want := "-rw-r--r--"
		switch {
		case strings.HasSuffix(name, "/"):
			want = "drwxr-xr-x"
		case strings.HasPrefix(name, "./usr/bin/"):
			want = "-rwxr-xr-x"
		}
		if mode != want || owner != "root/root" {
			t.Errorf("%s is %s of %s, want %s of root/root", name, mode, owner, want)
		}
		if !strings.HasSuffix(name, "/") {
			got = append(got, name)
		}
	}
	slices.Sort(got)
	if diff := cmp.Diff(files, got); diff != "" {
		t.Errorf("files (-want +got)\n%s", diff)
	}
}

// name is how a package is called at the beginning of an alternative.
var name = regexp.MustCompile(`^[a-z0-9][a-z0-9+.-]+`)

// fields compares what the package depends on with what machines need and what make
// deps installs for them.
func fields(t *testing.T, root, deb string) {
	t.Helper()
	deps, err := os.ReadFile(filepath.Join(root, "scripts", "deps"))
	if err != nil {
		t.Fatal(err)
	}
	installs := regexp.MustCompile(`[a-z0-9][a-z0-9+.-]+`).FindAllString(string(deps), -1)
	for field, want := range needs {
		var all []string
		for relation := range strings.SplitSeq(run(t, root, "dpkg-deb", "--field", deb, field), ",") {
			for alternative := range strings.SplitSeq(relation, "|") {
				all = append(all, name.FindString(strings.TrimSpace(alternative)))
			}
		}
		for _, p := range want {
			if !slices.Contains(all, p) {
				t.Errorf("%s does not name %s, which machines need: %q", field, p, all)
			}
		}
		for _, p := range all {
			if !slices.Contains(installs, p) && !slices.Contains(onlyHere, p) {
				t.Errorf("%s names %s, which make deps does not install: nothing is tried with it", field, p)
			}
		}
	}
	if v := strings.TrimSpace(run(t, root, "dpkg-deb", "--field", deb, "Version")); v != "1.2.3+4.gabcdef" {
		t.Errorf("version %s", v)
	}
}

// run runs a program and returns what it prints.
func run(t *testing.T, dir, program string, args ...string) string {
	t.Helper()
	c := exec.CommandContext(t.Context(), program, args...)
	if strings.HasPrefix(program, "scripts/") {
		c.Path = filepath.Join(dir, program)
	}
	c.Dir = dir
	var complaints bytes.Buffer
	c.Stderr = &complaints
	out, err := c.Output()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s%s", program, strings.Join(args, " "), err, out, &complaints)
	}
	return string(out)
}

func unpack(t *testing.T, path string) string {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
