package reconcile

import (
	"slices"
	"time"

	"github.com/vmop/sdk/vmop/names"
	"k8s.io/apimachinery/pkg/types"
)

// Plan is what is to be done now. Its actions are executed in order, up to the first that fails.
// If all succeed, the statuses are written and the events sent, both of which describe the state
// after the actions. The next snapshot has the results, and a [Failure] for what was refused, so
// that its plan omits the refused action for a while and explains it in the status. A plan for a
// snapshot in which all is as it should be has no actions, statuses or events.
type Plan struct {
	Actions []Action
	// Statuses has an entry for each owner of status fields whose part differs from what is
	// stored.
	Statuses []StatusApply
	Events   []Event
	// Wake is when to decide again without a change; zero means never.
	Wake time.Time
	// Passing reports that the subject is between two phases. Statuses may wait for up to two
	// seconds for the next decision, since another observation is likely to change them, and the
	// subject goes before those with which nothing has begun: of many, each takes little time
	// then, and is written once.
	Passing bool
}

// StartsPod reports whether the plan creates the machine's pod. Before executing such a plan,
// make sure that the snapshot's Pods are complete, including those that no watch shows, and that
// no other machine gets a pod at the same time; and decide anew with them.
func (p Plan) StartsPod() bool {
	for _, a := range p.Actions {
		if t := a.Target(); t.Verb == "create" && t.Kind == names.KindPod {
			return true
		}
	}
	return false
}

// Releases reports whether the plan releases an object that is being deleted, or deletes its
// claims or secret, or what a pod may need ([Plan.DeletesConfigMaps]). Before executing such a
// plan, make sure at the API server that it has no pod that no watch has shown yet; and decide
// anew if it has.
func (p Plan) Releases() bool {
	return p.DeletesClaims() || p.DeletesConfigMaps() || slices.ContainsFunc(p.Actions, func(a Action) bool {
		f, is := a.(SetFinalizers)
		return is && f.Releases
	})
}

// DeletesConfigMaps reports whether the plan deletes ConfigMaps, and with them Secrets: a pod not
// yet observed, created by a former operator, may use one.
func (p Plan) DeletesConfigMaps() bool {
	return slices.ContainsFunc(p.Actions, func(a Action) bool { _, is := a.(DeleteConfigMap); return is })
}

// DeletesClaims reports whether the plan destroys data. Before executing such a plan, make sure
// at the API server that the object still asks for it, and whose its ConfigMap is, besides what
// [Plan.Releases] requires; and decide anew.
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
	// Kind and Name are those of the object, which is of this API group. It is only written if it
	// has the UID.
	Kind, Name string
	UID        types.UID
	// Manager is OperatorStatusManager or RunnerStatusManager.
	Manager string
	// ResourceVersion is that of the object which the decision is about. A report in the runner's
	// name must not overwrite a newer one of a runner; empty skips the check.
	ResourceVersion string
	// Status is the whole part, as JSON values: fields that it omits are removed if the manager
	// alone owned them.
	Status map[string]any
}

// Target returns the target of the write in a [Failure].
func (s StatusApply) Target() Target {
	return Target{Verb: "patch", Kind: s.Kind + "/status", Name: s.Name}
}
