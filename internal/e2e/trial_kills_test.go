//go:build e2e

package e2e

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"path"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// qemus are the processes on the node that are a QEMU of the machine.
func qemus(t *testing.T) []string {
	t.Helper()
	var ids []string
	for _, file := range strings.Fields(onNode(t, "sh", "-c", listQEMUs+" || true")) {
		ids = append(ids, path.Base(path.Dir(file)))
	}
	return ids
}

// theQEMU waits for the one there is.
func theQEMU(t *testing.T) (id string) {
	t.Helper()
	eventually(t, "the machine has a QEMU on the node", func() error {
		ids := qemus(t)
		if len(ids) == 0 {
			return os.ErrNotExist
		}
		id = strings.Join(ids, " ")
		return nil
	})
	return id
}

const (
	listQEMUs = "grep -lz '^guest=tiny,' /proc/[0-9]*/cmdline 2>/dev/null"
	// watchQEMUs tells of all moments at which there are several, while a file exists.
	watchQEMUs = `while [ -e /run/vmop-trial ]; do q=$(` + listQEMUs + `); case $q in *cmdline*cmdline*) echo $q;; esac; sleep 0.2; done`
)

// neverTwo watches, until end is called or the test ends, that the node has no two QEMUs
// of the machine at a time.
func neverTwo(t *testing.T) (end func()) {
	t.Helper()
	onNode(t, "touch", "/run/vmop-trial")
	type watched struct {
		seen string
		err  error
	}
	out := make(chan watched, 1)
	go func() {
		seen, err := theNode.Run(context.Background(), "sh", "-c", watchQEMUs)
		out <- watched{seen, err}
	}()
	end = sync.OnceFunc(func() {
		select {
		case w := <-out:
			t.Errorf("nobody has watched to the end: %v\n%s", w.err, w.seen)
			return
		default:
		}
		onNode(t, "rm", "-f", "/run/vmop-trial")
		if w := <-out; w.err != nil || w.seen != "" {
			t.Errorf("two QEMUs of the machine at a time: %v\n%s", w.err, w.seen)
		}
	})
	t.Cleanup(end)
	return end
}

// kill ends processes of the node for whose end nothing was prepared.
func kill(t *testing.T, id string) {
	t.Helper()
	t.Logf("$ kill -9 %s # %s", id, strings.ReplaceAll(onNode(t, "cat", "/proc/"+id+"/cmdline"), "\x00", " "))
	onNode(t, "sh", "-c", "kill -9 "+id)
}

// A QEMU that is killed and a runner that is killed take the other with them, are told,
// and the machine runs again after a pause, with its disk.
func killedProcesses(t *testing.T) {
	mark(t, ready(t), "not killed")
	again := func(before string) {
		t.Helper()
		begin := time.Now()
		awaitOtherPod(t, before)
		marked(t, ready(t), "not killed")
		t.Logf("its guest answers after another %s", time.Since(begin).Round(time.Second))
	}
	before, qemu := podUID(t), theQEMU(t)
	kill(t, qemu)
	lastEnd(t, "qemu-failure", "qemu ended: signal: killed")
	awaitEvent(t, "QemuFailure", "the machine is started again at ")
	again(before)

	// Of a machine that has changed nobody counts failures together.
	patch(t, `{"vm":{"powerdownTimeout":61}}`)
	applied(t)
	before, qemu = podUID(t), theQEMU(t)
	runner := strings.TrimSpace(onNode(t, "sed", "-n", "s/^PPid:[[:space:]]*//p", "/proc/"+qemu+"/status"))
	kill(t, runner)
	lastEnd(t, "Error", "the runner ended with exit code 137")
	awaitEvent(t, "Error", "the machine is started again at ")
	if left := qemus(t); len(left) > 0 && left[0] == qemu {
		t.Error("QEMU has outlived its runner")
	}
	again(before)
}

// A pod that is deleted by force leaves the API server while its QEMU may still execute:
// the next one waits for that, and has the disk as it was.
func forceDeleted(t *testing.T) {
	mark(t, ready(t), "not forced")
	before, qemu := podUID(t), theQEMU(t)
	t.Log("$ kubectl delete pod tiny --force --grace-period=0")
	kubectl(t, "delete", "pod", "-n", namespace, "tiny", "--force", "--grace-period=0")
	awaitOtherPod(t, before)
	marked(t, ready(t), "not forced")
	if theQEMU(t) == qemu {
		t.Error("the QEMU of the pod that was deleted executes")
	}
}

// A panic of the guest ends its machine, is an event and counted, and the machine runs
// again.
func guestPanics(t *testing.T) {
	patch(t, `{"vm":{"powerdownTimeout":62}}`) // failures before this count no more
	applied(t)
	c := ready(t)
	mark(t, c, "panicked!!")
	before, counted := podUID(t), guestPanicsCounted(t)
	t.Log("guest$ crash")
	if err := c.Send("crash"); err != nil {
		t.Fatal(err)
	}
	lastEnd(t, "guest-panic", "the guest panicked")
	if got := show(t, "get", "vm", "tiny", "-o", "jsonpath={.status.guestPanics}"); got != "1" {
		t.Errorf("%q panics", got)
	}
	awaitEvent(t, "GuestPanicked", "the guest panicked")
	eventually(t, "the operator counts the panic", func() error {
		if now := guestPanicsCounted(t); now != counted+1 {
			return fmt.Errorf("%d, and %d before", now, counted)
		}
		return nil
	})
	awaitOtherPod(t, before)
	marked(t, ready(t), "panicked!!")
	if got := show(t, "get", "vm", "tiny", "-o", "jsonpath={.status.guestPanics}"); got != "" {
		t.Errorf("%q panics of a guest that was just started", got)
	}
}

// guestPanicsCounted is the operator's metric.
func guestPanicsCounted(t *testing.T) (n int) {
	t.Helper()
	address := kubectl(t, "get", "pods", "-n", "vmop-system", "--field-selector=status.phase=Running", "-l", "app.kubernetes.io/name=vmop-operator", "-o", "jsonpath={.items[0].status.podIP}")
	request, err := http.NewRequestWithContext(withPatience(t), http.MethodGet, "http://"+net.JoinHostPort(address, "8080")+"/metrics", nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	for lines := bufio.NewScanner(response.Body); lines.Scan(); {
		if value, is := strings.CutPrefix(lines.Text(), "vmop_guest_panics_total "); is {
			if n, err = strconv.Atoi(value); err != nil {
				t.Fatal(err)
			}
			return n
		}
	}
	t.Fatalf("%s: the operator has no count of panics", response.Status)
	return 0
}

// Whose memory limit is less than its guest and QEMU need, does not start, or is told to
// be killed by it, by that name, with the limit, the need and what to change.
func outOfMemory(t *testing.T, cli told) {
	mark(t, ready(t), "out of RAM")
	cli.run("stop", "tiny")
	apply(t, `
apiVersion: v1
kind: LimitRange
metadata: {namespace: machines, name: small}
spec:
  limits:
  - type: Container
    default: {memory: 160Mi}
`)
	removed := false
	remove := func() {
		if !removed {
			kubectl(t, "delete", "limitrange", "-n", namespace, "small")
		}
		removed = true
	}
	t.Cleanup(remove)
	patch(t, `{"vm":{"state":"Running"}}`)
	awaitMessage(t, "tiny", "PodReady", "MemoryLimitTooLow", "160Mi")

	patch(t, `{"resources":{"requests":{"memory":"64Mi"}}}`)
	const says = "its memory limit of 160Mi was used up, and it needs up to "
	lastEnd(t, "OOMKilled", says)
	awaitEvent(t, "OOMKilled", "; raise the default for memory of the namespace's LimitRange, or set spec.resources")
	awaitEvent(t, "MemoryLimitTooLow", "what uses more than its limit is killed")
	awaitMessage(t, "tiny", "Ready", "RestartDelayed", "OOMKilled: "+says)
	remove()
	patch(t, `{"resources":null}`)
	marked(t, ready(t), "out of RAM")
}

// A QEMU that does not answer is no machine that runs, and is one again when it answers. One that
// never does is ended by force.
func qemuHangs(t *testing.T, cli told) {
	c := ready(t)
	mark(t, c, "before it hangs")
	before, qemu := podUID(t), theQEMU(t)
	onNode(t, "sh", "-c", "kill -STOP "+qemu)
	t.Cleanup(func() { onNode(t, "sh", "-c", "kill -CONT "+qemu+" 2>/dev/null || true") })
	awaitMessage(t, "tiny", "Ready", "QEMUNotResponding", "QEMU has not answered for 30s")
	awaitField(t, "phase", "Degraded")
	t.Logf("$ kubectl get vm tiny\n%s", show(t, "get", "vm", "tiny"))
	onNode(t, "sh", "-c", "kill -CONT "+qemu)
	marked(t, ready(t), "before it hangs")
	if now := podUID(t); now != before {
		t.Errorf("the pod was %s and is %s", before, now)
	}

	onNode(t, "sh", "-c", "kill -STOP "+qemu)
	cli.run("stop", "tiny", "--force")
	awaitField(t, "phase", "Stopped")
	awaitField(t, "runnerEnd.cause", "host-forced")
	cli.run("start", "tiny")
	marked(t, ready(t), "before it hangs")
}
