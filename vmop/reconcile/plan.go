package reconcile

import (
	"slices"
	"time"

	"github.com/vmop/sdk/vmop/names"
	"k8s.io/apimachinery/pkg/types"
)

// Plan is what is to be done now. Its actions are executed in their order, up to the first that
// fails. If all succeed, the statuses are written and the events sent, both of which describe the
// state after the actions. The next snapshot shows what was executed, and a [Failure] for what was
// refused, so that its plan leaves the refused action out for a while and explains it in the
// status. A plan for a snapshot in which all is as it should be has no actions, no statuses and no
// events.
type Plan struct {
	Actions []Action
	// Statuses has an entry for each owner of status fields whose part differs
	// from what is stored.
	Statuses []StatusApply
	Events   []Event
	// Wake is when to look again though nothing changed; zero means never.
	Wake time.Time
}

// StartsPod reports whether the plan creates the machine's pod. The executor of such a plan makes
// sure first that the snapshot's Pods are all that there are, also those that no watch shows,
// and that no other machine gets a pod at the same time; and decides anew with them.
func (p Plan) StartsPod() bool {
	for _, a := range p.Actions {
		if t := a.Target(); t.Verb == "create" && t.Kind == names.KindPod {
			return true
		}
	}
	return false
}

// Releases reports whether the plan releases an object that is being deleted, or deletes claims or
// a secret of it, or what a pod may need ([Plan.DeletesConfigMaps]). The executor of such a plan
// makes sure first, at the API server, that there is no pod of it which no watch has shown yet; and
// decides anew with one that there is.
func (p Plan) Releases() bool {
	return p.DeletesClaims() || p.DeletesConfigMaps() || slices.ContainsFunc(p.Actions, func(a Action) bool {
		f, is := a.(SetFinalizers)
		return is && f.Releases
	})
}

// DeletesConfigMaps reports whether the plan deletes ConfigMaps, and with them Secrets:
// another pod than the one that was seen, which an operator before has made, may have one.
func (p Plan) DeletesConfigMaps() bool {
	return slices.ContainsFunc(p.Actions, func(a Action) bool { _, is := a.(DeleteConfigMap); return is })
}

// DeletesClaims reports whether the plan destroys data. The executor of such a plan makes sure
// first, at the API server, that the object still asks for it, besides what [Plan.Releases] asks
// for; and decides anew.
func (p Plan) DeletesClaims() bool {
	return slices.ContainsFunc(p.Actions, func(a Action) bool {
		switch a.(type) {
		case DeleteClaim, DeleteSecret:
			return true
		}
		return false
	})
}

// StatusApply is one writer's part of the status of an object.
type StatusApply struct {
	// Kind and Name are those of the object, which is of this API group. It is only
	// written if it has the UID.
	Kind, Name string
	UID        types.UID
	// Manager is OperatorStatusManager or RunnerStatusManager.
	Manager string
	// ResourceVersion is that of the object which the decision is about. A
	// report in the runner's name must not overwrite a newer one of a runner;
	// empty asks for no check.
	ResourceVersion string
	// Status is the whole part, as JSON values: what it lacks is removed if the
	// manager alone owned it.
	Status map[string]any
}

// Target is what the write is called in a [Failure].
func (s StatusApply) Target() Target {
	return Target{Verb: "patch", Kind: s.Kind + "/status", Name: s.Name}
}
