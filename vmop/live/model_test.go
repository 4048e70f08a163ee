package live_test

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/vmop/sdk/vmop/conditions"
	"github.com/vmop/sdk/vmop/live"
	"github.com/vmop/sdk/vmop/runnerconfig"
)

const (
	mib   = 1 << 20
	ram   = 512 * mib
	slots = 4
)

// manner is how a part of the model answers.
type manner int

const (
	prompt manner = iota
	late          // does it after the reply, when time passes
	idle          // says yes and does nothing
	refuse        // says no
)

// world is a model of QEMU with a guest.
type world struct {
	now      time.Time
	cpus     []string // ids by slot; the boot processor is at 0
	balloon  int64
	asked    int64 // what the balloon was asked for last; 0 is nothing
	drives   []drive
	state    string
	resets   int
	secrets  map[string]string // by protocol, the digest of the password that is set
	expiries map[string]string // by protocol, the time, and the password that was set then
	free     int64
	full     bool      // the machine is paused for a full disk
	ends     bool      // a reset ends the machine
	firmware time.Time // until then the firmware may reset the machine again

	plug, unplug, inflate, tray, change, password, power, action manner // the last three are prompt or refuse

	// unanswered is how many of the next reset actions are set without an answer.
	unanswered int
	unsure     bool // whether the last one was

	gen   int // of the configuration
	later []func()
	steps []string
	conts int
}

type drive struct {
	open, locked bool
	medium       string
}

func (w *world) observe() live.Observed {
	o := live.Observed{RunState: w.state, Resets: w.resets, Balloon: &w.balloon}
	for i := len(w.cpus) - 1; i >= 0; i-- { // QEMU lists the last one first
		s := live.CPUSlot{Driver: "x-cpu", Props: map[string]int64{"core-id": int64(i)}}
		if i == 0 {
			s.QOMPath = "/machine/unattached/device[0]"
		} else if w.cpus[i] != "" {
			s.QOMPath = "/machine/peripheral/" + w.cpus[i]
		}
		o.CPUs = append(o.CPUs, s)
	}
	for i, d := range w.drives {
		o.Drives = append(o.Drives, live.Drive{ID: fmt.Sprint("cd", i), TrayOpen: d.open, Locked: d.locked, Medium: d.medium})
	}
	if w.state == "io-error" {
		o.IOError = &live.IOError{Device: "disk0", File: "/disk", Reason: "no space", NoSpace: w.full, Free: w.free}
	}
	balloon := w.balloon
	o.Balloon = &balloon
	return o
}

// act does something as its manner is, and returns the reply.
func (w *world) act(m manner, do func()) string {
	switch m {
	case prompt:
		do()
	case late:
		w.later = append(w.later, do)
	case refuse:
		return "refused by the model"
	}
	return ""
}

// execute does a step and returns the reply. It fails the test where a step must
// never be taken.
func (w *world) execute(t *rapid.T, s live.Step) string {
	text := fmt.Sprintf("%T%+v at %v, configuration %d, reset %d", s, s, w.now.Unix(), w.gen, w.resets)
	if slices.Contains(w.steps, text) {
		t.Fatalf("repeated without a pause: %s", text)
	}
	w.steps = append(w.steps, text)
	driveOf := func(id string) *drive {
		var n int
		if _, err := fmt.Sscanf(id, "cd%d", &n); err != nil || n >= len(w.drives) {
			t.Fatalf("%+v: there is no drive %s", s, id)
		}
		return &w.drives[n]
	}
	switch s := s.(type) {
	case live.PlugCPU:
		slot := s.Props["core-id"]
		if w.cpus[slot] != "" || slices.Contains(w.cpus, s.ID) {
			t.Fatalf("%+v: the slot or the id is taken: %v", s, w.cpus)
		}
		return w.act(w.plug, func() {
			if !slices.Contains(w.cpus, s.ID) && w.cpus[slot] == "" {
				w.cpus[slot] = s.ID
			}
		})
	case live.UnplugCPU:
		if !slices.Contains(w.cpus[1:], s.ID) {
			t.Fatalf("%+v: CPUs are %v", s, w.cpus)
		}
		return w.act(w.unplug, func() {
			if i := slices.Index(w.cpus, s.ID); i > 0 {
				w.cpus[i] = ""
			}
		})
	case live.SetBalloon:
		if s.Bytes <= 0 || s.Bytes > ram {
			t.Fatalf("%+v", s)
		}
		if w.inflate != refuse {
			w.asked = s.Bytes
		}
		return w.act(w.inflate, func() { w.balloon = s.Bytes })
	case live.OpenTray:
		d := driveOf(s.ID)
		m := w.tray
		if !d.locked && m == idle {
			m = prompt
		}
		return w.act(m, func() { d.open, d.locked = true, false })
	case live.ChangeMedium:
		d := driveOf(s.ID)
		if d.locked && !d.open {
			return "locked"
		}
		return w.act(w.change, func() { *d = drive{medium: s.File} })
	case live.RemoveMedium:
		d := driveOf(s.ID)
		if !d.open {
			t.Fatalf("%+v with a closed tray", s)
		}
		return w.act(w.change, func() { d.medium = "" })
	case live.SetDisplayPassword:
		return w.act(w.password, func() { w.secrets[s.Protocol] = s.Digest })
	case live.ExpireDisplayPassword:
		w.expiries[s.Protocol] = s.Time + " for " + s.For
		return ""
	case live.Reset:
		if w.ends {
			t.Fatal("a reset that was asked for ends the machine")
		}
		return w.act(w.power, func() {
			w.resets++
			w.firmware = w.now.Add(20 * time.Second)
		})
	case live.SetResetAction:
		if s.Ends == w.ends && !w.unsure {
			t.Fatalf("%+v: it is so", s)
		}
		if s.Ends && w.now.Before(w.firmware) {
			t.Fatal("the firmware's own reset would end the machine")
		}
		problem := w.act(w.action, func() { w.ends, w.unsure = s.Ends, false })
		if w.unanswered > 0 && problem == "" {
			w.unanswered--
			w.unsure = true
			return "context deadline exceeded"
		}
		return problem
	case live.Cont:
		if w.state == "running" {
			t.Fatal("a running machine is continued")
		}
		w.conts++
		w.state = "running"
		if w.full && w.free < mib {
			w.state = "io-error"
		}
		return ""
	case live.Stop:
		w.state = "paused"
		return ""
	}
	t.Fatalf("an unknown step %T", s)
	return ""
}

// machine is a model with the engine that drives it.
type machine struct {
	world
	config  *runnerconfig.Config
	started *runnerconfig.Config
	display live.DisplaySecret
	request live.Power
	memory  live.Memory
	// emulated machines have no KVM.
	emulated bool
}

func config(cpus int, current int64, counter int64, media ...string) *runnerconfig.Config {
	c := &runnerconfig.Config{Runner: runnerconfig.Runner{ResetCounter: &counter, VM: runnerconfig.VM{
		Name: "vm", MaximumCPUs: slots, CurrentCPUs: cpus, MaximumRAM: ram, CurrentRAM: runnerconfig.Bytes(current),
		Display: &runnerconfig.Display{SPICE: &runnerconfig.SPICE{}, VNC: &runnerconfig.VNC{}},
	}}}
	for _, m := range media {
		c.Runner.VM.Drives = append(c.Runner.VM.Drives, runnerconfig.Drive{Type: runnerconfig.DriveCD, File: m})
	}
	runnerconfig.Default(c)
	return c
}

func newMachine(c *runnerconfig.Config) *machine {
	m := &machine{config: c, started: c, memory: live.Start(c), display: live.DisplaySecret{Password: "d0"}}
	m.world = world{now: time.Unix(1_800_000_000, 0), cpus: make([]string, slots), balloon: ram, state: "prelaunch", free: 1 << 30, secrets: map[string]string{}, expiries: map[string]string{}}
	m.cpus[0] = "boot"
	for _, d := range c.Runner.VM.Drives {
		m.drives = append(m.drives, drive{medium: d.File})
	}
	return m
}

func (m *machine) input() live.Input {
	return live.Input{
		Config: m.config, Generation: m.gen, Machine: live.Machine{Started: m.started, RAM: ram, Ticketing: true, KVM: !m.emulated},
		Display: m.display, Power: m.request, Observed: m.observe(), Memory: m.memory, Now: m.now,
	}
}

// decide decides, and checks what holds for each decision.
func (m *machine) decide(t *rapid.T) live.Decision {
	in := m.input()
	before := fmt.Sprintf("%+v %+v", in, *in.Config)
	d := live.Decide(in)
	if after := fmt.Sprintf("%+v %+v", in, *in.Config); after != before {
		t.Fatalf("the input was changed:\n%s\n%s", before, after)
	}
	if again := live.Decide(in); !reflect.DeepEqual(d, again) {
		t.Fatalf("two answers to one question:\n%+v\n%+v", d, again)
	}
	if len(d.Conditions) != 7 {
		t.Fatalf("%d conditions", len(d.Conditions))
	}
	if !d.Wake.IsZero() && !d.Wake.After(m.now) {
		t.Fatalf("wake %v is not after %v", d.Wake, m.now)
	}
	return d
}

// round is one observation with what follows.
func (m *machine) round(t *rapid.T) live.Decision {
	d := m.decide(t)
	m.memory = d.Memory
	for _, s := range d.Steps {
		if _, unplug := s.(live.UnplugCPU); unplug && m.emulated {
			t.Fatalf("software emulation ends with %+v", s)
		}
		problem := m.execute(t, s)
		if m.memory = m.memory.Result(s, problem); problem == "context deadline exceeded" {
			m.memory = m.memory.Unsure(s)
		}
	}
	return d
}

// present counts the processors.
func (w *world) present() int {
	n := 0
	for _, id := range w.cpus {
		if id != "" {
			n++
		}
	}
	return n
}

// react lets the guest do one of the things that it has put off.
func (m *machine) react() bool {
	if len(m.later) == 0 {
		return false
	}
	do := m.later[0]
	m.later = m.later[1:]
	do()
	return true
}

// maxRounds is far more than the attempts of all parts together.
const maxRounds = 300

// settle lets time pass until nothing is under way. Whoever is late acts at a
// drawn moment.
func (m *machine) settle(t *rapid.T) live.Decision {
	for range maxRounds {
		d := m.round(t)
		switch {
		case len(d.Steps) > 0:
		case len(m.later) > 0 && (d.Wake.IsZero() || rapid.Bool().Draw(t, "the guest is first")):
			m.react()
		case !d.Wake.IsZero():
			m.now = d.Wake
		default:
			return d
		}
	}
	t.Fatalf("does not settle; the last steps: %s", strings.Join(m.steps[max(0, len(m.steps)-20):], "\n"))
	return live.Decision{}
}

// settled checks a machine in which nothing is under way: each part is as wanted,
// or a condition says why not.
func (m *machine) settled(t *rapid.T, d live.Decision) {
	got := map[string]live.Condition{}
	for _, c := range d.Conditions {
		got[c.Type] = c
		if len(c.Message) > conditions.Line {
			t.Fatalf("no line: %s", c.Message)
		}
		if c.Reason == live.ReasonAdjusting || c.Reason == "" || c.Status == live.False && c.Type != live.RestartRequired && c.Message == "" {
			t.Fatalf("nothing is under way, but %+v", c)
		}
	}
	vm := m.config.Runner.VM
	present := m.present()
	parts := map[string]bool{
		// What waits for the pod is not reached, and is not asked of the guest.
		live.CPUsAdjusted: present == vm.CurrentCPUs && vm.PendingCPUs <= present,
		live.MemoryAdjusted: m.balloon == live.BalloonTarget(m.config, ram) && int64(vm.CurrentRAM) <= ram && (m.asked == 0 || m.asked == m.balloon) &&
			int64(vm.PendingRAM) <= m.balloon,
		live.ResetDone:      m.memory.ResetCounter == *m.config.Runner.ResetCounter,
		live.GuestExecuting: m.state == "running",
	}
	media := len(vm.Drives) <= len(m.drives)
	for i, w := range vm.Drives {
		media = media && m.drives[i].medium == w.File
	}
	parts[live.MediaChanged] = media
	set := true
	for _, p := range live.DisplayProtocols(m.started) {
		expiry := m.expiries[p] == m.display.Expiry+" for "+m.display.Password
		if m.display.Expiry == "" || m.display.Expiry == "never" {
			expiry = m.expiries[p] == "" || strings.HasPrefix(m.expiries[p], "never")
		}
		set = set && m.secrets[p] == m.display.Password && expiry
	}
	parts[live.DisplayPasswordSet] = set
	// A reset by the guest ends the machine if and only if it shall, or QEMU was
	// told in vain.
	if wanted := m.config.Runner.GuestResetEnds; m.ends != wanted {
		if m.action != refuse {
			t.Fatalf("a reset ends the machine: %v, want %v", m.ends, wanted)
		}
		if wanted && !strings.Contains(got[live.RestartRequired].Message, "refused by the model") {
			t.Fatalf("nobody says that a reset does not end the machine: %+v", got[live.RestartRequired])
		}
	}
	if m.config.Runner.GuestResetEnds && got[live.RestartRequired].Status != live.True {
		t.Fatalf("changes wait: %+v", got[live.RestartRequired])
	}
	for kind, reached := range parts {
		if reached != (got[kind].Status == live.True) {
			t.Fatalf("reached is %v, but %+v; %+v", reached, got[kind], m.world)
		}
	}
	// What is left until the next start is said so, in both places.
	waits := m.emulated && present > max(vm.CurrentCPUs, 1)
	if waits != (got[live.CPUsAdjusted].Reason == live.ReasonChangesWait) || waits != strings.Contains(got[live.RestartRequired].Message, "vm.currentCpus") {
		t.Fatalf("CPUs wait for the next start: %v, but %+v and %+v", waits, got[live.CPUsAdjusted], got[live.RestartRequired])
	}
	memory := m.memory
	if d := m.decide(t); len(d.Steps) > 0 || !reflect.DeepEqual(d.Memory, memory) {
		t.Fatalf("not silent: %+v", d)
	}
}

// drawPending has more wanted than what a pod has been resized for, or not.
func drawPending(t *rapid.T, c *runnerconfig.Config) {
	vm := &c.Runner.VM
	vm.PendingCPUs, vm.PendingRAM = 0, 0
	if rapid.Bool().Draw(t, "CPUs wait for the pod") {
		vm.PendingCPUs = vm.CurrentCPUs + 1
	}
	if vm.CurrentRAM > 0 && rapid.Bool().Draw(t, "memory waits for the pod") {
		vm.PendingRAM = min(vm.CurrentRAM, ram) + mib
	}
}

// A machine whose parts each answer in their own way: those that can be reached
// are, also beside others that are stuck, and within a bounded number of steps.
func TestConvergesOrSaysWhyNot(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := newMachine(config(1, 0, 7, "/a", ""))
		m.display.Expiry = ""
		m.emulated = rapid.Bool().Draw(t, "emulated")
		of := rapid.SampledFrom([]manner{prompt, late, idle, refuse})
		m.settle(t) // started
		if m.state != "running" {
			t.Fatalf("a machine that needs nothing was not started: %s", m.state)
		}
		for range rapid.IntRange(1, 4).Draw(t, "changes") {
			m.plug, m.unplug, m.inflate = of.Draw(t, "plug"), of.Draw(t, "unplug"), of.Draw(t, "balloon")
			m.tray, m.change = of.Draw(t, "tray"), of.Draw(t, "medium")
			or := rapid.SampledFrom([]manner{prompt, refuse})
			m.password, m.power, m.action = or.Draw(t, "password"), or.Draw(t, "reset"), or.Draw(t, "reset action")
			m.unanswered = rapid.IntRange(0, 2).Draw(t, "unanswered")
			for i := range m.drives {
				m.drives[i].locked = !m.drives[i].open && rapid.Bool().Draw(t, "locked")
			}
			m.gen++
			media := rapid.SliceOfN(rapid.SampledFrom([]string{"/a", "/b", ""}), 2, 3)
			m.config = config(rapid.IntRange(1, slots+2).Draw(t, "CPUs"), mib*rapid.Int64Range(0, 600).Draw(t, "MiB"),
				rapid.Int64Range(0, 9).Draw(t, "counter"), media.Draw(t, "media")...)
			m.config.Runner.GuestResetEnds = rapid.Bool().Draw(t, "reset ends")
			drawPending(t, m.config)
			m.display = live.DisplaySecret{Password: rapid.SampledFrom([]string{"d0", "d1"}).Draw(t, "password"), Expiry: rapid.SampledFrom([]string{"", "+30", "1800000000", "never"}).Draw(t, "expiry")}
			steps := len(m.steps)
			d := m.settle(t)
			if n := len(m.steps) - steps; n > 5*(2*slots+1+2*3+4+2) {
				t.Fatalf("%d steps: %s", n, strings.Join(m.steps[steps:], "\n"))
			}
			m.settled(t, d)
		}
	})
}

// What a healthy guest is asked for, happens, whatever the others of the parts do.
func TestStuckPartsHoldNothingBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := newMachine(config(2, 0, 0, "/a"))
		m.settle(t)
		bad := rapid.SampledFrom([]manner{idle, refuse})
		well := rapid.IntRange(0, 4).Draw(t, "well")
		for i, p := range []*manner{&m.plug, &m.inflate, &m.change, &m.password, &m.power} {
			switch {
			case i == well:
			case i >= 3:
				*p = refuse
			default:
				*p = bad.Draw(t, "manner")
			}
		}
		m.gen++
		m.config = config(3, 256*mib, 1, "/b")
		m.display.Password = "d1"
		m.settle(t)
		reached := []bool{m.cpus[2] != "", m.balloon == 256*mib, m.drives[0].medium == "/b", m.secrets[live.SPICE] == "d1" && m.secrets[live.VNC] == "d1", m.resets == 1}
		if !reached[well] {
			t.Fatalf("part %d is not as wanted: %+v", well, m.world)
		}
	})
}

// Any sequence of what users, guests and hosts do, with the engine's memory lost
// at any time; and then peace.
func TestAnySequence(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := newMachine(config(2, 128*mib, 3, "/a", "/b"))
		m.emulated = rapid.Bool().Draw(t, "emulated")
		t.Repeat(map[string]func(*rapid.T){
			"decide": func(t *rapid.T) { m.round(t) },
			"time":   func(t *rapid.T) { m.now = m.now.Add(time.Duration(rapid.IntRange(1, 200).Draw(t, "s")) * time.Second) },
			"guest":  func(t *rapid.T) { m.react() },
			"configure": func(t *rapid.T) {
				m.gen++
				m.config = config(rapid.IntRange(1, 6).Draw(t, "CPUs"), mib*rapid.Int64Range(0, 512).Draw(t, "MiB"), rapid.Int64Range(0, 5).Draw(t, "counter"),
					rapid.SliceOfN(rapid.SampledFrom([]string{"/a", "/b", "/c", ""}), 2, 2).Draw(t, "media")...)
				m.config.Runner.GuestResetEnds = rapid.Bool().Draw(t, "reset ends")
				drawPending(t, m.config)
			},
			"manners": func(t *rapid.T) {
				of := rapid.SampledFrom([]manner{prompt, late, idle, refuse})
				m.plug, m.unplug, m.inflate, m.tray, m.change = of.Draw(t, "a"), of.Draw(t, "b"), of.Draw(t, "c"), of.Draw(t, "d"), of.Draw(t, "e")
			},
			"no answers":   func(t *rapid.T) { m.unanswered = rapid.IntRange(0, 2).Draw(t, "unanswered") },
			"guest ejects": func(t *rapid.T) { m.drives[0].open, m.drives[0].locked = true, false },
			"guest locks":  func(t *rapid.T) { m.drives[1].locked = true },
			"guest reboots": func(t *rapid.T) {
				if !m.ends {
					m.resets++
					m.firmware = m.now.Add(20 * time.Second)
				}
			},
			"password": func(t *rapid.T) { m.display.Password += "x" },
			"power": func(t *rapid.T) {
				m.request = live.Power{Number: m.request.Number + 1, Pause: rapid.Bool().Draw(t, "pause")}
			},
			"disk full": func(t *rapid.T) {
				if m.state == "running" {
					m.state, m.full, m.free, m.now = "io-error", true, 0, m.now.Add(time.Second)
				}
			},
			"space": func(t *rapid.T) { m.free, m.full = 1<<30, m.state == "io-error" },
			"crash": func(t *rapid.T) {
				// Another engine has another QEMU, which was asked for nothing yet. The
				// action cannot be asked for.
				m.memory, m.request, m.asked, m.ends, m.unsure = live.Start(m.config), live.Power{}, 0, false, false
				m.now = m.now.Add(time.Second)
			},
		})
		// Peace: everybody does as asked, and a resumed machine runs.
		m.plug, m.unplug, m.inflate, m.tray, m.change = prompt, prompt, prompt, prompt, prompt
		m.full, m.free = m.state == "io-error", 1<<40
		m.gen++
		m.request = live.Power{Number: max(m.request.Number, m.memory.Power) + 1}
		d := m.settle(t)
		m.settled(t, d)
	})
}

// Another generation of the manifest, and nothing else, changes no decision, and
// does not have tried again what was given up.
func TestGenerationAlone(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := newMachine(config(1, 0, 0, "/a"))
		of := rapid.SampledFrom([]manner{prompt, idle, refuse})
		m.settle(t)
		m.plug, m.inflate, m.tray, m.change = of.Draw(t, "plug"), of.Draw(t, "balloon"), of.Draw(t, "tray"), of.Draw(t, "medium")
		m.gen++
		m.config = config(rapid.IntRange(1, slots+1).Draw(t, "CPUs"), 0, rapid.Int64Range(0, 1).Draw(t, "counter"), "/b")
		m.settle(t)
		for range 3 {
			next := *m.config
			next.Runner.Generation += rapid.Int64Range(0, 2).Draw(t, "more")
			if next.Runner.Generation != m.config.Runner.Generation {
				next.Runner.GuestResetEnds = rapid.Bool().Draw(t, "reset ends")
				drawPending(t, &next)
			}
			if live.GenerationAlone(m.config, &next) != (next.Runner.Generation != m.config.Runner.Generation) {
				t.Fatalf("%d and %d", m.config.Runner.Generation, next.Runner.Generation)
			}
			m.config = &next
			m.now = m.now.Add(time.Duration(rapid.IntRange(0, 1000).Draw(t, "seconds")) * time.Second)
			ends := next.Runner.GuestResetEnds
			m.steps = nil
			if m.settle(t); m.ends != ends || slices.ContainsFunc(m.steps, func(s string) bool { return !strings.HasPrefix(s, "live.SetResetAction") }) {
				t.Fatalf("a reset ends the machine: %v, %s", m.ends, m.steps)
			}
			if d := m.decide(t); len(d.Steps) > 0 || !d.Wake.IsZero() || (d.Conditions[6].Status == live.True) != ends {
				t.Fatalf("%+v", d)
			}
		}
		other := *m.config
		other.Runner.Generation++
		other.Runner.VM.CurrentCPUs++
		if live.GenerationAlone(m.config, &other) {
			t.Fatal("another number of CPUs is no news")
		}
	})
}

// A guest's own eject is not undone, whatever else is changed.
func TestEjectIsNotUndone(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := newMachine(config(1, 0, 0, "/a", "/b"))
		m.settle(t)
		m.gen++
		m.config = config(1, 0, 0, "/c", "/b") // the last one changed is not put in again either
		m.settle(t)
		if m.drives[0] != (drive{medium: "/c"}) {
			t.Fatalf("%+v", m.drives)
		}
		m.drives[0].open = true
		m.drives[1].open = true
		for range 3 {
			m.gen++
			m.config = config(rapid.IntRange(1, 4).Draw(t, "CPUs"), 0, 0, "/c", "/b")
			m.settle(t)
			if !m.drives[0].open || !m.drives[1].open {
				t.Fatalf("a tray was closed: %+v, %v", m.drives, m.steps)
			}
		}
	})
}

// Each growth of the counter resets once; no growth is lost, not even the first.
func TestResetCounter(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		first := rapid.Int64Range(0, 5).Draw(t, "at the start")
		m := newMachine(config(1, 0, first))
		m.settle(t)
		want, last := 0, first
		for range rapid.IntRange(1, 6).Draw(t, "changes") {
			counter := rapid.Int64Range(0, 8).Draw(t, "counter")
			if counter > last {
				want++
			}
			last = counter
			m.gen++
			m.config = config(1, 0, counter)
			m.config.Runner.GuestResetEnds = rapid.Bool().Draw(t, "reset ends")
			m.settle(t)
			if m.resets != want || m.ends != m.config.Runner.GuestResetEnds {
				t.Fatalf("%d resets, want %d", m.resets, want)
			}
		}
	})
	// An engine that has lost its memory does not reset what it finds running.
	c := config(1, 0, 4)
	d := live.Decide(live.Input{Config: c, Machine: live.Machine{Started: c, RAM: ram}, Observed: live.Observed{RunState: "running"}, Memory: live.Start(c)})
	if len(d.Steps) > 0 {
		t.Errorf("%+v", d.Steps)
	}
}

// A pause by somebody else is left alone, and a request counts once.
func TestPower(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := newMachine(config(1, 0, 0))
		m.settle(t)
		m.state = "paused"
		m.settle(t)
		if m.state != "paused" {
			t.Fatal("a machine that somebody paused was resumed")
		}
		m.request = live.Power{Number: 1}
		m.settle(t)
		if m.state != "running" {
			t.Fatal("not resumed")
		}
		m.request = live.Power{Number: 2, Pause: true}
		m.settle(t)
		if m.state != "paused" {
			t.Fatal("not paused")
		}
		m.state = "running" // somebody else resumes it
		m.settle(t)
		if m.state != "running" {
			t.Fatal("paused again")
		}
	})
}

// A machine that waits for space looks again and again, goes on when there is
// some, and gives up where space does not help.
func TestDiskFull(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := newMachine(config(1, 0, 0))
		m.settle(t)
		m.state, m.full, m.free, m.now = "io-error", true, 0, m.now.Add(time.Second)
		for range rapid.IntRange(1, 50).Draw(t, "looks") {
			d := m.round(t)
			if len(d.Steps) > 0 || d.Wake.IsZero() {
				t.Fatalf("%+v", d)
			}
			m.now = d.Wake
		}
		m.free = 1 << 30
		m.settle(t)
		if m.state != "running" {
			t.Fatalf("state %s", m.state)
		}
		before := m.conts
		if m.steps = nil; m.conts != 2 {
			t.Fatalf("continued %d times", m.conts)
		}
		for range 100 { // a quota: space is there, and every write fails
			m.state = "io-error"
			d := m.round(t)
			if !d.Wake.IsZero() {
				m.now = d.Wake
			}
			m.round(t) // it runs, for a moment
		}
		if n := m.conts - before; n > 6 {
			t.Fatalf("resumed %d times in vain", n)
		}
	})
}

// A guest that booted with all of its memory does not say so: QEMU reports the
// size from before the reset until the guest is asked for another.
func TestBalloonAfterReset(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := newMachine(config(1, 256*mib, 0))
		m.settle(t)
		asked := int64(ram)
		m.config = config(1, 0, 1)
		m.gen++
		for range maxRounds {
			d := m.decide(t)
			m.memory = d.Memory
			for _, s := range d.Steps {
				if s, ok := s.(live.SetBalloon); ok {
					if s.Bytes != asked && m.resets > 0 {
						m.balloon = s.Bytes
					}
					asked, m.asked = s.Bytes, s.Bytes
					m.memory = m.memory.Result(s, "")
					continue
				}
				m.memory = m.memory.Result(s, m.execute(t, s))
			}
			if len(d.Steps) == 0 && d.Wake.IsZero() {
				m.settled(t, d)
				return
			}
			if len(d.Steps) == 0 {
				m.now = d.Wake
			}
		}
		t.Fatal("does not settle")
	})
}

// A guest whose memory is as wanted at a moment, on its way to what it was asked
// for before, is asked anew.
func TestBalloonOnItsWay(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := newMachine(config(1, 0, 0))
		m.settle(t)
		m.inflate = idle
		mibs := rapid.Int64Range(100, 500)
		for range rapid.IntRange(1, 4).Draw(t, "changes") {
			m.gen++
			m.resets += rapid.IntRange(0, 1).Draw(t, "reset")
			m.config = config(1, mib*mibs.Draw(t, "desired"), 0)
			for range rapid.IntRange(1, 4).Draw(t, "rounds") {
				if d := m.round(t); !d.Wake.IsZero() && len(d.Steps) == 0 {
					m.now = d.Wake
				}
			}
		}
		target := live.BalloonTarget(m.config, ram)
		m.balloon = target // it passes by
		if d := m.decide(t); m.asked != target && d.Conditions[1].Status != live.False {
			t.Fatalf("asked for %d, has %d, but %+v", m.asked, m.balloon, d.Conditions[1])
		}
		m.balloon, m.inflate = m.asked, prompt
		m.gen++
		m.settled(t, m.settle(t))
		if m.balloon != target {
			t.Fatalf("%d, want %d", m.balloon, target)
		}
	})
}

// The guest keeps the first processors, and one that did not release the last one
// is asked again when what is desired is set anew.
func TestUnplug(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := newMachine(config(4, 0, 0))
		m.settle(t)
		m.unplug = idle
		for range 2 {
			m.gen++
			m.config = config(3, 0, 0)
			m.steps = nil
			d := m.settle(t)
			if d.Conditions[0].Reason != live.ReasonGuestDoesNotFollow || len(m.steps) != 5 {
				t.Fatalf("%+v %s", d.Conditions[0], m.steps)
			}
		}
		m.resets, m.unplug = 1, prompt
		m.settle(t)
		if m.cpus[3] != "" || m.cpus[2] == "" || m.cpus[1] == "" {
			t.Fatalf("left are %v", m.cpus)
		}
	})
}

// In software emulation processors are added and never removed; a number that comes
// back to what is there waits for nothing.
func TestEmulationKeepsProcessors(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		first := rapid.IntRange(1, slots).Draw(t, "at the start")
		m := newMachine(config(first, 0, 0))
		m.emulated = true
		m.settle(t)
		most := first
		for range rapid.IntRange(1, 6).Draw(t, "changes") {
			desired := rapid.IntRange(1, slots).Draw(t, "CPUs")
			most = max(most, desired)
			m.gen++
			m.resets += rapid.IntRange(0, 1).Draw(t, "reset")
			m.config = config(desired, 0, 0)
			d := m.settle(t)
			m.settled(t, d)
			if got := m.present(); got != most {
				t.Fatalf("%d CPUs, want %d: %v", got, most, m.cpus)
			}
		}
	})
}

// The boot processor stays, wherever in the machine it is, and so does one that
// was not plugged under a name of ours.
func TestBootProcessorStays(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		paths := rapid.Permutation([]string{"/machine/unattached/device[0]", "/machine/peripheral/other", "/machine/peripheral/cpu-1", "/machine/peripheral/cpu-7"}).Draw(t, "CPUs")
		c := config(rapid.IntRange(0, 4).Draw(t, "wanted"), 0, 0)
		o := live.Observed{RunState: "running"}
		for i, p := range paths {
			o.CPUs = append(o.CPUs, live.CPUSlot{Props: map[string]int64{"core-id": int64(i)}, QOMPath: p})
		}
		d := live.Decide(live.Input{Config: c, Machine: live.Machine{Started: c, RAM: ram, KVM: true}, Observed: o, Memory: live.Start(c)})
		for _, s := range d.Steps {
			if s != (live.UnplugCPU{ID: "cpu-1"}) && s != (live.UnplugCPU{ID: "cpu-7"}) {
				t.Fatalf("%+v", s)
			}
		}
		if want := min(2, 4-max(c.Runner.VM.CurrentCPUs, 1)); len(d.Steps) != want {
			t.Fatalf("%d steps, want %d", len(d.Steps), want)
		}
	})
}

// A locked tray matters only as long as it is closed.
func TestLockedButOpen(t *testing.T) {
	c := config(1, 0, 0, "/b")
	d := live.Decide(live.Input{
		Config: c, Machine: live.Machine{Started: c, RAM: ram}, Memory: live.Start(c),
		Observed: live.Observed{RunState: "running", Drives: []live.Drive{{ID: "cd0", TrayOpen: true, Locked: true, Medium: "/a"}}},
	})
	if want := (live.ChangeMedium{ID: "cd0", File: "/b"}); len(d.Steps) != 1 || d.Steps[0] != want {
		t.Errorf("%+v", d.Steps)
	}
}

func TestMedia(t *testing.T) {
	for _, tt := range []struct {
		image, observed string
		curl            bool
		step            live.Step
		reason          string
	}{
		{"/b.iso", "/a.iso", false, live.ChangeMedium{ID: "cd0", File: "/b.iso"}, live.ReasonAdjusting},
		{"b.iso", "/a.iso", false, live.ChangeMedium{ID: "cd0", File: "./b.iso"}, live.ReasonAdjusting},
		{"json:{}", "/a.iso", false, live.ChangeMedium{ID: "cd0", File: "./json:{}"}, live.ReasonAdjusting},
		{"b.iso", "b.iso", false, nil, live.ReasonAsConfigured},
		{"/x/../b.iso", "/b.iso", false, nil, live.ReasonAsConfigured},
		{"https://host/b.iso", "", true, live.ChangeMedium{ID: "cd0", File: "https://host/b.iso"}, live.ReasonAdjusting},
		{"HTTPS://host/b.iso", "https://host/b.iso", true, nil, live.ReasonAsConfigured},
		{"http://host/b.iso", "", false, nil, live.ReasonCurlMissing},
		{"nbd://host/b", "", true, nil, live.ReasonRefused},
		{"http://user:secret@host/b", "", true, nil, live.ReasonRefused},
		{"", "/a.iso", false, live.OpenTray{ID: "cd0"}, live.ReasonAdjusting},
	} {
		c := config(1, 0, 0, tt.image)
		d := live.Decide(live.Input{
			Config: c, Machine: live.Machine{Started: c, RAM: ram, HTTPImages: tt.curl}, Memory: live.Start(c),
			Observed: live.Observed{RunState: "running", Drives: []live.Drive{{ID: "cd0", Medium: tt.observed}}},
		})
		var want []live.Step
		if tt.step != nil {
			want = []live.Step{tt.step}
		}
		if !reflect.DeepEqual(d.Steps, want) || d.Conditions[2].Reason != tt.reason {
			t.Errorf("%s in place of %q: %+v, %+v", tt.image, tt.observed, d.Steps, d.Conditions[2])
		}
		if strings.Contains(fmt.Sprint(d.Conditions), "secret") {
			t.Errorf("%s: a password is told", tt.image)
		}
	}
}

// An image that a drive keeps is for the next start, as the disks are: its file may not
// be there before.
func TestMediaThatStay(t *testing.T) {
	started, c := config(1, 0, 0, "/a.iso"), config(1, 0, 0, "/b.iso")
	for _, image := range []*runnerconfig.Config{started, c} {
		image.Runner.VM.Drives[0].ReadOnly = true
	}
	if got := live.RestartPaths(started, c); !slices.Equal(got, []string{"vm.drives[0].file"}) {
		t.Errorf("the change needs %v", got)
	}
	for of, want := range map[*runnerconfig.Config]string{started: live.ReasonAsConfigured, c: live.ReasonChangesWait} {
		d := live.Decide(live.Input{
			Config: of, Machine: live.Machine{Started: started, RAM: ram}, Memory: live.Start(started),
			Observed: live.Observed{RunState: "running", Drives: []live.Drive{{ID: "cd0", Medium: "/a.iso"}}},
		})
		if len(d.Steps) > 0 || d.Conditions[2].Reason != want {
			t.Errorf("%+v, %+v", d.Steps, d.Conditions[2])
		}
	}
}

func TestDisplay(t *testing.T) {
	c := config(1, 0, 0)
	for _, tt := range []struct {
		name      string
		ticketing bool
		secret    live.DisplaySecret
		memory    string
		reason    string
		steps     int
	}{
		{"no password at all", false, live.DisplaySecret{}, "", live.ReasonNoPassword, 0},
		{"a password for an open display", false, live.DisplaySecret{Password: "x"}, "", live.ReasonChangesWait, 0},
		{"a password that is gone", true, live.DisplaySecret{}, "x", live.ReasonNoPassword, 0},
		{"unreadable", true, live.DisplaySecret{Problem: "permission denied"}, "x", live.ReasonRefused, 0},
		{"new", true, live.DisplaySecret{Password: "y"}, "x", live.ReasonAdjusting, 2},
		{"set", true, live.DisplaySecret{Password: "x"}, "x", live.ReasonAsConfigured, 0},
		{"expiry", true, live.DisplaySecret{Password: "x", Expiry: "now"}, "x", live.ReasonAdjusting, 2},
		{"nonsense", true, live.DisplaySecret{Password: "x", Expiry: "tomorrow"}, "x", live.ReasonRefused, 0},
	} {
		memory := live.Start(c)
		memory = memory.Result(live.SetDisplayPassword{Protocol: live.SPICE, Digest: tt.memory}, "").Result(live.SetDisplayPassword{Protocol: live.VNC, Digest: tt.memory}, "")
		d := live.Decide(live.Input{
			Config: c, Machine: live.Machine{Started: c, RAM: ram, Ticketing: tt.ticketing}, Memory: memory, Display: tt.secret,
			Observed: live.Observed{RunState: "running"},
		})
		if d.Conditions[3].Reason != tt.reason || len(d.Steps) != tt.steps {
			t.Errorf("%s: %+v, %+v", tt.name, d.Conditions[3], d.Steps)
		}
	}
}

func TestRestartPaths(t *testing.T) {
	a := config(1, 0, 0, "/a")
	b := config(2, 5*mib, 1, "/b")
	timeout := int64(1)
	b.Runner.VM.PowerdownTimeout, b.Runner.VM.Display.LoggedInUser = &timeout, "joe"
	if got := live.RestartPaths(a, b); got != nil {
		t.Errorf("live changes need a restart: %v", got)
	}
	b.Runner.VM.MaximumCPUs, b.Runner.VM.Drives[0].Type, b.Runner.VM.Display.SPICE.StreamingVideo, b.Runner.VM.Network = 8, "raw", "all", []runnerconfig.Network{{}}
	want := []string{"vm.maximumCpus", "vm.network", "vm.drives[0].type", "vm.drives[0].file", "vm.display.spice.streaming-video"}
	if got := live.RestartPaths(a, b); !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

// A disk stays as large as it is, unless each start makes it anew.
func TestRestartPathsOfSmallerDisks(t *testing.T) {
	for ephemeral, want := range map[bool][]string{false: nil, true: {"vm.drives[0].size"}} {
		disk := func(size runnerconfig.Bytes) *runnerconfig.Config {
			c := config(1, 0, 0)
			c.Runner.VM.Drives = []runnerconfig.Drive{{
				Type: runnerconfig.DriveRaw, Name: "system", File: "/system.img", Size: size,
				Image: &runnerconfig.DriveImage{Source: "oci://quay.io/disks/debian:13", Ephemeral: ephemeral},
			}}
			return c
		}
		for _, smaller := range []runnerconfig.Bytes{0, mib} {
			if got := live.RestartPaths(disk(2*mib), disk(smaller)); !slices.Equal(got, want) {
				t.Errorf("made anew: %v; of %d bytes it waits for %v", ephemeral, smaller, got)
			}
		}
	}
}

// A balloon that is stuck is explained by what QEMU knows of its driver.
func TestBalloonWithoutDriver(t *testing.T) {
	for driver, want := range map[bool]string{true: "has no balloon driver any more", false: "has no balloon driver"} {
		c := config(1, 256*mib, 0)
		full := int64(ram)
		in := live.Input{
			Config: c, Machine: live.Machine{Started: c, RAM: ram}, Memory: live.Start(c), Now: time.Unix(1_800_000_000, 0),
			Observed: live.Observed{RunState: "running", Balloon: &full, NoBalloonDriver: !driver},
		}
		d := live.Decide(in)
		for !d.Wake.IsZero() {
			in.Memory, in.Now = d.Memory, d.Wake
			d = live.Decide(in)
		}
		if got := d.Conditions[1]; got.Reason != live.ReasonGuestDoesNotFollow || !strings.HasSuffix(got.Message, want) {
			t.Errorf("%+v", got)
		}
	}
}
