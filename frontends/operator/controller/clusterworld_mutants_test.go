package controller

import (
	"maps"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/vmop/sdk/internal/promises"
	"github.com/vmop/sdk/vmop/names"
	"github.com/vmop/sdk/vmop/reconcile"
	machinekind "github.com/vmop/sdk/vmop/reconcile/machine"
	"github.com/vmop/sdk/vmop/reconcile/objects"
	operationkind "github.com/vmop/sdk/vmop/reconcile/operation"
	poolkind "github.com/vmop/sdk/vmop/reconcile/pool"
	"github.com/vmop/sdk/vmop/runnerconfig"
	"github.com/vmop/sdk/vmop/spec"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// clusterPromise is what holds in every [clusterWorld].
type clusterPromise struct {
	// name is what a violation is called, and means what it is, in a sentence.
	name, means string
	mutant      clusterMutant
}

// clusterMutant is an operator with one fault.
type clusterMutant struct {
	fault string
	// often are draws of what the fault is about.
	often map[string]int
	// or is another promise that may notice it first.
	or string
	// says is a regular expression for what is told of the promise that it breaks.
	says       string
	machines   func(*kind[machinekind.Snapshot])
	pools      func(*kind[poolkind.Snapshot])
	operations func(*kind[operationkind.Snapshot])
}

func (m *clusterMutant) ofMachines() func(*kind[machinekind.Snapshot]) {
	if m == nil {
		return nil
	}
	return m.machines
}

func (m *clusterMutant) ofPools() func(*kind[poolkind.Snapshot]) {
	if m == nil {
		return nil
	}
	return m.pools
}

func (m *clusterMutant) ofOperations() func(*kind[operationkind.Snapshot]) {
	if m == nil {
		return nil
	}
	return m.operations
}

// sabotaged is a kind with a fault; nil is none.
func sabotaged[S any](k kind[S], fault func(*kind[S])) kind[S] {
	if fault != nil {
		fault(&k)
	}
	return k
}

// plans is the fault that plans are other ones.
func plans[S any](change func(*S, *reconcile.Plan)) func(*kind[S]) {
	return func(k *kind[S]) {
		decide := k.decide
		k.decide = func(s S) reconcile.Plan {
			p := decide(s)
			change(&s, &p)
			return p
		}
	}
}

// sees is the fault that machines are seen otherwise than they are.
func sees(change func(*machinekind.Snapshot)) func(*kind[machinekind.Snapshot]) {
	return func(k *kind[machinekind.Snapshot]) {
		decide := k.decide
		k.decide = func(s machinekind.Snapshot) reconcile.Plan {
			s.VM, s.Secrets = s.VM.DeepCopy(), maps.Clone(s.Secrets)
			pods := s.Pods
			s.Pods = nil
			for i := range pods {
				s.Pods = append(s.Pods, *pods[i].DeepCopy())
			}
			change(&s)
			return decide(s)
		}
	}
}

// seesPools is the fault that pools are seen otherwise than they are.
func seesPools(change func(*poolkind.Snapshot)) func(*kind[poolkind.Snapshot]) {
	return func(k *kind[poolkind.Snapshot]) {
		decide := k.decide
		k.decide = func(s poolkind.Snapshot) reconcile.Plan {
			machines := s.Machines
			s.Machines = nil
			for i := range machines {
				s.Machines = append(s.Machines, *machines[i].DeepCopy())
			}
			s.Pools, s.Members = slices.Clone(s.Pools), slices.Clone(s.Members)
			change(&s)
			return decide(s)
		}
	}
}

// retaining is the fault that all pools keep machines for so long.
func retaining(retention string) func(*kind[poolkind.Snapshot]) {
	return seesPools(func(s *poolkind.Snapshot) {
		for i := range s.Pools {
			s.Pools[i].Spec.Retention = retention
		}
	})
}

// omitting is the fault that some actions of machines' plans are left out.
func omitting(omit func(*machinekind.Snapshot, reconcile.Action) bool) func(*kind[machinekind.Snapshot]) {
	return plans(func(s *machinekind.Snapshot, p *reconcile.Plan) {
		p.Actions = slices.DeleteFunc(slices.Clone(p.Actions), func(a reconcile.Action) bool { return omit(s, a) })
	})
}

func createsPod(a reconcile.Action) bool {
	c, is := a.(reconcile.Create)
	if is {
		_, is = c.Object.(*corev1.Pod)
	}
	return is
}

// clusterPromises are all promises of a [clusterWorld], each with a fault that breaks it.
func clusterPromises() []clusterPromise {
	return []clusterPromise{
		{
			name: "a disk has one machine", means: "No two guests of a namespace execute that use the same claim.",
			mutant: clusterMutant{
				fault: "machines start when they want to", often: map[string]int{"shares a disk": 1}, says: `^shared is used by Pod \w+/[\w-]+ and Pod \w+/[\w-]+$`,
				machines: func(k *kind[machinekind.Snapshot]) { k.prepare = nil },
			},
		},
		{
			name: "a machine is seen until its guest has ended", means: "The operator lets no machine go that has a guest.",
			mutant: clusterMutant{
				fault: "a machine is let go while its guest shuts down", often: map[string]int{"event": 1, "person": 6, "rounds": 3}, says: `^VirtualMachine \w+/[\w-]+ is not$`,
				machines: sees(func(s *machinekind.Snapshot) {
					if s.VM.DeletionTimestamp != nil {
						s.Pods = slices.DeleteFunc(s.Pods, func(p corev1.Pod) bool { return p.DeletionTimestamp != nil })
					}
				}),
			},
		},
		{
			name: "a request writes in its namespace", means: "What is decided about a namespace changes nothing in another one.",
			mutant: clusterMutant{
				fault: "pods are made in another namespace", says: `^one of \w+ writes Pod elsewhere/`,
				machines: plans(func(_ *machinekind.Snapshot, p *reconcile.Plan) {
					for _, a := range p.Actions {
						if createsPod(a) {
							a.(reconcile.Create).Object.SetNamespace("elsewhere")
						}
					}
				}),
			},
		},
		{
			name: "a machine is not started without its class", means: "No pod is made for a machine whose class is missing.",
			mutant: clusterMutant{
				fault: "a machine whose class is missing needs none", often: map[string]int{"of the class": 1}, says: `^VirtualMachine \w+/[\w-]+$`,
				machines: sees(func(s *machinekind.Snapshot) {
					if len(s.Classes) == 0 {
						s.VM.Spec.VirtualMachineClassName = ""
					}
				}),
			},
		},
		{
			name: "a machine is not started without its Secret", means: "No pod is made for a machine whose guest is provisioned from a Secret that is missing or of another type.",
			mutant: clusterMutant{
				fault: "every Secret is there", often: map[string]int{"from a Secret": 1}, says: `^VirtualMachine \w+/[\w-]+$`,
				machines: sees(func(s *machinekind.Snapshot) {
					s.Secrets = map[string]machinekind.SecretState{theSecret: machinekind.SecretThere}
				}),
			},
		},
		{
			name: "a machine that is deleted goes", means: "In the end no machine is there that somebody has deleted.",
			mutant: clusterMutant{
				fault: "no machine is let go", often: map[string]int{"person": 6}, says: `^VirtualMachine \w+/[\w-]+ is there$`,
				machines: omitting(func(_ *machinekind.Snapshot, a reconcile.Action) bool {
					f, is := a.(reconcile.SetFinalizers)
					return is && f.Releases
				}),
			},
		},
		{
			name: "what is wanted is reached", means: "In the end a machine runs if it should, and does not if it should not.",
			mutant: clusterMutant{
				fault: "every machine is to run", says: `^VirtualMachine \w+/[\w-]+ runs: true$`,
				machines: sees(func(s *machinekind.Snapshot) { s.VM.Spec.VM.State = spec.StateRunning }),
			},
		},
		{
			name: "of those that share a disk one runs", means: "In the end one machine has the disk that several want.",
			mutant: clusterMutant{
				fault: "no machine starts that shares a disk", often: map[string]int{"shares a disk": 1}, says: `^of \[.*"\] in \w+ \[\] do$`,
				machines: sees(func(s *machinekind.Snapshot) {
					if s.Pod() == nil && slices.Contains(objects.ClaimNames(s.VM), sharedDisk) {
						s.Pods = append(s.Pods, *podWith("other", sharedDisk))
					}
				}),
			},
		},
		{
			name: "the status is true", means: "In the end the status says of a machine that it runs if its guest executes.",
			mutant: clusterMutant{
				fault: "nobody corrects what a runner could not report", or: "what is wanted is reached", often: map[string]int{"kubelet": 1, "end reported": 0}, says: `^VirtualMachine \w+/[\w-]+ runs: false, and says `,
				machines: plans(func(_ *machinekind.Snapshot, p *reconcile.Plan) {
					p.Statuses = slices.DeleteFunc(p.Statuses, func(s reconcile.StatusApply) bool { return s.Manager == names.RunnerStatusManager })
				}),
			},
		},
		{
			name: "the status names the generation it is about", means: "In the end the status is about the manifest as it is.",
			mutant: clusterMutant{
				fault: "each manifest is the first one", says: `^VirtualMachine \w+/[\w-]+: 1, not \d+$`,
				machines: sees(func(s *machinekind.Snapshot) { s.VM.Generation = 1 }),
			},
		},
		{
			name: "a run policy is followed", means: "In the end the status says that a run policy was acted on, and a machine is on or off where its policy says so.",
			mutant: clusterMutant{
				fault: "there are no run policies", says: `^VirtualMachine \w+/[\w-]+ is \w+, and the status says <nil>$`,
				machines: sees(func(s *machinekind.Snapshot) { s.VM.Spec.RunPolicy = "" }),
			},
		},
		{
			name: "an end is kept", means: "A machine whose guest has ended stays stopped if its run policy says so, and else does not.",
			mutant: clusterMutant{
				fault: "a guest that powers itself off has reset itself", often: map[string]int{"event": 18, "run policy": 4, "kubelet": 1}, says: `its last end means that it stays stopped: true`,
				machines: sees(func(s *machinekind.Snapshot) {
					if e := s.VM.Status.RunnerEnd; e != nil && e.Cause == string(runnerconfig.CauseGuestShutdown) {
						e.Cause = string(runnerconfig.CauseGuestReset)
					}
					for i := range s.Pods {
						for j := range s.Pods[i].Status.ContainerStatuses {
							if t := s.Pods[i].Status.ContainerStatuses[j].State.Terminated; t != nil {
								t.Message = strings.ReplaceAll(t.Message, string(runnerconfig.CauseGuestShutdown), string(runnerconfig.CauseGuestReset))
							}
						}
					}
				}),
			},
		},
		{
			name: "what was asked for last is so", means: "In the end a machine is as the last operation has made it, if nothing has happened since.",
			mutant: clusterMutant{
				fault: "a stop is a start", often: map[string]int{"event": 12, "person": 14, "type": 1, "run policy": 3}, says: `^Stop on VirtualMachine \w+/[\w-]+, and the status says `,
				operations: func(k *kind[operationkind.Snapshot]) {
					decide := k.decide
					k.decide = func(s operationkind.Snapshot) reconcile.Plan {
						s.Operations = slices.Clone(s.Operations)
						for i := range s.Operations {
							if o := &s.Operations[i]; o.Spec.Type == spec.OperationStop {
								o.Spec.Type, o.Spec.Force = spec.OperationStart, false
							}
						}
						return decide(s)
					}
				},
			},
		},
		{
			name: "an operation ends", means: "In the end no operation waits or is in progress.",
			mutant: clusterMutant{
				fault: "no end of an operation is noted", says: `^\w+ \w+/[\w-]+ is "(|Pending|InProgress)"$`,
				operations: plans(func(_ *operationkind.Snapshot, p *reconcile.Plan) {
					p.Actions = slices.DeleteFunc(slices.Clone(p.Actions), func(a reconcile.Action) bool {
						patch, is := a.(reconcile.Patch)
						if !is || patch.Kind != names.KindOperation {
							return false
						}
						phase, _ := patch.Fields["status"].(map[string]any)["phase"].(string)
						return spec.OperationPhase(phase).Finished()
					})
				}),
			},
		},
		{
			name: "what a machine is labelled with its pod is, too", means: "In the end the pod of a machine has its labels, and still those of the operator.",
			mutant: clusterMutant{
				fault: "labels reach new pods only", often: map[string]int{"person": 7}, says: `^VirtualMachine \w+/[\w-]+ has map\[.*\], its pod map\[`,
				machines: plans(func(_ *machinekind.Snapshot, p *reconcile.Plan) {
					var out []reconcile.Action
					for _, a := range p.Actions {
						if labels, is := a.(reconcile.AnnotatePod); is {
							if labels.Labels = nil; len(labels.Annotations) == 0 {
								continue
							}
							a = labels
						}
						out = append(out, a)
					}
					p.Actions = out
				}),
			},
		},
		{
			name: "changes that nobody need approve do not wait", means: "In the end a machine that restarts by itself runs as its manifest says.",
			mutant: clusterMutant{
				fault: "every restart needs approval", often: map[string]int{"restarts": 1, "person": 3}, says: `^VirtualMachine \w+/[\w-]+: \[.*Path:spec`,
				machines: sees(func(s *machinekind.Snapshot) { s.VM.Spec.Disruptions = nil }),
			},
		},
		{
			name: "a machine that is used is not taken", means: "No machine is taken from a user while somebody is at its console.",
			mutant: clusterMutant{
				fault: "nobody sees who is at a console", often: map[string]int{"event": 18, "retention": 1}, says: `^VirtualMachine \w+/[\w-]+ is taken from \w+ of \w+/\w+$`,
				pools: seesPools(func(s *poolkind.Snapshot) {
					for i := range s.Machines {
						if c := spec.FindCondition(s.Machines[i].Status.Conditions, spec.ConditionConsoleConnected); c != nil {
							c.Status = metav1.ConditionFalse
						}
					}
				}),
			},
		},
		{
			name: "nobody loses a machine that is theirs", means: "No machine is taken from a user for whom its pool keeps it, but for a second one.",
			mutant: clusterMutant{
				fault: "nothing is kept for a user", says: `^VirtualMachine \w+/[\w-]+ is taken from \w+ of \w+/\w+, whose it is until `,
				pools: retaining("PT0S"),
			},
		},
		{
			name: "a user has one machine of a pool", means: "In the end a user has no second machine of a pool whose console nobody uses.",
			mutant: clusterMutant{
				fault: "each machine of a user is the only one", often: map[string]int{"event": 14, "asks": 0, "late": 1, "pools": 3}, says: `^\w+ of \w+/\w+ has \[VirtualMachine .* VirtualMachine`,
				pools: seesPools(func(s *poolkind.Snapshot) {
					for i := range s.Machines {
						// Each is of a pool of its own, with the same retention.
						a, all := s.Machines[i].Status.Assignment, len(s.Pools)
						for _, p := range s.Pools[:all] {
							if p.Name == a.Pool {
								a.Pool += "-" + s.Machines[i].Name
								p.Name, p.UID = a.Pool, ""
								s.Pools = append(s.Pools, p)
							}
						}
					}
				}),
			},
		},
		{
			name: "what has expired is free", means: "In the end no machine is a user's whose time is over.",
			mutant: clusterMutant{
				fault: "nothing expires", often: map[string]int{"asks": 0, "retention": 1}, says: `^VirtualMachine \w+/[\w-]+ is still that of \w+ of \w+/\w+, since `,
				pools: retaining("soon"),
			},
		},
		{
			name: "an assignment ends with its pool", means: "In the end no machine is a user's by a pool that is gone.",
			mutant: clusterMutant{
				fault: "every pool is there for ever", often: map[string]int{"person": 10, "deleted": 0}, says: `^VirtualMachine \w+/[\w-]+ is still that of \w+ of \w+/\w+$`,
				pools: seesPools(func(s *poolkind.Snapshot) {
					for i := range s.Machines {
						name := s.Machines[i].Status.Assignment.Pool
						if !slices.ContainsFunc(s.Pools, func(p spec.VmPool) bool { return p.Name == name }) {
							s.Pools = append(s.Pools, spec.VmPool{
								ObjectMeta: metav1.ObjectMeta{Namespace: s.Machines[i].Namespace, Name: name}, Spec: spec.VmPoolSpec{Retention: "soon"},
							})
						}
					}
				}),
			},
		},
		{
			name: "a pool knows its machines", means: "In the end the status of a pool says how many machines it has, how many are free and how many are used.",
			mutant: clusterMutant{
				fault: "machines that are used are free", says: `^VmPool \w+/\w+ has \{.*\}, and says \{`,
				pools: seesPools(func(s *poolkind.Snapshot) {
					for i := range s.Members {
						s.Members[i].Assigned = ""
					}
				}),
			},
		},
		{
			name: "the world comes to rest", means: "Once nothing happens any more and all writes succeed, there is an end of them.",
			mutant: clusterMutant{
				fault: "pools are counted again and again", says: `^something is written after \d+ rounds$`,
				pools: seesPools(func(s *poolkind.Snapshot) {
					for i := range s.Pools {
						s.Pools[i].Status = spec.VmPoolStatus{}
					}
				}),
			},
		},
	}
}

// clusterLives are so many that each fault shows in one of them.
const clusterLives = 100

// Each mutant is noticed by the promise that it breaks, and what is told says so.
func TestPromisesOfAnOperatorAreNoticed(t *testing.T) {
	t.Parallel()
	for _, p := range clusterPromises() {
		t.Run(p.name, func(t *testing.T) {
			t.Parallel()
			for n := range uint64(clusterLives) {
				r := rand.New(rand.NewPCG(n, 0))
				w := newClusterWorld(t.Context(), func(what string, n int) int {
					if often, is := p.mutant.often[what]; is && often < n && r.IntN(2) == 0 {
						return often
					}
					return r.IntN(n)
				}, &p.mutant)
				w.rounds = clusterRounds / 4
				broken := w.life(60 + r.IntN(60))
				switch {
				case broken == nil, broken.Promise == p.mutant.or:
					continue
				case broken.Promise != p.name || !regexp.MustCompile(p.mutant.says).MatchString(broken.Detail):
					t.Errorf("%s: it is noticed as %v; want %q", p.mutant.fault, broken, p.mutant.says)
				}
				t.Logf("%s: noticed in life %d", p.mutant.fault, n)
				return
			}
			t.Errorf("%s: nobody notices", p.mutant.fault)
		})
	}
}

// The list has what the world looks at, and nothing else; each entry says what it means.
func TestPromisesOfAnOperatorAreListed(t *testing.T) {
	var listed []string
	for _, p := range clusterPromises() {
		listed = append(listed, p.name)
		if !strings.HasSuffix(p.means, ".") || p.mutant.fault == "" || p.mutant.says == "" {
			t.Errorf("%s: it lacks what it means, or what breaks it", p.name)
		}
	}
	slices.Sort(listed)
	promises.Listed(t, listed)
}
