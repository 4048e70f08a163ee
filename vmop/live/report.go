package live

import (
	"slices"
	"strings"
	"time"

	"github.com/vmop/sdk/vmop/conditions"
)

// The types of VM-Operator's conditions, which its users and tools read. [Report] returns all of
// them, in this order.
const (
	// Running is True while the guest executes, including while it is being stopped.
	Running = conditions.Running
	// Booted is True once the guest agent has answered.
	Booted = conditions.Booted
	// VmopAgentConnected is True while the VMOP agent in the guest is connected.
	VmopAgentConnected = conditions.VmopAgentConnected
	// UserLoggedIn is True while the wanted user is logged in.
	UserLoggedIn = conditions.UserLoggedIn
	// ConsoleConnected is True while the display has a client.
	ConsoleConnected = conditions.ConsoleConnected
)

// The reasons of VM-Operator's conditions.
const (
	ReasonRunnerStarted         = conditions.ReasonRunnerStarted
	ReasonVMStarted             = conditions.ReasonVMStarted
	ReasonVMBooted              = conditions.ReasonVMBooted
	ReasonVMTerminating         = conditions.ReasonVMTerminating
	ReasonVMStopped             = conditions.ReasonVMStopped
	ReasonVmopAgentStarted      = conditions.ReasonVmopAgentStarted
	ReasonVmopAgentDisconnected = conditions.ReasonVmopAgentDisconnected
	ReasonNotRequested          = conditions.ReasonNotRequested
	ReasonProcessing            = conditions.ReasonProcessing
	ReasonLoggedIn              = conditions.ReasonLoggedIn
	ReasonConnected             = conditions.ReasonConnected
	ReasonDisconnected          = conditions.ReasonDisconnected
)

// The actions of VM-Operator's events.
const (
	// ActionStatus is the action of events with a reason of the condition Running.
	ActionStatus = "StatusUpdate"
	// ActionConsole is the action of "Connection from HOST" and "Disconnected from HOST".
	ActionConsole = "ConsoleConnectionUpdate"
	// ActionGuest is the action of ReasonGuestPanicked. (Added by vmop.)
	ActionGuest = "GuestUpdate"
)

// Stage is the stage of a machine's life.
type Stage string

// The stages in their order.
const (
	// StageStarting lasts until the guest executes.
	StageStarting Stage = "Starting"
	// StageRunning lasts until a stop is requested.
	StageRunning     Stage = "Running"
	StageTerminating Stage = "Terminating"
	StageStopped     Stage = "Stopped"
)

// Client is a client of the display.
type Client struct {
	// Protocol is "spice" or "vnc".
	Protocol string `json:"protocol"`
	// Host is the client's address, "unix" for one on a UNIX socket.
	Host string `json:"host"`
	// Port distinguishes clients of one host.
	Port string `json:"port,omitempty"`
}

// Login is the state of the VMOP agent and of the user whom it logs in.
type Login struct {
	// Connected reports whether the agent is connected.
	Connected bool
	// Wanted is the user to be logged in; empty is none.
	Wanted string
	// Confirmed reports whether the agent has confirmed the wanted user.
	Confirmed bool
	// Message is what the login waits for, or what went wrong.
	Message string
}

// Facts are what a runner knows of its machine.
type Facts struct {
	Stage Stage
	// Message is about the stage, for people. Only that of StageStopped is used: the others could
	// change without a transition.
	Message string
	// Paused reports that the guest of StageRunning does not execute.
	Paused bool
	// Booted reports whether the guest agent has answered since the machine's start or its last
	// reset.
	Booted bool
	Login  Login
	// Clients are the display's clients, in any order.
	Clients []Client
	// Generation is that of the manifest of the machine's configuration; 0 where generations are
	// not counted.
	Generation int64
}

// StatusCondition is a condition of a VirtualMachine's status. The fields and
// their JSON are those of Kubernetes' conditions.
type StatusCondition struct {
	Type               string    `json:"type"`
	Status             Status    `json:"status"`
	ObservedGeneration int64     `json:"observedGeneration,omitempty"`
	LastTransitionTime time.Time `json:"lastTransitionTime"`
	Reason             string    `json:"reason"`
	Message            string    `json:"message"`
}

// Event is an event as VM-Operator's runner records it with the machine, in the terms of
// events.k8s.io.
type Event struct {
	Action string `json:"action"`
	Reason string `json:"reason"`
	Note   string `json:"note,omitempty"`
	// Warning reports that a person may have to act.
	Warning bool `json:"warning,omitempty"`
}

// Reported is the last report. The zero value is none.
type Reported struct {
	// Conditions has one of each of VM-Operator's types, in their order.
	Conditions []StatusCondition
	// Clients are the display's clients, sorted.
	Clients []Client
}

// Report returns the next report, and the events of the transitions since the previous one. It
// depends on its arguments alone and changes none of them.
//
// The conditions and reasons follow VM-Operator's rules, with two of its faults repaired: a login
// that is under way is Processing until it is confirmed, and an agent that has left is not
// connected. The time of a transition is the time at which the status was found changed, in whole
// seconds, and never before the last one. The same facts again change nothing and cause no event.
//
// A machine in another stage than before causes the event of that stage; stages that were skipped
// cause none. Clients that vanished with their machine have disconnected.
func Report(before Reported, f Facts, now time.Time) (Reported, []Event) {
	running := f.Stage == StageRunning || f.Stage == StageTerminating
	r := reporter{before: before.Conditions, generation: f.Generation, now: now.UTC().Truncate(time.Second)}
	life := r.life(f)
	r.login(f.Login, running)
	clients := sortedClients(f.Clients)
	if !running {
		clients = nil
	}
	r.console(clients, running)

	var events []Event
	if old := r.last(Running); old == nil || old.Reason != life.Reason {
		events = append(events, Event{Action: ActionStatus, Reason: life.Reason, Note: life.Message})
	}
	for _, c := range without(clients, before.Clients) {
		events = append(events, Event{Action: ActionConsole, Reason: "Connection from " + c.Host})
	}
	for _, c := range without(before.Clients, clients) {
		events = append(events, Event{Action: ActionConsole, Reason: "Disconnected from " + c.Host})
	}
	return Reported{Conditions: r.out, Clients: clients}, events
}

type reporter struct {
	before, out []StatusCondition
	generation  int64
	now         time.Time
}

func (r *reporter) last(kind string) *StatusCondition {
	i := slices.IndexFunc(r.before, func(c StatusCondition) bool { return c.Type == kind })
	if i < 0 {
		return nil
	}
	return &r.before[i]
}

func (r *reporter) set(kind string, status Status, reason, message string) StatusCondition {
	c := StatusCondition{
		Type: kind, Status: status, Reason: reason, Message: message,
		ObservedGeneration: r.generation, LastTransitionTime: r.now,
	}
	if old := r.last(kind); old != nil && (old.Status == status || old.LastTransitionTime.After(r.now)) {
		c.LastTransitionTime = old.LastTransitionTime
	}
	r.out = append(r.out, c)
	return c
}

func (r *reporter) life(f Facts) StatusCondition {
	status, booted, reason, message := False, False, ReasonRunnerStarted, "the machine is being started"
	switch {
	case f.Stage == StageRunning && f.Booted:
		status, booted, reason, message = True, True, ReasonVMBooted, "the guest has booted"
	case f.Stage == StageRunning:
		status, reason, message = True, ReasonVMStarted, "the guest executes"
	case f.Stage == StageTerminating:
		status, reason, message = True, ReasonVMTerminating, "the machine is being stopped"
	case f.Stage == StageStopped:
		reason, message = ReasonVMStopped, f.Message
	}
	life := message
	if f.Stage == StageRunning && f.Paused {
		life = "QEMU runs, and the guest is paused"
	}
	c := r.set(Running, status, reason, life)
	r.set(Booted, booted, reason, message)
	c.Message = message // the event's message, which is about the stage
	return c
}

func (r *reporter) login(l Login, running bool) {
	const stopped = "the machine does not run"
	switch {
	case !running:
		r.set(VmopAgentConnected, False, ReasonVMStopped, stopped)
	case l.Connected:
		r.set(VmopAgentConnected, True, ReasonVmopAgentStarted, "the VMOP agent has answered")
	default:
		r.set(VmopAgentConnected, False, ReasonVmopAgentDisconnected, "no VMOP agent is connected")
	}
	switch {
	case !running:
		r.set(UserLoggedIn, False, ReasonVMStopped, stopped)
	case l.Wanted == "":
		r.set(UserLoggedIn, False, ReasonNotRequested, l.Message)
	case !l.Connected:
		r.set(UserLoggedIn, False, ReasonVmopAgentDisconnected, "the login waits for the VMOP agent")
	case l.Confirmed:
		r.set(UserLoggedIn, True, ReasonLoggedIn, l.Message)
	default:
		message := l.Message
		if message == "" {
			message = "the VMOP agent was asked to log the user in"
		}
		r.set(UserLoggedIn, False, ReasonProcessing, message)
	}
}

func (r *reporter) console(clients []Client, running bool) {
	switch {
	case !running:
		r.set(ConsoleConnected, False, ReasonVMStopped, "")
	case len(clients) == 0:
		r.set(ConsoleConnected, False, ReasonDisconnected, "")
	default:
		r.set(ConsoleConnected, True, ReasonConnected, "from "+ClientHosts(clients))
	}
}

// ClientHosts are the hosts of the display's clients, without duplicates, as in the status of a
// VirtualMachine.
func ClientHosts(clients []Client) string {
	var hosts []string
	for _, c := range sortedClients(clients) {
		if !slices.Contains(hosts, c.Host) {
			hosts = append(hosts, c.Host)
		}
	}
	return strings.Join(hosts, ", ")
}

func sortedClients(clients []Client) []Client {
	return slices.SortedFunc(slices.Values(clients), func(a, b Client) int {
		return slices.Compare([]string{a.Host, a.Port, a.Protocol}, []string{b.Host, b.Port, b.Protocol})
	})
}

func without(list, other []Client) []Client {
	rest := slices.Clone(other)
	var out []Client
	for _, c := range list {
		if i := slices.Index(rest, c); i >= 0 {
			rest = slices.Delete(rest, i, i+1)
		} else {
			out = append(out, c)
		}
	}
	return out
}
