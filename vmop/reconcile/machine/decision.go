package machine

import (
	"slices"
	"time"

	"github.com/vmop/sdk/vmop/names"
	"github.com/vmop/sdk/vmop/reconcile"
	"github.com/vmop/sdk/vmop/reconcile/machineconfig"
	"github.com/vmop/sdk/vmop/reconcile/objects"
	"github.com/vmop/sdk/vmop/spec"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// decision is the state of one call of Decide. Its steps are in the order in which Decide
// names them: each reads what those before it have found.
type decision struct {
	subject
	intent
	storage
	obstacles
	findings

	plan reconcile.Plan
}

// subject is what a decision is about.
type subject struct {
	s  *Snapshot
	vm *spec.VirtualMachine // with its defaults, amended, of its class, and without status
	// manifest is what vm would be without its class.
	manifest *spec.VirtualMachine
	// classNow is the class of vm, nil if there is none; then that of its pod, if it
	// has any.
	classNow, then *startedClass
	// unclassed: the class is not to be had; oversized: it does not allow the size.
	unclassed, oversized bool
	// shown is the status as it is stored, stored what is believed of it.
	shown, stored *spec.VirtualMachineStatus
	// documents is a digest of those for cloud-init, empty if there are none; recalled: the
	// ConfigMap notes that it has them.
	documents string
	recalled  bool
	// amendments are what vm has otherwise than it is stored.
	amendments []spec.Amendment
	pod        podView
}

// intent is what is to become of the machine.
type intent struct {
	// on: the machine should run. powered is what its run policy has come to, nil if
	// it has none. restarts: its pod is to be replaced though it runs.
	on       bool
	powered  *spec.Power
	restarts bool
	// grant is what the runner is told that the guest may use.
	grant objects.Amounts
	// recorded and noted are read once; see resizable and granted.
	recorded *recordedRequests
	noted    *notedGrant
	// secret is the display secret, nil if there is none.
	secret *corev1.Secret
	// certificate is the name of the Secret with the certificate of the display, if
	// the operator makes it and there is one.
	certificate string
	// userData is the name of the Secret with the user data of the manifest, if that has
	// any and there is one.
	userData string
}

// storage is what is known of the disks of the machine and their claims.
type storage struct {
	disks []machineconfig.Disk
	// hot are the disks of the manifest that the machine that runs has, or gets, by
	// attachments of its own: disks has them not. startKnown: it is known which they are.
	// unplugged is how many of the changes that are waited for are such disks, which could
	// not be attached.
	hot        []machineconfig.Disk
	startKnown bool
	unplugged  int
	// claims has the one with the runner's data first, see runnerData.
	claims []neededClaim
	origin machineconfig.Origin
	// modes are those of the claims of disks that are there.
	modes map[string]corev1.PersistentVolumeMode
	// growTo is how large those are to be that are VirtualDisks, in bytes.
	growTo map[string]int64
	// serials are the serial numbers of the disks, one for each, if the configuration
	// could be made.
	serials []string
	// attachedSerials are those of the disks that are attached, by the attachments.
	attachedSerials map[types.UID]string
	// mounts are the volumes of attachments that the next pod has, if there is none, exporter
	// is the pod that it waits for because of them, and exporterUntil until when.
	mounts        []objects.Attached
	exporter      string
	exporterUntil time.Time
	// ranWith are the claims that the machine has run with.
	ranWith []spec.MachineClaim
}

// runnerData is the claim with the runner's own data, which findClaims finds.
func (st *storage) runnerData() *neededClaim { return &st.claims[0] }

// obstacles are what later steps must know of what earlier ones could not do, or did.
type obstacles struct {
	// invalid: the specification cannot be carried out.
	invalid bool
	// unmade: something that the pod needs does not exist yet as it should.
	unmade bool
	// configured: the ConfigMap is there as it should be.
	configured bool
	// unsuitable: no pod is made with the image that the machine has.
	unsuitable bool
	// renewed: a document of a Secret is another one than the guest was given; lacks:
	// one is gone, without which the machine is not started.
	renewed, lacks bool
	// creates: the plan makes the pod.
	creates bool
	// holds: the plan writes the machine, which has another version then; released:
	// it lets the machine go.
	holds, released bool
}

// findings are what the conditions will say, and the rest of the status. The first
// problem with something stays, or else the first finding.
type findings struct {
	configuration, devices, running, restart, accelerated, provisioning finding
	// Those about a class, of a machine that has one.
	class, size finding
	// sole is about other operators.
	sole finding
	// ready sums up the others, upToDate is about the runner's image.
	ready, upToDate finding
	// remarks end the message of a configuration that is applied.
	remarks  []string
	awaiting []spec.AwaitingChange
	waits    []spec.Wait
	// due is when the next of the waits is to be told.
	due time.Time
	end *spec.MachineEnd
}

// wakeAt asks for another look.
func (d *decision) wakeAt(t time.Time) { d.plan.WakeAt(t) }

func (d *decision) machine() string { return named(spec.KindVirtualMachine, d.vm.Name) }

// wanted reports whether the machine should run.
func (d *decision) wanted() bool { return d.on }

// owned reports whether an object has the machine as an owner.
func (d *decision) owned(o metav1.Object) bool { return ownedBy(o, d.s.VM) }

// ours reports whether an object has the labels of the operator and of a machine
// of this name, whichever that was.
func (d *decision) ours(o metav1.Object) bool {
	l := o.GetLabels()
	return l[names.LabelName] == names.AppName && l[names.LabelInstance] == d.vm.Name && l[names.LabelManagedBy] == names.ManagedBy
}

// notedGrant is what [decision.granted] has read.
type notedGrant struct {
	amounts objects.Amounts
	known   bool
}

// recordedRequests is what [decision.resizable] has found.
type recordedRequests struct {
	requests  objects.Requests
	container *corev1.Container
}

func (d *decision) claim(name string) *corev1.PersistentVolumeClaim {
	for i := range d.s.Claims {
		if d.s.Claims[i].Name == name {
			return &d.s.Claims[i]
		}
	}
	return nil
}

// mine reports whether a claim of a name that the operator would give may be used
// for the machine. The names of two machines can lead to the same name of a
// claim, and the label tells whose it is. One without the label was prepared
// for the machine.
func (d *decision) mine(pvc *corev1.PersistentVolumeClaim) bool {
	instance, labelled := pvc.Labels[names.LabelInstance]
	return !labelled || instance == d.vm.Name
}

// isHot reports whether the machine that runs has a disk, or gets it, by an attachment of
// its own.
func (d *decision) isHot(claim string) bool {
	return claim != "" && slices.ContainsFunc(d.hot, func(disk machineconfig.Disk) bool { return disk.Claim == claim })
}
