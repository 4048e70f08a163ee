package takeover

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/vmop/sdk/vmop/names"
	"github.com/vmop/sdk/vmop/qemucmd"
	machinekind "github.com/vmop/sdk/vmop/reconcile/machine"
	vmobjects "github.com/vmop/sdk/vmop/reconcile/objects"
	"github.com/vmop/sdk/vmop/spec"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

func (c *check) machines() {
	for _, o := range c.objects.ofKind(spec.KindVirtualMachine) {
		c.machine(o)
	}
}

func (c *check) machine(o *unstructured.Unstructured) {
	refused := c.refused(o)
	vm, ok := as[spec.VirtualMachine](o)
	if !ok {
		return // reported by refused
	}
	m := machine{check: c, vm: vm, settings: c.settingsOf(o.GetNamespace())}
	m.present, _ = get[corev1.Pod](c.objects, kindPod, vm.Namespace, vm.Name)
	m.life()
	spec.Default(vm)
	if objects, err := machinekind.Objects(vm, m.settings); err == nil {
		for _, o := range objects {
			if pod, ok := o.(*corev1.Pod); ok {
				m.pod = pod
			}
		}
	} else if !refused {
		m.say(Before, TopicManifest, "", err.Error(), "correct it: the machine is not started with it")
	}
	if len(validation.IsDNS1035Label(vm.Name)) > 0 {
		m.say(Note, TopicManifest, "metadata.name", "a Service of Kubernetes cannot be called so: the machine has no load balancer, whatever loadBalancerService says", "")
	}
	m.image()
	m.template()
	m.rights()
	m.networks()
	m.disks()
	m.bootOrder()
	m.cloudInit()
	m.kvm()
	m.display()
	m.ignored()
}

// refused adds findings about stored fields that vmop's CRD does not accept, and reports whether
// vmop ignores the object because of them. Metadata and status are not checked: the API server
// writes them.
func (c *check) refused(o *unstructured.Unstructured) bool {
	bare := map[string]any{
		"apiVersion": o.GetAPIVersion(), "kind": o.GetKind(), "spec": o.Object["spec"],
		"metadata": map[string]any{"name": o.GetName(), "namespace": o.GetNamespace()},
	}
	data, err := json.Marshal(bare)
	if err != nil {
		return false
	}
	// Fields that VM-Operator's CRD does not have were never stored.
	objects, err := spec.Load(o.GetName(), data, spec.Options{Default: true, Lenient: true})
	var found []Finding
	stored := func(u Urgency, field, message, do string) {
		found = append(found, Finding{Urgency: u, Field: field, What: "VM-Operator has stored this, " + message, Do: do})
	}
	var bad *spec.LoadError
	if errors.As(err, &bad) {
		for _, p := range bad.Problems {
			stored(Before, p.Path, "and vmop cannot read it: "+p.Message, "correct it")
		}
	}
	var wrong field.ErrorList
	for i := range objects {
		if vm := objects[i].VirtualMachine; vm != nil {
			wrong = append(wrong, spec.ValidateStored(vm)...)
			for _, a := range spec.Amend(&vm.Spec) {
				stored(Differs, a.Field, "which vmop's definition does not take any more: it "+a.Message, "correct it")
			}
		}
		if pool := objects[i].VmPool; pool != nil {
			wrong = append(wrong, spec.ValidatePool(pool)...)
		}
	}
	refused := false
	for _, e := range wrong {
		if e.Field == templateField {
			refused = true // the finding about the template has the remedy
			continue
		}
		stored(Before, e.Field, "and vmop does nothing with it: "+e.ErrorBody(), "correct it")
	}
	for _, f := range found {
		c.say(o.GetKind(), o.GetNamespace(), o.GetName(), f.Urgency, TopicManifest, f.Field, f.What, f.Do)
		refused = refused || f.Urgency == Before
	}
	return refused
}

func (m *machine) life() {
	switch p := m.present; {
	case p == nil || p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed:
		m.say(Note, TopicRestart, "", "it does not run; vmop starts it when spec.vm.state is Running", "")
	case p.Annotations[names.AnnotationStarted] != "":
		m.say(Note, TopicRestart, "", "it runs in a pod that vmop has made", "")
	default:
		m.say(Note, TopicRestart, "", "it runs on in VM-Operator's pod, whose runner follows changes of processors, memory and CDs; what is said here comes with its next start", "")
	}
}

func (m *machine) image() {
	if m.pod == nil {
		return
	}
	image := m.pod.Spec.Containers[0].Image
	if !vmobjects.IsFormerRunner(image) {
		return
	}
	if i := m.vm.Spec.Image; i == nil || i.Source == vmobjects.DefaultImage() {
		m.say(Before, TopicImage, "spec.image", "the manifest names no image, and no setting of the operator says which one vmop's runner is: the default is "+image+", which cannot run in vmop's pods",
			"set VMOP_RUNNER_IMAGE, a setting of the operator")
		return
	}
	m.say(Before, TopicImage, "spec.image", "it names VM-Operator's runner, "+image+", which cannot run in vmop's pods: it needs root and a privileged container",
		"remove spec.image from the manifest, which then means the operator's VMOP_RUNNER_IMAGE, or replace it for all by the setting VMOP_RUNNER_IMAGES=IMAGE=IMAGE")
}

const templateField = "spec.runnerTemplate.source"

func (m *machine) template() {
	source := m.vm.Spec.RunnerTemplate.Source
	err := qemucmd.CheckTemplateName(source)
	switch {
	case source == "":
	case err != nil:
		m.say(Before, TopicTemplate, templateField, err.Error(), "remove "+templateField+" for the standard machine, or write a Go template; examples/watchdog has one")
	case qemucmd.IsStandardTemplate(source):
		m.say(Note, TopicTemplate, templateField, source+" is VM-Operator's standard machine, which is vmop's", "")
	}
}

func (m *machine) rights() {
	if m.pod == nil {
		return
	}
	needs := privileges(m.pod)
	// It has one capability, which the level baseline allows.
	root := m.settings.TakeOverData && m.former()
	if len(needs) == 0 && !root {
		return
	}
	const label = "pod-security.kubernetes.io/enforce"
	ns, ok := get[corev1.Namespace](m.objects, kindNamespace, "", m.vm.Namespace)
	if !ok {
		return
	}
	switch level := ns.Labels[label]; {
	case len(needs) > 0 && (level == "restricted" || level == "baseline"):
		m.say(Before, TopicNamespace, "", fmt.Sprintf("its pod needs %s, which a namespace with the level %s does not admit", strings.Join(needs, " and "), level),
			fmt.Sprintf("kubectl label --overwrite namespace %s %s=privileged, or give the machine what needs less", m.vm.Namespace, label))
	case root && level == "restricted":
		m.say(Before, TopicNamespace, "", "its first pod has a container that is root with CAP_CHOWN, for the files of VM-Operator's runner (VMOP_TAKE_OVER_DATA), which a namespace with the level restricted does not admit",
			fmt.Sprintf("kubectl label --overwrite namespace %s %s=baseline until the machine has started once, or set VMOP_TAKE_OVER_DATA=false and give the files to user %d yourself", m.vm.Namespace, label, vmobjects.RunnerUser))
	}
}

// cloudInit reports a guest that cloud-init would take for a new one.
func (m *machine) cloudInit() {
	ci := m.vm.Spec.CloudInit
	if ci == nil || ci.MetaData["instance-id"] != "" {
		return
	}
	if _, ok := m.objects[key{kindConfigMap, m.vm.Namespace, m.vm.Name}]; ok {
		m.say(Note, TopicBoot, "spec.cloudInit", "cloud-init keeps the instance-id of the ConfigMap that is there; it does not follow the generation any more", "")
		return
	}
	m.say(Differs, TopicBoot, "spec.cloudInit", "there is no ConfigMap with the instance-id that the guest has: cloud-init takes it for a new machine and runs its once-per-instance modules again",
		"set spec.cloudInit.metaData.instance-id to what cloud-id or /var/lib/cloud/data/instance-id says in the guest")
}

func (m *machine) kvm() {
	s := &m.settings
	if m.vm.Spec.VM.Accelerator == spec.AcceleratorTCG {
		return
	}
	switch {
	case s.KVMResource == "" && !s.Privileged:
		m.say(Before, TopicKVM, "", "VM-Operator's pods were privileged and had KVM; this one has no way to it and runs in software emulation, which is many times slower",
			"set VMOP_KVM_RESOURCE (with a device plugin) or VMOP_PRIVILEGED=true, settings of the operator")
	case s.KVMResource != "" && m.objects.has(kindNode) && !m.offered(s.KVMResource):
		m.say(Before, TopicKVM, "", fmt.Sprintf("no node offers the resource %s that the configuration names: the pod would not be scheduled", s.KVMResource),
			"install a device plugin that offers it")
	}
}

func (c *check) offered(name corev1.ResourceName) bool {
	for _, o := range c.objects.ofKind(kindNode) {
		if node, ok := as[corev1.Node](o); ok {
			if q := node.Status.Allocatable[name]; !q.IsZero() {
				return true
			}
		}
	}
	return false
}

func (m *machine) ignored() {
	if m.vm.Spec.LoggingProperties != "" {
		m.say(Note, TopicSettings, "spec.loggingProperties", "only VM-Operator's runner, a Java program, reads it", "")
	}
	if len(m.vm.Spec.Permissions) > 0 {
		m.say(Differs, TopicUsers, "spec.permissions", "VM-Operator's web interface enforced them, and vmop has none: they are kept for a user interface (package reconcile/console, examples/go-pools)", "give people rights by roles of Kubernetes, or write a user interface")
	}
}

func (c *check) pools() {
	for _, o := range c.objects.ofKind(spec.KindVMPool) {
		c.refused(o)
		c.say(spec.KindVMPool, o.GetNamespace(), o.GetName(), Differs, TopicUsers, "", "VM-Operator's web interface assigned its machines to users; vmop keeps assignments, frees a machine when the pool's retention has passed, and has no web interface",
			"write a user interface with package reconcile/pool; examples/go-pools shows how")
	}
}
