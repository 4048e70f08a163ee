package machine

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"

	"github.com/vmop/sdk/internal/jsonwriter"
	"github.com/vmop/sdk/vmop/names"
	"github.com/vmop/sdk/vmop/reconcile"
	"github.com/vmop/sdk/vmop/reconcile/internal/manifest"
	"github.com/vmop/sdk/vmop/reconcile/machineconfig"
	"github.com/vmop/sdk/vmop/reconcile/objects"
	"github.com/vmop/sdk/vmop/reconcile/pool"
	"github.com/vmop/sdk/vmop/runnerconfig"
	"github.com/vmop/sdk/vmop/spec"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// makeSecret ensures the display secret. Any Secret with the labels is one; an existing password
// is never changed.
func (d *decision) makeSecret() {
	d.secret = objects.PickDisplaySecret(d.vm.Name, d.s.DisplaySecrets)
	if d.secret == nil && objects.WantsDisplaySecret(d.vm) {
		d.unmade = true
		if other := d.s.SecretInTheWay; other != nil {
			d.wakeAt(d.s.Now.Add(nameRetry)) // it is in no cache
			if d.configuration.setProblem(spec.ReasonNameTaken, named(names.KindSecret, other.Name),
				"Secret %s is not a display secret of the machine%s; rename it or the machine, or label it as one", other.Name, whose(other)) {
				d.configuration.further = fmt.Sprintf(": with %s=%s, %s=%s and %s=%s its display-password counts for the machine; it is not changed by itself",
					names.LabelName, names.AppName, names.LabelInstance, d.vm.Name, names.LabelComponent, names.ComponentDisplaySecret)
			}
			return
		}
		secret := objects.DisplaySecret(d.vm, d.s.Password)
		if uid := d.s.VM.UID; uid != "" {
			secret.Annotations = map[string]string{names.AnnotationMadeFor: string(uid)}
		}
		d.do(reconcile.Create{Object: secret}, &d.configuration)
	}
}

func whose(o *metav1.ObjectMeta) string {
	instance, by := o.Labels[names.LabelInstance], o.Labels[labelManagedBy]
	switch owner := metav1.GetControllerOfNoCopy(o); {
	case owner != nil:
		return fmt.Sprintf(" (it belongs to %s %s)", owner.Kind, owner.Name)
	case len(o.OwnerReferences) > 0:
		return fmt.Sprintf(" (it belongs to %s %s)", o.OwnerReferences[0].Kind, o.OwnerReferences[0].Name)
	case o.Labels[names.LabelName] == names.AppName && instance != "":
		return fmt.Sprintf(" (its labels name %s)", instance)
	case by != "":
		return fmt.Sprintf(" (it is managed by %s)", by)
	}
	return ""
}

// renews reports whether a guest's reboot is to end its pod because changes wait for the next
// one. It is not if the next one could not start: another user's machine would stay down after a
// reboot, or lose a claim that only its pod still protects.
func (d *decision) renews() bool {
	return d.pod.state == podRunning && len(d.awaiting) > 0 && d.startsNext()
}

// makeConfigMap ensures the runner's configuration. The error it returns is already in a finding.
func (d *decision) makeConfigMap() error {
	old := d.s.ConfigMap
	switch {
	case old != nil && old.DeletionTimestamp != nil:
		d.unmade = true
		d.configuration.setWaiting(spec.ReasonConfigurationNotApplied, named(names.KindConfigMap, old.Name), "ConfigMap %s is being deleted; it is made anew when it is gone", old.Name)
		return nil
	case old != nil && !d.ours(old):
		d.unmade = true
		d.wakeAt(d.s.Now.Add(nameRetry))
		d.configuration.setProblem(spec.ReasonNameTaken, named(names.KindConfigMap, old.Name), "ConfigMap %s is not the machine's; rename it or the machine", old.Name)
		return nil
	}
	if d.recalled {
		note, wanted := d.notedDocuments(old.Annotations[names.AnnotationApplied])
		if note == old.Annotations[names.AnnotationDocuments] && unchanged(wanted, old) {
			d.configured = true
			return nil
		}
	}
	made, err := d.configure(d.grantedVM())
	if err != nil {
		d.refuse(err)
		return err
	}
	return d.writeConfigMap(made)
}

func (d *decision) writeConfigMap(made configured) error {
	old, wanted := d.s.ConfigMap, made.wanted
	reconcile.Stamp(wanted, made.source)
	if old != nil && unchanged(wanted, old) {
		d.configured = true
		return nil
	}
	// Before unmade is set, which is a reason to keep a guest that reboots: the note is about the
	// configuration that is applied.
	note, _ := d.notedDocuments(wanted.Annotations[names.AnnotationApplied])
	d.unmade = true
	if err := objects.FillConfigMap(wanted, d.vm, &d.s.Settings, made.config); err != nil {
		d.refuse(err)
		return err
	}
	wanted.Annotations[names.AnnotationContent] = content(wanted.Data)
	if note != "" {
		wanted.Annotations[names.AnnotationDocuments] = note
	}
	if old == nil {
		d.do(reconcile.Create{Object: wanted}, &d.configuration)
		return nil
	}
	// It contains counters, so a newer version must not be overwritten.
	wanted.ResourceVersion = old.ResourceVersion
	d.do(reconcile.Apply{Object: wanted}, &d.configuration)
	return nil
}

func unchanged(wanted, old *corev1.ConfigMap) bool {
	return reconcile.Applied(wanted, old) && old.Annotations[names.AnnotationContent] == content(old.Data)
}

// configured is a configuration with its ConfigMap, still without content, and the source of its
// digest.
type configured struct {
	config runnerconfig.Config
	wanted *corev1.ConfigMap
	source []byte
}

// configure builds the configuration of vm, which is d.grantedVM except perhaps for its
// documents.
func (d *decision) configure(vm *spec.VirtualMachine) (configured, error) {
	memory := d.remembered()
	config, err := machineconfig.ForDefaulted(vm, d.disks, machineconfig.Options{
		ResetCounter: &memory.resets, GuestResetEnds: d.renews(), LoginUser: pool.LoginUser(d.s.VM, d.s.Pool),
		InstanceID: memory.instanceID, Origin: d.origin, VolumeModes: d.modes, GrowTo: d.growTo, NewDisks: d.newDisks(),
		OpenDisplay: objects.OpensDisplay(d.vm, &d.s.Settings, d.s.DisplaySecrets),
	})
	if len(d.vm.Spec.BlockDeviceRefs) > 0 {
		d.serials = runnerconfig.DiskSerials(config.Runner.VM.Drives)
	}
	objects.PlaceDisplay(&config, d.vm, &d.s.Settings)
	all, given := objects.GuestAmounts(d.vm), objects.GuestAmounts(vm)
	if all.CPUs > given.CPUs {
		config.Runner.VM.PendingCPUs = int(all.CPUs)
	}
	if all.RAM > given.RAM {
		config.Runner.VM.PendingRAM = runnerconfig.Bytes(all.RAM)
	}
	config.Runner.VM.Attachments = d.attachments()
	for _, a := range config.Runner.VM.Attachments {
		if d.attachedSerials == nil {
			d.attachedSerials = map[types.UID]string{}
		}
		d.attachedSerials[types.UID(a.UID)] = config.Runner.VM.AttachmentSerial(a.UID)
	}
	if err != nil {
		return configured{}, err
	}
	if !d.adopted().IsZero() {
		config.Runner.MachineUID = string(d.s.VM.UID)
	}
	if !d.wanted() && memory.generation > 0 {
		// The runner does not read a new generation that is otherwise the same.
		config.Runner.Generation, config.Runner.GuestResetEnds = memory.generation, memory.resetEnds
	}
	memory.generation, memory.resetEnds = config.Runner.Generation, config.Runner.GuestResetEnds
	if config.Runner.CloudInit != nil {
		memory.instanceID = config.Runner.CloudInit.MetaData[manifest.InstanceIDKey]
	}
	wanted := objects.BareConfigMap(d.vm, &d.s.Settings)
	memory.keep(wanted)
	// Numbers always encode.
	granted, _ := json.Marshal(d.grant)
	wanted.Annotations[names.AnnotationGranted] = string(granted)
	source, err := configSource(&config, objects.LoggingProperties(d.vm, &d.s.Settings))
	if err != nil {
		return configured{}, err
	}
	return configured{config, wanted, source}, nil
}

// notedDocuments returns the note for the ConfigMap if it contains what was applied, and that
// ConfigMap without content. The note is empty without documents.
func (d *decision) notedDocuments(applied string) (note string, wanted *corev1.ConfigMap) {
	if d.documents == "" {
		return "", nil
	}
	made, err := d.configure(brief(d.grantedVM()))
	if err != nil {
		return "", nil // with the documents it fails the same way
	}
	reconcile.Stamp(made.wanted, made.source, []byte(d.documents), []byte(applied))
	note = d.documents + "." + made.wanted.Annotations[names.AnnotationApplied]
	made.wanted.Annotations[names.AnnotationApplied] = applied
	return note, made.wanted
}

func configSource(config *runnerconfig.Config, logging string) ([]byte, error) {
	out := append(make([]byte, 0, 2048), `{"Config":`...) // more than most need
	out, err := config.AppendJSON(out)
	if err != nil {
		return nil, err
	}
	w := jsonwriter.New(out)
	w.Key("Logging")
	w.String(logging)
	w.Close('}')
	return w.Result()
}

func (d *decision) grantedVM() *spec.VirtualMachine {
	all := objects.GuestAmounts(d.vm)
	if d.grant == all {
		return d.vm
	}
	vm := *d.vm
	if d.grant.CPUs != all.CPUs {
		vm.Spec.VM.CurrentCPUs = new(int32(min(d.grant.CPUs, math.MaxInt32))) // less than the manifest's
	}
	if d.grant.RAM != all.RAM {
		vm.Spec.VM.CurrentRAM = resource.NewQuantity(d.grant.RAM, resource.BinarySI)
	}
	return &vm
}

func (d *decision) makeService() {
	old, wanted := d.s.Service, objects.Service(d.vm, d.s.Settings, objects.UsedDisplaySecret(d.vm, d.s.DisplaySecrets))
	switch {
	case old != nil && old.DeletionTimestamp != nil:
		if wanted != nil {
			d.configuration.setWaiting(spec.ReasonConfigurationNotApplied, named(names.KindService, old.Name), "Service %s is being deleted; it is made anew when it is gone", old.Name)
		}
	case wanted == nil:
		if old != nil && d.ours(old) && d.owned(old) {
			d.do(reconcile.DeleteService{Name: old.Name, UID: old.UID}, &d.configuration)
		}
	case old != nil && !d.ours(old):
		d.wakeAt(d.s.Now.Add(nameRetry))
		d.configuration.setProblem(spec.ReasonNameTaken, named(names.KindService, old.Name), "Service %s is not the machine's; rename it or the machine, or switch the machine's off with loadBalancerService: {}", old.Name)
	default:
		reconcile.Stamp(wanted)
		if old == nil || !reconcile.Applied(wanted, old) || !serviceApplied(&wanted.Spec, &old.Spec) {
			d.do(reconcile.Apply{Object: wanted}, &d.configuration)
		}
	}
}

func serviceApplied(wanted, stored *corev1.ServiceSpec) bool {
	if wanted.Type != stored.Type || !maps.Equal(wanted.Selector, stored.Selector) {
		return false
	}
	for _, w := range wanted.Ports {
		found := false
		for _, s := range stored.Ports {
			found = found || s.Name == w.Name && s.Protocol == w.Protocol && s.Port == w.Port && s.TargetPort == w.TargetPort
		}
		if !found {
			return false
		}
	}
	return true
}
