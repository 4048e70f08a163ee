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

// decision is the state of one call of Decide. Each step reads what the steps before it, in the
// order of Decide, have found.
type decision struct {
	subject
	intent
	storage
	obstacles
	findings

	plan reconcile.Plan
}

type subject struct {
	s  *Snapshot
	vm *spec.VirtualMachine // defaulted, amended, with its class applied, without status
	// manifest is vm without its class.
	manifest *spec.VirtualMachine
	// classNow is the class of vm, then that of its pod; nil if there is none.
	classNow, then *startedClass
	// unclassed: the class is not usable; oversized: it does not allow the size.
	unclassed, oversized bool
	// shown is the stored status, stored the part of it that is believed.
	shown, stored *spec.VirtualMachineStatus
	// documents is a digest of those for cloud-init, or ""; recalled: the ConfigMap notes that it
	// contains them.
	documents string
	recalled  bool
	// amendments are the differences of vm from what is stored.
	amendments []spec.Amendment
	pod        podView
}

type intent struct {
	// on: the machine should run. powered is the outcome of its run policy, nil without one.
	// restarts: its running pod is to be replaced.
	on       bool
	powered  *spec.Power
	restarts bool
	// heldBack is what keeps a restart that was asked for from coming; nil if nothing does.
	heldBack *finding
	// grant is what the guest may use.
	grant objects.Amounts
	// recorded and noted are caches of resizable and granted.
	recorded *recordedRequests
	noted    *notedGrant
	secret   *corev1.Secret
	// certificate is the name of the Secret with the display's certificate created by the
	// operator, or "".
	certificate string
	// userData is the name of the Secret with the manifest's user data, or "".
	userData string
}

type storage struct {
	disks []machineconfig.Disk
	// hot are the disks of the manifest that the running machine has, or gets, by its own
	// attachments; they are not in disks. startKnown: it is known which they are. unplugged is
	// how many of the awaited changes are such disks that could not be attached.
	hot        []machineconfig.Disk
	startKnown bool
	unplugged  int
	// claims begins with the runner's data, see runnerData.
	claims []neededClaim
	origin machineconfig.Origin
	// modes are the volume modes of existing claims by disk.
	modes map[string]corev1.PersistentVolumeMode
	// growTo holds the wanted sizes of VirtualDisks, in bytes.
	growTo          map[string]int64
	serials         []string
	attachedSerials map[types.UID]string
	// mounts are the volumes of attachments that the next pod mounts, if there is no pod;
	// exporter is the pod it waits for because of them, and exporterUntil until when.
	mounts        []objects.Attached
	exporter      string
	exporterUntil time.Time
	ranWith       []spec.MachineClaim
}

func (st *storage) runnerData() *neededClaim { return &st.claims[0] }

// obstacles are what earlier steps could not do, or did, and later ones depend on.
type obstacles struct {
	invalid bool
	// unmade: something that the pod needs does not exist yet as it should.
	unmade bool
	// filling: a claim of a VirtualDisk or an image does not have its content yet.
	filling bool
	// configured: the ConfigMap is as it should be.
	configured bool
	// unsuitable: the machine's image permits no pod.
	unsuitable bool
	// renewed: a Secret's document differs from what the guest was given; lacks: one is missing,
	// without which the machine is not started.
	renewed, lacks bool
	creates        bool
	// holds: the plan writes the machine, which changes its version; released: it removes the
	// finalizer.
	holds, released bool
}

// findings become the conditions and the rest of the status. For each subject the first problem
// stays, else the first finding.
type findings struct {
	configuration, devices, running, restart, accelerated, provisioning finding
	// Those about a class, of a machine that has one.
	class, size finding
	sole        finding
	// ready sums up the others; upToDate is about the runner's image.
	ready, upToDate finding
	// remarks end the message of an applied configuration.
	remarks  []string
	awaiting []spec.AwaitingChange
	waits    []spec.Wait
	// due is when the next wait's event is due.
	due time.Time
	end *spec.MachineEnd
}

func (d *decision) wakeAt(t time.Time) { d.plan.WakeAt(t) }

func (d *decision) machine() string { return named(spec.KindVirtualMachine, d.vm.Name) }

func (d *decision) wanted() bool { return d.on }

func (d *decision) owned(o metav1.Object) bool { return ownedBy(o, d.s.VM) }

// ours reports whether an object has the labels of the operator and of a machine of this name,
// whichever that was.
func (d *decision) ours(o metav1.Object) bool {
	l := o.GetLabels()
	return l[names.LabelName] == names.AppName && l[names.LabelInstance] == d.vm.Name && l[names.LabelManagedBy] == names.ManagedBy
}

type notedGrant struct {
	amounts objects.Amounts
	known   bool
}

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

// mine reports whether a claim with a name the operator would give may be used for the machine.
// Two machines' names can lead to the same claim name; the label decides. One without the label
// was prepared for the machine.
func (d *decision) mine(pvc *corev1.PersistentVolumeClaim) bool {
	instance, labelled := pvc.Labels[names.LabelInstance]
	return !labelled || instance == d.vm.Name
}

func (d *decision) isHot(claim string) bool {
	return claim != "" && slices.ContainsFunc(d.hot, func(disk machineconfig.Disk) bool { return disk.Claim == claim })
}
