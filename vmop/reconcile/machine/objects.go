package machine

import (
	"errors"

	"github.com/vmop/sdk/vmop/names"
	"github.com/vmop/sdk/vmop/reconcile"
	"github.com/vmop/sdk/vmop/reconcile/internal/manifest"
	"github.com/vmop/sdk/vmop/reconcile/machineconfig"
	"github.com/vmop/sdk/vmop/reconcile/objects"
	"github.com/vmop/sdk/vmop/runnerconfig"
	"github.com/vmop/sdk/vmop/spec"
	corev1 "k8s.io/api/core/v1"
)

// Objects returns what a cluster gets for the machine, in the order in which it must exist: the
// display secret, the objects with the user data of the manifest, the ConfigMap, the volume
// claims, the pod (as it is while the machine should run) and the load balancer's service.
//
// They are those that [Decide] creates for a machine without any objects, with what they record
// for later decisions. Only the API server and the operator can add the rest: the password of the
// secret, and the versions of ConfigMap and secret on the pod. Owner references need a machine
// with a UID, and [names.AnnotationApplied], [names.AnnotationDocuments],
// [names.AnnotationGeneration] and [names.AnnotationStarted] are the cluster's if UID and
// generation are.
func Objects(vm *spec.VirtualMachine, s objects.Settings) ([]reconcile.Object, error) {
	if vm == nil {
		return nil, errNoMachine
	}
	_, made, err := unknown(vm, s).objects()
	return made, err
}

// Render returns [Objects] and the configuration in the ConfigMap. For a machine that
// [spec.Amend] changes it is the configuration as written, so that its errors are found.
func Render(vm *spec.VirtualMachine, s objects.Settings) (runnerconfig.Config, []reconcile.Object, error) {
	if vm == nil {
		return runnerconfig.Config{}, nil, errNoMachine
	}
	d := unknown(vm, s)
	config, made, err := d.objects()
	if len(d.amendments) > 0 {
		plain := unknown(vm, s)
		plain.disks = machineconfig.Disks(plain.vm)
		written, problem := plain.configure(plain.vm)
		if problem != nil {
			err = problem
		}
		config = written.config
	}
	if err != nil {
		return runnerconfig.Config{}, nil, err
	}
	return config, made, nil
}

var errNoMachine = errors.New("no virtual machine is given")

func unknown(vm *spec.VirtualMachine, s objects.Settings) *decision {
	d := &decision{subject: subject{s: &Snapshot{VM: vm, Settings: s}, vm: manifest.Defaulted(vm), stored: &spec.VirtualMachineStatus{}}}
	d.manifest = d.vm
	return d
}

func (d *decision) objects() (runnerconfig.Config, []reconcile.Object, error) {
	d.amendments = spec.Amend(&d.vm.Spec)
	d.recall()
	d.findClaims()
	d.makeSecret()
	if encrypts(d.vm) && d.vm.Spec.VM.Display.TLS.GenerateSecret {
		d.makeCertificate()
	}
	d.findGrant()
	if d.vm.Spec.InlineUserData() != "" {
		holder := objects.UserDataHolder(d.vm, d.s.Settings, spec.UserDataSecret(d.vm.Name))
		d.userData = holder.Name
		d.plan.Actions = append(d.plan.Actions, reconcile.Create{Object: holder}, reconcile.Create{Object: objects.UserDataSecret(d.vm, d.s.Settings, holder)})
	}
	configured, err := d.configure(d.grantedVM())
	if err == nil {
		err = d.writeConfigMap(configured)
	}
	if err != nil {
		return runnerconfig.Config{}, nil, err
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
			if o.Name == d.vm.Name {
				d.s.ConfigMap = o
			}
		}
		out = append(out, c.Object)
	}
	pod := d.newPod()
	// The API server assigns the versions.
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
	return configured.config, out, nil
}
