package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/vmop/sdk/frontends/cli/cluster"
	"github.com/vmop/sdk/internal/textout"
	"github.com/vmop/sdk/vmop/conditions"
	"github.com/vmop/sdk/vmop/imageinspect"
	"github.com/vmop/sdk/vmop/imagesource"
	"github.com/vmop/sdk/vmop/reconcile/objects"
	"github.com/vmop/sdk/vmop/runner/tunnel"
	"github.com/vmop/sdk/vmop/runnerconfig"
	"github.com/vmop/sdk/vmop/spec"
	"github.com/vmop/sdk/vmop/transfer"
)

type upload struct {
	*diskWork
	out  *diskDone
	file *os.File
	size int64
	// object is the target, claim the name of its volume claim.
	object metav1.Object
	claim  string
}

type uploadState struct {
	phase      spec.DiskPhase
	progress   string
	made       *spec.VirtualDiskImport
	conditions []spec.Condition
	source     *spec.VirtualDiskSource
}

func stateOfDisk(d *spec.VirtualDisk) uploadState {
	return uploadState{d.Status.Phase, d.Status.Progress, d.Status.Import, d.Status.Conditions, d.Spec.DataSource}
}

func stateOfImage(i *spec.VirtualImage) uploadState {
	return uploadState{spec.DiskPhase(i.Status.Phase), i.Status.Progress, i.Status.Import, i.Status.Conditions, &i.Spec.DataSource}
}

func (w *diskWork) upload(namespace, name, path string) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return fmt.Errorf("%s: it is no file", path)
	}
	u := &upload{diskWork: w, out: &diskDone{Namespace: namespace, Disk: name, Action: w.action}, file: file, size: info.Size(), claim: objects.ClaimOfDisk(name)}
	if w.c.Bool("image") {
		u.claim = objects.ClaimOfImage(name)
	}
	needs, err := u.needs()
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	state, err := u.find(namespace, name, needs)
	if err != nil {
		return err
	}
	switch {
	case w.c.Bool("dry-run"):
	case state.source == nil || state.source.Type != spec.DiskSourceUpload:
		return fmt.Errorf("%s is not one of an upload, and its source cannot be changed: make another one", fullName(namespace, name))
	case state.phase.Usable():
		return fmt.Errorf("%s has its content already, which nothing is written over: make another one", fullName(namespace, name))
	}
	return w.finish(u.out, createReserve, u.run)
}

// needs returns the minimum size of the disk or image; 0 if it is unknown because the file is
// compressed.
func (u *upload) needs() (int64, error) {
	_, size, err := imageinspect.ProbeImported(u.file, u.size)
	switch {
	case errors.Is(err, imageinspect.ErrCompressed):
		return 0, nil // what cannot be unpacked there is refused there
	case err != nil:
		return 0, err
	case u.c.Bool("image"): // with the file system's overhead
		return u.size + u.size/8 + 64<<20, nil
	}
	return size, nil
}

func (u *upload) find(namespace, name string, needs int64) (uploadState, error) {
	ctx, cancel := u.request()
	defer cancel()
	var state uploadState
	var err error
	if u.c.Bool("image") {
		var i *spec.VirtualImage
		if i, err = u.client.Image(ctx, namespace, name); err == nil {
			u.object, state = i, stateOfImage(i)
		}
	} else {
		var d *spec.VirtualDisk
		if d, err = u.client.Disk(ctx, namespace, name); err == nil {
			u.object, state = d, stateOfDisk(d)
		}
	}
	if !errors.Is(err, cluster.ErrNoDisk) {
		return state, err
	}
	size, err := u.wantedSize(needs)
	if err != nil {
		return state, err
	}
	source := spec.VirtualDiskSource{Type: spec.DiskSourceUpload}
	if sum := u.c.String("checksum"); sum != "" {
		source.Upload = &spec.VirtualDiskUpload{Checksum: &spec.VirtualDiskChecksum{}}
		switch kind, digits, _ := strings.Cut(sum, ":"); kind {
		case "sha256":
			source.Upload.Checksum.SHA256 = digits
		case "sha512":
			source.Upload.Checksum.SHA512 = digits
		default:
			return state, usagef(u.c, "--checksum %q: want sha256:HEX or sha512:HEX", sum)
		}
	}
	var class *string
	if u.c.IsSet("storage-class") {
		class = new(u.c.String("storage-class"))
	}
	if u.c.Bool("image") {
		i := spec.NewImage(namespace, name, size, source)
		i.Spec.PersistentVolumeClaim.StorageClassName = class
		made, err := u.client.CreateImage(ctx, i, u.c.Bool("dry-run"))
		if err != nil {
			return state, err
		}
		u.object = made
		return stateOfImage(made), nil
	}
	d := spec.NewDisk(namespace, name, size)
	d.Spec.PersistentVolumeClaim.StorageClassName, d.Spec.DataSource = class, &source
	made, err := u.client.CreateDisk(ctx, d, u.c.Bool("dry-run"))
	if err != nil {
		return state, err
	}
	u.object = made
	return stateOfDisk(made), nil
}

func (u *upload) wantedSize(needs int64) (resource.Quantity, error) {
	text := u.c.String("size")
	switch {
	case text != "":
		return u.sizeArgument(text)
	case needs == 0:
		return resource.Quantity{}, usagef(u.c, "upload: the file is packed: say by --size how large the disk is")
	}
	const unit = 1 << 20
	return *resource.NewQuantity((needs+unit-1)/unit*unit, resource.BinarySI), nil
}

func (u *upload) await(ctx context.Context, tell func(string), look func(uploadState, *spec.Condition) (bool, error)) error {
	see := func(s uploadState) (bool, error) {
		u.out.Phase, u.out.Message = string(s.phase), "the operator has not looked at it yet"
		c := spec.FindCondition(s.conditions, conditions.Ready)
		if c != nil {
			u.out.Message = c.Message
		}
		if tell(strings.TrimPrefix(s.progress+", "+u.out.Message, ", ")); s.phase == spec.DiskFailed {
			return false, errors.New(u.out.Message)
		}
		return look(s, c)
	}
	if i, is := u.object.(*spec.VirtualImage); is {
		return u.client.AwaitImage(ctx, i, func(i *spec.VirtualImage) (bool, error) { return see(stateOfImage(i)) })
	}
	d, is := u.object.(*spec.VirtualDisk)
	if !is {
		return fmt.Errorf("%T takes no upload", u.object)
	}
	return u.client.AwaitDisk(ctx, d, func(d *spec.VirtualDisk) (bool, error) { return see(stateOfDisk(d)) })
}

func (u *upload) run(ctx context.Context, tell func(string)) error {
	request := ""
	err := u.await(ctx, tell, func(s uploadState, c *spec.Condition) (bool, error) {
		switch {
		case s.phase.Usable():
			return false, errors.New("somebody else has uploaded it")
		case c == nil:
			return false, nil
		case c.Reason == conditions.ReasonDiskUploadAwaited:
			return true, nil // for this user, or another one whose upload has not begun
		case request != "" && s.made != nil && s.made.Request == request:
			return false, errors.New(s.made.Message)
		case request == "" && c.Reason == conditions.ReasonDiskUploadNeeded:
			request = rand.Text()
			return false, u.client.AskToUpload(ctx, u.object, request)
		}
		return false, nil
	})
	if err != nil {
		return err
	}
	pod, err := u.client.Pod(ctx, u.object.GetNamespace(), objects.ImportPod(u.claim))
	if err != nil {
		return err
	}
	own, err := u.key(ctx, pod.Namespace)
	if err != nil {
		return err
	}
	return u.verdict(ctx, pod.UID, u.send(ctx, pod, own, tell), verdictWait, tell)
}

// verdictWait is how long to wait for the result after the connection to a pod was lost. The upload
// itself has been retried for half a minute by then, and a pod's progress in the status is updated
// every ten seconds.
const verdictWait = time.Minute

// verdict waits for the result of what was sent to a pod. The pod's termination message is more
// precise than a lost connection, and the existing disk more than a lost answer. If neither comes,
// the upload has failed.
func (u *upload) verdict(ctx context.Context, pod types.UID, failed error, wait time.Duration, tell func(string)) error {
	var patience *time.Timer
	if failed != nil {
		cut, cancel := context.WithCancelCause(ctx)
		defer cancel(nil)
		patience = time.AfterFunc(wait, func() { cancel(failed) })
		defer patience.Stop()
		ctx = cut
	}
	return u.await(ctx, tell, func(s uploadState, _ *spec.Condition) (bool, error) {
		switch {
		case s.phase.Usable() && (failed == nil || errors.Is(failed, transfer.ErrUnanswered)):
			return true, nil
		case s.phase.Usable():
			return false, fmt.Errorf("%w; somebody else has uploaded it", failed)
		case s.made == nil:
		case s.made.PodUID == pod:
			return false, errors.New(s.made.Message)
		case failed != nil && s.made.Step != "" && s.made.Step != runnerconfig.StepUploading:
			patience.Reset(objects.TransferWait) // it has received everything, and works
		}
		return false, nil
	})
}

// key returns the identity shared by a pod and its uploading client.
func (u *upload) key(ctx context.Context, namespace string) (tunnel.Identity, error) {
	secret, err := u.client.Secret(ctx, namespace, objects.TransferKey(u.claim))
	if err != nil {
		return tunnel.Identity{}, err
	}
	own, err := tunnel.ParseIdentity(secret.Data[corev1.TLSCertKey], secret.Data[corev1.TLSPrivateKeyKey])
	if err != nil {
		return tunnel.Identity{}, fmt.Errorf("secret %s: %w", secret.Name, err)
	}
	return own, nil
}

func (u *upload) send(ctx context.Context, pod *corev1.Pod, own tunnel.Identity, tell func(string)) error {
	ctx, end := context.WithCancel(ctx)
	forwarding, err := u.client.Forward(ctx, pod.Namespace, pod.Name, 0, runnerconfig.TransferPort, io.Discard)
	if err != nil {
		end()
		return err
	}
	defer func() { _ = forwarding.Wait() }() // the upload shows its errors
	defer end()
	client := &transfer.Client{Address: fmt.Sprintf("127.0.0.1:%d", forwarding.Port), Own: own}
	defer client.Close()
	name := textout.Cell(u.file.Name())
	return client.Upload(ctx, u.file, u.size, func(done int64) {
		tell(imageProgress(name, imagesource.Progress{Step: "uploading", Done: done, Total: u.size}))
	})
}
