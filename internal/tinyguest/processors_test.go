package tinyguest_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/vmop/sdk/internal/testbin"
	"github.com/vmop/sdk/internal/tinyguest"
)

func TestProcessors(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "tools")
	m := startGuest(t, testbin.TinyGuest(t), "", "-smp", "2",
		"-chardev", "socket,id=tools,path="+socket+",server=on,wait=off", "-mon", "chardev=tools,mode=control")
	m.ready(t)
	got := tinyguest.Processors(m.ctx, socket)
	for _, want := range []string{"VM status: running", "CPU#1", "RIP=", "dumping local APIC state for CPU 1", "pic1: "} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in:\n%s", want, got)
		}
	}
	if got := tinyguest.Processors(m.ctx, socket+"-of-nobody"); !strings.Contains(got, "no such file") {
		t.Error(got)
	}
}
