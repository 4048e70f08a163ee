package machine

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/vmop/sdk/vmop/conditions"
	"github.com/vmop/sdk/vmop/names"
	"github.com/vmop/sdk/vmop/reconcile/changes"
	"github.com/vmop/sdk/vmop/reconcile/internal/manifest"
	"github.com/vmop/sdk/vmop/reconcile/machineconfig"
	"github.com/vmop/sdk/vmop/reconcile/objects"
	"github.com/vmop/sdk/vmop/spec"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// startedManifest is what a pod remembers of the specification it was made for.
type startedManifest struct {
	Generation int64 `json:"generation"`
	// Class is behind the generation, where it is looked for.
	Class *startedClass            `json:"class,omitempty"`
	Spec  *spec.VirtualMachineSpec `json:"spec"`
}

// started is the annotation of a new pod.
func started(vm *spec.VirtualMachine, class *startedClass) string {
	data, err := json.Marshal(startedManifest{Generation: vm.Generation, Class: class, Spec: concealed(&vm.Spec)})
	if err != nil {
		// A RawExtension that holds no JSON, which spec.Validate refuses.
		return ""
	}
	return string(data)
}

// startedWith reads the annotation of a pod; nil if that cannot be read.
func startedWith(text string) *startedManifest {
	var then startedManifest
	if json.Unmarshal([]byte(text), &then) != nil || then.Spec == nil {
		return nil
	}
	return &then
}

// startedAnew is what a pod remembers if another machine takes it over: generations
// count anew, so that the specification is compared with what it was started with. The
// rest stays as it is, whatever a later version has written there. What cannot be read
// is kept.
func startedAnew(text string) string {
	var then struct {
		Generation int64           `json:"generation"`
		Class      json.RawMessage `json:"class,omitempty"`
		Spec       json.RawMessage `json:"spec"`
	}
	if json.Unmarshal([]byte(text), &then) != nil {
		return text
	}
	then.Generation = 0
	data, err := json.Marshal(then)
	if err != nil {
		return text
	}
	return string(data)
}

// concealed is a specification without what may be secret and what
// never waits for a restart. Documents are replaced by digests, so that a change
// still shows. It shares all else with the original, and is only to be read.
func concealed(s *spec.VirtualMachineSpec) *spec.VirtualMachineSpec {
	shown := *s
	c := &shown
	c.Permissions, c.Pools, c.LoadBalancerService = nil, nil, nil
	if c.LoggingProperties != "" {
		c.LoggingProperties = digest([]byte(c.LoggingProperties))
	}
	if s.CloudInit != nil {
		i := *s.CloudInit
		i.MetaData = maps.Clone(i.MetaData)
		for k, v := range i.MetaData {
			i.MetaData[k] = digest([]byte(v))
		}
		i.UserData, i.NetworkConfig = digested(i.UserData), digested(i.NetworkConfig)
		c.CloudInit = &i
	}
	if s.Provisioning != nil && s.Provisioning.UserData != "" {
		p := *s.Provisioning
		p.UserData = digest([]byte(p.UserData))
		c.Provisioning = &p
	}
	return c
}

func digested(raw *runtime.RawExtension) *runtime.RawExtension {
	if raw == nil {
		return nil
	}
	data, err := manifest.RawJSON(raw)
	if err != nil || len(data) == 0 {
		return nil
	}
	return &runtime.RawExtension{Raw: fmt.Appendf(nil, `{"sha256":%q}`, digest(data))}
}

func digest(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:16])
}

// findRestart finds the changes that wait for the machine's next start.
func (d *decision) findRestart() {
	none := finding{status: metav1.ConditionFalse, reason: spec.ReasonNoRestartRequired, message: "no change waits for a restart"}
	if d.invalid {
		d.awaiting = nil
		d.restart = finding{status: metav1.ConditionUnknown, reason: spec.ReasonInvalidSpecification, message: "the specification is not valid"}
		return
	}
	if !d.pod.exists() {
		d.restart = none
		return
	}
	text, known := d.pod.pod.Annotations[names.AnnotationStarted]
	// This is what an unchanged machine has, without reading what is long.
	same := d.asStarted(text)
	if !known {
		d.restart = finding{status: metav1.ConditionUnknown, reason: spec.ReasonUnexpectedState,
			message: "the machine was started by VM-Operator, which does not note with what; this is known after the next start"}
		return
	}
	var before *spec.VirtualMachineSpec
	if !same {
		then := startedWith(text)
		if then == nil {
			d.restart = finding{status: metav1.ConditionUnknown, reason: spec.ReasonUnexpectedState,
				message: "annotation " + names.AnnotationStarted + " of the pod cannot be read; what waits is known after the next start"}
			return
		}
		before = then.Spec
	}
	d.startKnown = true
	d.findChanges(before)
	d.formerCertificate()
	d.newDocuments()
	if len(d.awaiting) == 0 {
		d.restart = none
		return
	}
	d.restart = finding{status: metav1.ConditionTrue, reason: spec.ReasonChangesPendingRestart,
		message: fmt.Sprintf("%d changes wait for the next start of the machine; see status.restartAwaitingChanges", len(d.awaiting))}
	if len(d.awaiting) == 1 {
		d.restart.message = "the change of " + d.awaiting[0].Path + " waits for the next start of the machine"
		if m, more, cut := strings.Cut(d.awaiting[0].Message, "; "); m != "" {
			d.restart.message += ": " + m
			if cut && len(d.restart.message)+len(more) > conditions.Line {
				d.restart.message += "; see status.restartAwaitingChanges"
			} else if cut {
				d.restart.message += "; " + more
			}
		}
	}
}

// findChanges finds the changes of the manifest that wait; then is nil if it is that which
// the pod was made for.
func (d *decision) findChanges(then *spec.VirtualMachineSpec) {
	if then != nil {
		d.compare(then)
	}
	d.tellHot()
	d.keptCPUs()
	d.unreachableCD()
}

// newDocuments finds documents of Secrets that only the next start gives to the guest. The operator
// cannot read them; the runner sees what it was given, and says whether it is otherwise now. One
// that is gone is nothing to restart for: the machine would not start.
func (d *decision) newDocuments() {
	if !d.executing() {
		return // they are those of a runner that has ended
	}
	for _, c := range d.stored.ChangedDocuments {
		path, secret := document(d.vm, c.Name)
		what := "the content of"
		if c.Name == spec.DocumentDisplayCertificate {
			what = "the certificate of the display in"
		}
		switch {
		case path == "" || slices.ContainsFunc(d.awaiting, func(a spec.AwaitingChange) bool { return strings.HasPrefix(a.Path, path) }):
			// It is to have another one altogether.
		case c.Missing:
			d.lacks = true
			d.remarks = append(d.remarks, fmt.Sprintf("%s: the Secret %s, or the key in it, is not there any more, and the next start waits for it", path, secret))
		default:
			// Viewers alone see a certificate, and issuers renew it as they see fit:
			// that stops no guest by itself.
			d.renewed = d.renewed || c.Name != spec.DocumentDisplayCertificate
			message := what + " the Secret " + secret + " has changed"
			if known := changes.OfKnownInstance(d.vm, path); known != "" {
				message += "; " + known
			}
			d.awaiting = append(d.awaiting, spec.AwaitingChange{Operation: spec.OperationReplace, Path: path, Message: message})
		}
	}
}

// document is where a manifest names a document that comes from a Secret, and which
// Secret; empty if it names none.
func document(vm *spec.VirtualMachine, name string) (path, secret string) {
	if name == spec.DocumentDisplayCertificate {
		if !encrypts(vm) || vm.Spec.VM.Display.TLS.GenerateSecret {
			return "", "" // one that the operator makes stays what it is
		}
		return "spec.vm.display.tls.secretName", vm.Spec.VM.Display.TLS.SecretName
	}
	if p := vm.Spec.Provisioning; p != nil {
		switch {
		case name == spec.DocumentUserData && p.UserDataRef != nil:
			return "spec.provisioning.userDataRef", p.UserDataRef.Name
		case name == spec.DocumentSysprep && p.SysprepRef != nil:
			return "spec.provisioning.sysprepRef", p.SysprepRef.Name
		}
	}
	c := vm.Spec.CloudInit
	if c == nil {
		return "", ""
	}
	from := map[string]*spec.CloudInitSource{
		spec.DocumentMetaData: c.MetaDataFrom, spec.DocumentUserData: c.UserDataFrom, spec.DocumentNetworkConfig: c.NetworkConfigFrom,
	}[name]
	if from == nil {
		return "", ""
	}
	return "spec.cloudInit." + name + "From", from.SecretRef.Name
}

func (d *decision) compare(then *spec.VirtualMachineSpec) {
	now := concealed(&d.vm.Spec)
	old, new := &spec.VirtualMachine{Spec: *then}, &spec.VirtualMachine{Spec: *now}
	old.Name, new.Name = d.vm.Name, d.vm.Name
	for _, c := range d.between(old, new) {
		if c.Applied != changes.AppliedRestart {
			continue
		}
		waits := spec.AwaitingChange{
			Operation: c.Operation, Path: c.Path, CurrentValue: extension(c.OldValue), DesiredValue: extension(c.NewValue),
		}
		if c.IsDisk() {
			waits.Message = c.Reason
		}
		d.awaiting = append(d.awaiting, waits)
	}
	d.shorterGrace(then)
}

// shorterGrace finds a power-down timeout that is longer than the pod lets it be. The
// operator and the runner follow it at once; whoever else deletes the pod (kubectl
// delete pod, a drain of the node) gives it the grace period that it was made with,
// which Kubernetes never changes. A shorter one is the runner's to keep.
func (d *decision) shorterGrace(then *spec.VirtualMachineSpec) {
	had, has := then.ShutdownSeconds(), d.vm.Spec.ShutdownSeconds()
	if then.VM.PowerdownTimeout == nil || has <= had {
		return
	}
	path := "spec.vm.powerdownTimeout"
	if d.vm.Spec.TerminationGracePeriodSeconds != nil {
		path = "spec.terminationGracePeriodSeconds"
	}
	d.awaiting = append(d.awaiting, spec.AwaitingChange{
		Operation: spec.OperationReplace, Path: path,
		CurrentValue: extension(fmt.Append(nil, had)), DesiredValue: extension(fmt.Append(nil, has)),
	})
}

// keptCPUs finds processors that only the next start removes: a machine without
// KVM keeps them (live.UnplugCPU has why), which only its runner's report shows.
func (d *decision) keptCPUs() {
	has, wanted := d.stored.CPUs, changes.CurrentCPUs(&d.vm.Spec.VM)
	if !d.executing() || d.stored.Accelerator != string(spec.AcceleratorTCG) || has <= wanted {
		return
	}
	d.awaiting = append(d.awaiting, spec.AwaitingChange{
		Operation: spec.OperationReplace, Path: "spec.vm.currentCpus",
		CurrentValue: extension(fmt.Append(nil, has)), DesiredValue: extension(fmt.Append(nil, wanted)),
	})
}

// repositoryField is a field that names a file of the image repository; empty if
// there is none.
func (d *decision) repositoryField() string {
	if fields := machineconfig.RepositoryFiles(d.vm); len(fields) > 0 {
		return fields[0]
	}
	return ""
}

// unreachableCD finds a file of the image repository that only the next pod can
// have: this one was made when nothing named any.
func (d *decision) unreachableCD() {
	if objects.PodHasClaim(d.pod.pod, names.ImageRepositoryClaim) {
		return
	}
	field := d.repositoryField()
	if field == "" || slices.ContainsFunc(d.awaiting, func(c spec.AwaitingChange) bool { return c.Path == field }) {
		return
	}
	d.awaiting = append(d.awaiting, spec.AwaitingChange{Operation: spec.OperationReplace, Path: field})
}

func extension(raw json.RawMessage) *runtime.RawExtension {
	if raw == nil {
		return nil
	}
	return &runtime.RawExtension{Raw: raw}
}

// sameAwaiting reports whether two changes say the same. Their values are compared, and
// not their text: the API server keeps the fields of a value in an order of its own.
func sameAwaiting(a, b spec.AwaitingChange) bool {
	return a.Operation == b.Operation && a.Path == b.Path && a.Message == b.Message &&
		sameValue(a.CurrentValue, b.CurrentValue) && sameValue(a.DesiredValue, b.DesiredValue)
}

func sameValue(a, b *runtime.RawExtension) bool {
	if a == nil || b == nil {
		return a == b
	}
	if bytes.Equal(a.Raw, b.Raw) {
		return true
	}
	x, errX := decodeValue(a.Raw)
	y, errY := decodeValue(b.Raw)
	return errX == nil && errY == nil && reflect.DeepEqual(x, y)
}

// decodeValue is a value of JSON, with numbers as they are written.
func decodeValue(raw []byte) (any, error) {
	var v any
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	err := dec.Decode(&v)
	return v, err
}
