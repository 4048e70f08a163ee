package runner

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/vmop/sdk/internal/testbin"
	"github.com/vmop/sdk/internal/tinyguest"
	"github.com/vmop/sdk/internal/together"
	"github.com/vmop/sdk/vmop/live"
	"github.com/vmop/sdk/vmop/qemucmd"
	"github.com/vmop/sdk/vmop/runnerconfig"
)

// patience bounds every wait for a guest: many times what an idle machine needs, also for
// firmware that checks signatures beside three other guests.
const patience = 10 * time.Minute

// runEnv makes the test binary a runner of the options that the variable's file
// holds, so that a test can kill it.
const runEnv = "VMOP_TEST_RUN"

func TestMain(m *testing.M) {
	if path := os.Getenv(runEnv); path != "" {
		os.Exit(runAsRunner(path))
	}
	if path := os.Getenv(exportEnv); path != "" {
		os.Exit(runAsExporter(path))
	}
	together.Tests()
	os.Exit(m.Run())
}

// process is what a runner in a process of its own needs.
type process struct {
	Config    runnerconfig.Config
	Host      qemucmd.Host
	Data      string
	Runtime   string
	StateFile string
	// SmallDisk is where the process mounts a file system of SmallSize bytes; none
	// if empty. It needs a mount namespace.
	SmallDisk string
	SmallSize int
}

func runAsRunner(path string) int {
	data, err := os.ReadFile(path)
	var p process
	if err == nil {
		err = json.Unmarshal(data, &p)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return ExitUsage
	}
	if p.SmallDisk != "" {
		if err := unix.Mount("small", p.SmallDisk, "tmpfs", 0, fmt.Sprint("size=", p.SmallSize)); err != nil {
			fmt.Fprintln(os.Stderr, "mount a small file system:", err)
			return ExitUsage
		}
	}
	e, err := New(Options{
		Config: p.Config, Host: p.Host, Directories: Directories{Data: p.Data, Runtime: p.Runtime},
		Reporter: Reporters{&LogReporter{Out: os.Stdout}, &StateFile{Path: p.StateFile}},
	})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return ExitUsage
	}
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, syscall.SIGTERM)
	go func() {
		for range signals {
			e.Stop()
		}
	}()
	outcome, err := e.Run(context.Background())
	fmt.Println(outcome, err)
	return outcome.ExitCode()
}

// testHost is this machine, found out without a probe: the tests of the engine
// do not depend on one.
func testHost(t testing.TB) qemucmd.Host {
	t.Helper()
	h := qemucmd.GenericHost()
	h.KVM = false
	for _, path := range []string{h.QEMU, h.SWTPM, h.Firmware[0].Code} {
		if _, err := os.Stat(path); err != nil {
			t.Fatalf("%v: install it with: make deps", err)
		}
	}
	return h
}

func testGuest(t testing.TB) tinyguest.Guest {
	t.Helper()
	g, err := tinyguest.Ensure(t.Context(), tinyguest.Options{CacheDir: os.Getenv("VMOP_CACHE")})
	if err != nil {
		t.Fatalf("%v: install what is missing with: make deps", err)
	}
	return g
}

// testConfig is a machine that boots the tiny guest with words on its command line.
func testConfig(t testing.TB, words ...string) runnerconfig.Config {
	g := testGuest(t)
	timeout := int64(120)
	c := runnerconfig.Config{Runner: runnerconfig.Runner{VM: runnerconfig.VM{
		Name: "test", Firmware: "bios", MaximumRAM: 128 << 20, Accelerator: "tcg", PowerdownTimeout: &timeout,
		KernelBoot: &runnerconfig.KernelBoot{
			Kernel: g.Kernel, Initrd: g.Initrd,
			Args: strings.Join(append([]string{tinyguest.CommandLine}, words...), " "),
		},
	}}}
	runnerconfig.Default(&c)
	return c
}

// testDirs are short, because a socket's path must be.
func testDirs(t testing.TB) Directories {
	t.Helper()
	dir, err := os.MkdirTemp("", "vmop")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	return Directories{Data: filepath.Join(dir, "data"), Runtime: filepath.Join(dir, "run")}
}

// running is an engine that runs in this process.
type running struct {
	*Engine
	log     *recorder
	done    chan struct{}
	outcome Outcome
	err     error
	cancel  context.CancelFunc
	given   int // configurations, beside the first
}

func start(t *testing.T, c runnerconfig.Config, d Directories, change ...func(*Options)) *running {
	t.Helper()
	log := &recorder{t: t}
	o := Options{Config: c, Host: testHost(t), Directories: d, Reporter: log, Version: "test"}
	for _, f := range change {
		f(&o)
	}
	e, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	r := &running{Engine: e, log: log, done: make(chan struct{}), cancel: cancel}
	go func() {
		defer close(r.done)
		r.outcome, r.err = e.Run(ctx)
	}()
	t.Cleanup(func() {
		cancel()
		r.wait(t)
		if t.Failed() {
			t.Logf("messages %q", log.messages)
		}
	})
	return r
}

func (r *running) wait(t *testing.T) (Outcome, error) {
	t.Helper()
	select {
	case <-r.done:
	case <-time.After(patience):
		t.Fatalf("the engine does not end; state %+v", r.State())
	}
	return r.outcome, r.err
}

// until waits for a state.
func (r *running) until(t *testing.T, what string, is func(State) bool) State {
	t.Helper()
	found := r.log.wait(func(s State) bool { return is(s) })
	select {
	case s := <-found:
		return s
	case <-r.done:
		select {
		case s := <-found:
			return s
		default:
		}
		t.Fatalf("the engine ended (%+v, %v) before %s", r.outcome, r.err, what)
	case <-time.After(patience):
		t.Fatalf("waited in vain for %s; state %+v", what, r.State())
	}
	panic("unreachable")
}

// console opens the console of a running machine and waits for the guest.
func (r *running) console(t *testing.T) *tinyguest.Console {
	t.Helper()
	s := r.until(t, "the guest executes", func(s State) bool { return s.Phase == PhaseBooting })
	conn, err := net.Dial("unix", s.Socket(qemucmd.SocketConsole))
	if err != nil {
		t.Fatal(err)
	}
	c := tinyguest.NewConsole(conn)
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the guest's console:\n%s", c.Transcript())
		}
		_ = c.Close()
	})
	if err := c.WaitReady(withPatience(t)); err != nil {
		t.Fatal(err)
	}
	return c
}

func withPatience(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	return ctx
}

func command(t *testing.T, c *tinyguest.Console, line string) string {
	t.Helper()
	out, err := c.Command(withPatience(t), line)
	if err != nil {
		t.Fatalf("%s: %v", line, err)
	}
	return out
}

// nothingLeft checks that a machine's end left no process, socket or runtime
// directory.
func nothingLeft(t *testing.T, d Directories) {
	t.Helper()
	if _, err := os.Stat(d.Runtime); !errors.Is(err, os.ErrNotExist) {
		entries, _ := os.ReadDir(d.Runtime)
		t.Errorf("the runtime directory is still there, with %v", entries)
	}
	holders, err := Holders(d.Data)
	if err != nil || len(holders) > 0 {
		t.Errorf("processes are left: %v, %v", holders, err)
	}
	f, err := Lock(d.Data)
	if err != nil {
		t.Errorf("the data directory is still locked: %v", err)
		return
	}
	if err := f.Close(); err != nil {
		t.Error(err)
	}
}

// recorder keeps what an engine reports.
type recorder struct {
	t testing.TB

	mu       sync.Mutex
	states   []State
	messages []string
	events   []live.Event
	waiting  []waiter
}

type waiter struct {
	is    func(State) bool
	found chan State
}

func (r *recorder) State(s State) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.states = append(r.states, s)
	r.waiting = slices.DeleteFunc(r.waiting, func(w waiter) bool {
		found := w.is(s)
		if found {
			w.found <- s
		}
		return found
	})
}

func (r *recorder) Message(m Message) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.messages = append(r.messages, m.Text)
	if m.Event != nil {
		r.events = append(r.events, *m.Event)
	}
}

func (r *recorder) wait(is func(State) bool) <-chan State {
	r.mu.Lock()
	defer r.mu.Unlock()
	w := waiter{is: is, found: make(chan State, 1)}
	for _, s := range r.states {
		if is(s) {
			w.found <- s
			return w.found
		}
	}
	r.waiting = append(r.waiting, w)
	return w.found
}

// forget drops what was reported, for a wait for what comes.
func (r *recorder) forget() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.states = nil
}

// forgetMessages drops the messages, in tests that last.
func (r *recorder) forgetMessages() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.messages = nil
}

func (r *recorder) said(text string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, m := range r.messages {
		if strings.Contains(m, text) {
			return true
		}
	}
	return false
}

// told waits for a message: it may come a little later than what else is seen of
// its cause.
func (r *running) told(t *testing.T, text string) {
	t.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for ctx := withPatience(t); !r.log.said(text); {
		select {
		case <-tick.C:
		case <-r.done:
			if !r.log.said(text) {
				t.Fatalf("the engine ended (%+v, %v) before it said %q", r.outcome, r.err, text)
			}
		case <-ctx.Done():
			t.Fatalf("waited in vain for %q; messages %q", text, r.log.messages)
		}
	}
}

// eventsOf are the reasons of the events of an action.
func (r *recorder) eventsOf(action string) []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var out []string
	for _, e := range r.events {
		if e.Action == action {
			out = append(out, e.Reason)
		}
	}
	return out
}

func (r *recorder) phases() []Phase {
	r.mu.Lock()
	defer r.mu.Unlock()
	var out []Phase
	for _, s := range r.states {
		if len(out) == 0 || out[len(out)-1] != s.Phase {
			out = append(out, s.Phase)
		}
	}
	return out
}

// separate is a runner in a process of its own.
type separate struct {
	cmd   *exec.Cmd
	state string
	done  chan error
}

func startProcess(t *testing.T, c runnerconfig.Config, d Directories, change ...func(*process, *exec.Cmd)) *separate {
	t.Helper()
	dir := filepath.Dir(d.Data)
	p := process{Config: c, Host: testHost(t), Data: d.Data, Runtime: d.Runtime, StateFile: filepath.Join(dir, "state.json")}
	path := filepath.Join(dir, "process.json")
	cmd := testbin.Self(context.Background(), t, runEnv+"="+path)
	for _, f := range change {
		f(&p, cmd)
	}
	data, err := json.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	cmd.Stdout, cmd.Stderr = os.Stderr, os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	s := &separate{cmd: cmd, state: p.StateFile, done: make(chan error, 1)}
	go func() { s.done <- cmd.Wait() }()
	return s
}

// guestWith is the tiny guest with a program of this module in its /bin.
func guestWith(t *testing.T, name, source string) tinyguest.Guest {
	t.Helper()
	dir := t.TempDir()
	build := exec.CommandContext(t.Context(), "go", "build", "-ldflags=-s -w", "-o", filepath.Join(dir, name), source)
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	program, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		t.Fatal(err)
	}
	guest, err := testGuest(t).WithFiles(dir, tinyguest.File{Name: "/bin/" + name, Mode: 0o755, Data: program})
	if err != nil {
		t.Fatal(err)
	}
	return guest
}
