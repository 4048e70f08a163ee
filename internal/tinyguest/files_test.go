package tinyguest_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/vmop/sdk/internal/testbin"
	"github.com/vmop/sdk/internal/tinyguest"
)

// sayHello prints six characters of its second argument and waits to be killed.
const sayHello = `
.globl _start
_start:
	mov 24(%rsp), %rsi
	mov $1, %eax
	mov $1, %edi
	movb $10, 6(%rsi)
	mov $7, %edx
	syscall
	mov $34, %eax
	syscall
`

func TestAddedFilesAndPrograms(t *testing.T) {
	dir := t.TempDir()
	source := filepath.Join(dir, "hello.s")
	if err := os.WriteFile(source, []byte(sayHello), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.CommandContext(t.Context(), testbin.Find(t, "gcc"), "-static", "-nostdlib", "-o", filepath.Join(dir, "hello"), source).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	program, err := os.ReadFile(filepath.Join(dir, "hello"))
	if err != nil {
		t.Fatal(err)
	}
	guest, err := testbin.TinyGuest(t).WithFiles(dir,
		tinyguest.File{Name: "/opt/test/hello", Mode: 0o755, Data: program},
		tinyguest.File{Name: "/opt/text", Mode: 0o644, Data: []byte("text\n")})
	if err != nil {
		t.Fatal(err)
	}
	m := startGuest(t, guest, "")
	m.ready(t)
	m.answer(t, "cat /opt/text", "text")
	out, err := m.Command(m.ctx, "exec /opt/test/hello first second-argument")
	if err != nil {
		t.Fatal(err)
	}
	said := strings.Fields(out)
	if !slices.Contains(said, "second") {
		m.expect(t, "second\n")
		// The program wrote behind the prompt: ask for another one.
		if err := m.Send(""); err != nil {
			t.Fatal(err)
		}
		m.expect(t, "\n> ")
	}
	m.answer(t, "kill "+said[slices.Index(said, "process")+1], "")
	m.refuse(t, "kill 1", "error: 1: invalid argument")
	m.refuse(t, "exec", "error: exec: invalid argument")

	for _, name := range []string{"", "/", "relative", "/../up", "/a//b", "/a/"} {
		if _, err := guest.WithFiles(dir, tinyguest.File{Name: name}); err == nil {
			t.Errorf("took a file named %q", name)
		}
	}
}
