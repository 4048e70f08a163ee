package machine

import (
	"errors"

	"github.com/vmop/sdk/vmop/names"
	"github.com/vmop/sdk/vmop/reconcile"
	"github.com/vmop/sdk/vmop/reconcile/internal/manifest"
	"github.com/vmop/sdk/vmop/reconcile/objects"
	"github.com/vmop/sdk/vmop/spec"
	corev1 "k8s.io/api/core/v1"
)

// Objects lists what a cluster gets for the machine, in the order in which it
// must exist: the display secret, what has the user data of the manifest, the
// ConfigMap, the volume claims, the pod (as it is while the machine should run) and
// the load balancer's service.
//
// They are those that [Decide] makes for a machine about which a cluster knows
// nothing yet, with what they note down for later decisions. Only the API server
// and the operator can add the rest: the password of the secret, and the
// versions of ConfigMap and secret on the pod. Owner references need a machine
// with a UID, and [names.AnnotationApplied], [names.AnnotationDocuments],
// [names.AnnotationGeneration] and [names.AnnotationStarted] are the cluster's if UID and
// generation are.
func Objects(vm *spec.VirtualMachine, s objects.Settings) ([]reconcile.Object, error) {
	if vm == nil {
		return nil, errors.New("no virtual machine is given")
	}
	snapshot := Snapshot{VM: vm, Settings: s}
	d := &decision{subject: subject{s: &snapshot, vm: manifest.Defaulted(vm), stored: &spec.VirtualMachineStatus{}}}
	spec.Amend(&d.vm.Spec)
	d.manifest = d.vm
	d.recall()
	d.findClaims()
	d.makeSecret()
	if encrypts(d.vm) && d.vm.Spec.VM.Display.TLS.GenerateSecret {
		d.makeCertificate()
	}
	d.findGrant()
	if d.vm.Spec.InlineUserData() != "" {
		holder := objects.UserDataHolder(d.vm, s, spec.UserDataSecret(d.vm.Name))
		d.userData = holder.Name
		d.plan.Actions = append(d.plan.Actions, reconcile.Create{Object: holder}, reconcile.Create{Object: objects.UserDataSecret(d.vm, s, holder)})
	}
	if err := d.makeConfigMap(); err != nil {
		return nil, err
	}
	d.makeClaims()
	var out []reconcile.Object
	for _, a := range d.plan.Actions {
		c, ok := a.(reconcile.Create)
		if !ok {
			continue
		}
		switch o := c.Object.(type) {
		case *corev1.Secret:
			if o.Labels[names.LabelComponent] == names.ComponentDisplaySecret {
				d.secret = o
			}
		case *corev1.ConfigMap:
			if o.Name == vm.Name {
				snapshot.ConfigMap = o
			}
		}
		out = append(out, c.Object)
	}
	pod := d.newPod()
	// The API server gives the versions.
	delete(pod.Annotations, names.AnnotationConfigVersion)
	delete(pod.Annotations, names.AnnotationDisplayVersion)
	out = append(out, pod)
	before := len(d.plan.Actions)
	d.makeService()
	for _, a := range d.plan.Actions[before:] {
		if service, ok := a.(reconcile.Apply); ok {
			out = append(out, service.Object)
		}
	}
	return out, nil
}
