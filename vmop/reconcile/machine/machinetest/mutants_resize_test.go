package machinetest

import (
	"regexp"
	"slices"
	"strings"

	"github.com/vmop/sdk/vmop/names"
	"github.com/vmop/sdk/vmop/reconcile"
	"github.com/vmop/sdk/vmop/reconcile/machine"
	"github.com/vmop/sdk/vmop/spec"
	corev1 "k8s.io/api/core/v1"
)

var (
	processors = regexp.MustCompile(`currentCpus: \d+`)
	pendings   = regexp.MustCompile(`pending(Cpus|Ram):`)
)

// configured replaces something in the runner's configuration.
func configured(old *regexp.Regexp, by string) func(*machine.Snapshot, *reconcile.Plan) {
	return func(_ *machine.Snapshot, p *reconcile.Plan) {
		for _, a := range p.Actions {
			var o reconcile.Object
			switch a := a.(type) {
			case reconcile.Create:
				o = a.Object
			case reconcile.Apply:
				o = a.Object
			}
			if cm, is := o.(*corev1.ConfigMap); is {
				cm.Data[names.ConfigKey] = old.ReplaceAllString(cm.Data[names.ConfigKey], by)
			}
		}
	}
}

func resizingMutants() []mutant {
	return []mutant{
		{
			fault: "the kubelet's word that there is no room is not heard", promise: "a guest that cannot grow says so", or: "a guest uses what its pod has",
			before: func(s *machine.Snapshot) {
				if s.Pod() != nil {
					s.Pod().Status.Conditions = nil
				}
			},
		},
		{
			fault: "that a node is too small is taken for a lack of rights", promise: "a guest that cannot grow says so",
			before: func(s *machine.Snapshot) {
				s.Failures = slices.Clone(s.Failures)
				for i := range s.Failures {
					s.Failures[i].Infeasible = false
				}
			},
		},
		{
			fault: "a pod that is not resized yet counts as resized", promise: "a guest uses what its pod has",
			before: func(s *machine.Snapshot) {
				if s.Pod() == nil || s.Pod().Status.ContainerStatuses == nil || s.Pod().Status.ContainerStatuses[0].Resources == nil {
					return
				}
				s.Pod().Status.ContainerStatuses[0].Resources.Requests = s.Pod().Spec.Containers[0].Resources.Requests
				s.Pod().Status.Conditions, s.Pod().Status.ObservedGeneration = nil, s.Pod().Generation
			},
		},
		{
			fault: "pods that shrink do not wait for their guests", promise: "a guest uses what its pod has",
			before: func(s *machine.Snapshot) {
				if s.VM.Status.CPUs > 0 {
					s.VM.Status.CPUs, s.VM.Status.RAM = 1, new(quantity("1Gi"))
				}
				if c := spec.FindCondition(s.VM.Status.Conditions, spec.ConditionCPUsAdjusted); c != nil {
					c.ObservedGeneration = s.VM.Generation
				}
			},
		},
		{
			fault: "pods are never resized", promise: "a guest that cannot grow says so", or: "a pod asks for what its guest has",
			after: without[reconcile.ResizePod],
		},
		{
			fault: "what is not granted is not told", promise: "every wait is explained",
			after: conditions(func(_ *machine.Snapshot, c map[string]any) {
				if c["reason"] == spec.ReasonResizeDeferred || c["reason"] == spec.ReasonResizeInfeasible {
					c["reason"] = spec.ReasonConfigurationApplied
				}
			}),
		},
		{
			fault: "the runner is not told what waits for its pod", promise: "what waits for a pod is not shown as reached",
			before: func(s *machine.Snapshot) {
				if s.ConfigMap != nil {
					s.ConfigMap.Data[names.ConfigKey] = strings.ReplaceAll(s.ConfigMap.Data[names.ConfigKey], "# pending", "pending")
				}
			},
			after: configured(pendings, "# $0"),
		},
		{
			fault: "nobody says how the requests of a pod came about", promise: "a pod says how its requests came about",
			after: each(func(_ *machine.Snapshot, a reconcile.Create) reconcile.Action {
				if pod, is := a.Object.(*corev1.Pod); is {
					delete(pod.Annotations, names.AnnotationRequests)
				}
				return a
			}),
		},
		{
			fault: "pods do not shrink", promise: "a pod asks for what its guest has",
			after: func(s *machine.Snapshot, p *reconcile.Plan) {
				p.Actions = slices.DeleteFunc(p.Actions, func(a reconcile.Action) bool {
					r, is := a.(reconcile.ResizePod)
					return is && s.Pod() != nil && fits(r.Requests, s.Pod().Spec.Containers[0].Resources.Requests)
				})
			},
		},
		{
			fault: "a guest does not get more processors", promise: "a guest has what it is to have", or: "the world comes to rest; what waits for a pod is not shown as reached",
			before: func(s *machine.Snapshot) {
				if s.ConfigMap != nil {
					pretendConfig(s)
				}
			},
			after: configured(processors, "currentCpus: 1"),
		},
	}
}
