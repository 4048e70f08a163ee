package main

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"time"

	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/vmop/sdk/internal/atomicfile"
	"github.com/vmop/sdk/internal/textout"
	"github.com/vmop/sdk/vmop/imageinspect"
	"github.com/vmop/sdk/vmop/imagesource"
	"github.com/vmop/sdk/vmop/output"
	"github.com/vmop/sdk/vmop/reconcile/objects"
	"github.com/vmop/sdk/vmop/runner/tunnel"
	"github.com/vmop/sdk/vmop/runnerconfig"
	"github.com/vmop/sdk/vmop/spec"
	"github.com/vmop/sdk/vmop/transfer"
)

type download struct {
	*diskWork
	out *diskDone
	// path is the target, format the requested format, empty for the disk's own.
	path, format string
	// object is what is downloaded, claim the name of its volume claim.
	object metav1.Object
	claim  string
}

// partSuffix names the partial download beside the target, convertedSuffix the result of its
// conversion to another format.
const (
	partSuffix      = ".vmop-part"
	convertedSuffix = ".vmop-converted"
)

func (w *diskWork) download(namespace, name, path string) error {
	d := &download{diskWork: w, out: &diskDone{Namespace: namespace, Disk: name, Action: w.action}, path: path, format: w.c.String("format"), claim: objects.ClaimOfDisk(name)}
	if d.format != "" && d.format != "raw" && d.format != "qcow2" {
		return usagef(w.c, "--format %q: want raw or qcow2", d.format)
	}
	if err := mayWrite(path, w.c.Bool("force")); err != nil {
		return err
	}
	if w.c.Bool("image") {
		d.claim = objects.ClaimOfImage(name)
	}
	if _, err := d.read(w.c.Context); err != nil {
		return err
	}
	part, err := lockPart(path + partSuffix)
	if err != nil {
		return err
	}
	defer part.Close()
	return w.finish(d.out, createReserve, func(ctx context.Context, tell func(string)) error { return d.run(ctx, part, tell) })
}

func (d *download) read(ctx context.Context) (*spec.VirtualDiskDownload, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, requestTimeout, errors.New("the API server did not answer"))
	defer cancel()
	if d.c.Bool("image") {
		i, err := d.client.Image(ctx, d.out.Namespace, d.out.Disk)
		if err != nil {
			return nil, err
		}
		d.object = i
		return i.Status.Download, nil
	}
	disk, err := d.client.Disk(ctx, d.out.Namespace, d.out.Disk)
	if err != nil {
		return nil, err
	}
	d.object = disk
	return disk.Status.Download, nil
}

func lockPart(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0o600)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s is no regular file", path)
	}
	if err == nil {
		if err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); errors.Is(err, unix.EWOULDBLOCK) {
			err = fmt.Errorf("%s: another download writes to it now", path)
		}
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

func (d *download) await(ctx context.Context, look func(spec.DiskPhase, *spec.VirtualDiskDownload) (bool, error)) error {
	see := func(phase spec.DiskPhase, is *spec.VirtualDiskDownload) (bool, error) {
		d.out.Phase, d.out.Message = string(phase), "the operator has not looked at it yet"
		if is != nil {
			d.out.Message = is.Message
		}
		return look(phase, is)
	}
	if i, is := d.object.(*spec.VirtualImage); is {
		return d.client.AwaitImage(ctx, i, func(i *spec.VirtualImage) (bool, error) {
			return see(spec.DiskPhase(i.Status.Phase), i.Status.Download)
		})
	}
	disk, is := d.object.(*spec.VirtualDisk)
	if !is {
		return fmt.Errorf("%T gives no download", d.object)
	}
	return d.client.AwaitDisk(ctx, disk, func(disk *spec.VirtualDisk) (bool, error) { return see(disk.Status.Phase, disk.Status.Download) })
}

var errNotGiven = errors.New("the pod that gives it does not answer")

// A status lags: a pod that has just ended still seems to serve its download. Therefore an
// unreachable pod, or its successor, is tried again, as often and after such a time.
const (
	giverAttempts = 20
	giverPause    = time.Second
)

func (d *download) run(ctx context.Context, part *os.File, tell func(string)) error {
	var got transfer.Downloaded
	for attempt := 1; ; attempt++ {
		from, err := d.giver(ctx, tell)
		if err != nil {
			return err
		}
		got, err = d.fetch(ctx, part, from, tell)
		if err == nil {
			break
		}
		if !errors.Is(err, errNotGiven) || attempt == giverAttempts {
			return err
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(giverPause):
		}
		if _, err := d.read(ctx); err != nil {
			return err
		}
	}
	d.out.File = &output.DownloadedFile{Path: d.path, Format: got.Format, Size: *resource.NewQuantity(got.Size, resource.BinarySI), SHA256: got.SHA256}
	whole, err := d.convert(ctx, part.Name(), tell)
	if err != nil {
		return err
	}
	if err := d.name(whole); err != nil || whole == part.Name() {
		return err
	}
	return os.Remove(part.Name())
}

// giver requests a pod that serves the download, unless one exists.
func (d *download) giver(ctx context.Context, tell func(string)) (from spec.VirtualDiskDownload, err error) {
	request := ""
	err = d.await(ctx, func(_ spec.DiskPhase, is *spec.VirtualDiskDownload) (bool, error) {
		tell(d.out.Message)
		switch {
		case is != nil && is.Phase == spec.DownloadReady:
			from = *is
			return true, nil // for this user, or another one with the same rights
		case request == "":
			request = rand.Text()
			return false, d.client.AskToDownload(ctx, d.object, request)
		case is != nil && is.Request == request && is.Phase.Final():
			return false, errors.New(is.Message)
		}
		return false, nil
	})
	return from, err
}

// fetch downloads from a pod into the file, and then lets the pod end.
func (d *download) fetch(ctx context.Context, part *os.File, from spec.VirtualDiskDownload, tell func(string)) (transfer.Downloaded, error) {
	var got transfer.Downloaded
	namespace, name := d.object.GetNamespace(), objects.DownloadName(d.claim)
	secret, err := d.client.Secret(ctx, namespace, name)
	if apierrors.IsNotFound(err) {
		return got, fmt.Errorf("%w: %w", errNotGiven, err)
	}
	if err != nil {
		return got, err
	}
	own, err := tunnel.ParseIdentity(secret.Data[corev1.TLSCertKey], secret.Data[corev1.TLSPrivateKeyKey])
	if err != nil {
		return got, fmt.Errorf("secret %s: %w", secret.Name, err)
	}
	forwarded, end := context.WithCancel(ctx)
	forwarding, err := d.client.Forward(forwarded, namespace, name, 0, runnerconfig.TransferPort, io.Discard)
	if err != nil {
		end()
		return got, fmt.Errorf("%w: %w", errNotGiven, err)
	}
	defer func() { _ = forwarding.Wait() }() // the download shows its errors
	defer end()
	client := &transfer.Client{Address: fmt.Sprintf("127.0.0.1:%d", forwarding.Port), Own: own}
	defer client.Close()
	offer, err := client.Offer(ctx)
	if err != nil {
		return got, fmt.Errorf("%w: %w", errNotGiven, err)
	}
	if err := d.mayConvert(offer.Format); err != nil {
		return got, err
	}
	what := textout.Cell(d.path)
	if got, err = client.Download(ctx, part, func(done, total int64) {
		tell(imageProgress(what, imagesource.Progress{Step: "downloading", Done: done, Total: total}))
	}); err != nil {
		return got, fmt.Errorf("%w; the same command goes on with what has come", err)
	}
	// The operator reports if a machine has begun to write meanwhile.
	switch is, err := d.read(ctx); {
	case err != nil:
		return got, err
	case is == nil || is.PodUID != from.PodUID || is.Phase != spec.DownloadReady:
		why := "somebody else has asked for it since"
		if is != nil && is.PodUID == from.PodUID {
			why = is.Message
		}
		return got, fmt.Errorf("it may have changed while it was downloaded: %s", why)
	}
	return got, client.Done(ctx)
}

func (d *download) mayConvert(has string) error {
	if !d.converts(has) {
		return nil
	}
	if _, err := exec.LookPath("qemu-img"); err != nil {
		return fmt.Errorf("it is %s, and is converted to %s by qemu-img, which is not installed (Debian: package qemu-utils): %w", has, d.format, err)
	}
	return nil
}

// converts reports whether the format is to be converted. The image of a CD is raw.
func (d *download) converts(has string) bool {
	return d.format != "" && d.format != has && (d.format != "raw" || has != runnerconfig.FormatISO)
}

func (d *download) convert(ctx context.Context, part string, tell func(string)) (string, error) {
	has := d.out.File.Format
	if !d.converts(has) {
		return part, nil
	}
	if has == runnerconfig.FormatISO {
		has = "raw"
	}
	to := d.path + convertedSuffix
	if err := os.Remove(to); err != nil && !errors.Is(err, fs.ErrNotExist) { // of an interrupted conversion
		return "", err
	}
	what := textout.Cell(d.path)
	err := imagesource.Convert(ctx, part, imageinspect.Format(has), to, imageinspect.Format(d.format), func(done, total int64) {
		tell(imageProgress(what, imagesource.Progress{Step: imagesource.Converting, Done: done, Total: total}))
	})
	if err != nil {
		return "", fmt.Errorf("%w; what has come stays in %s", err, part)
	}
	f, err := os.Open(to)
	if err != nil {
		return "", err
	}
	defer f.Close()
	sum := sha256.New()
	n, err := io.Copy(sum, f)
	d.out.File.Format, d.out.File.Size, d.out.File.SHA256 = d.format, *resource.NewQuantity(n, resource.BinarySI), hex.EncodeToString(sum.Sum(nil))
	return to, errors.Join(err, f.Sync())
}

// name renames the complete file, without replacing a file that was created meanwhile unless that
// is requested.
func (d *download) name(whole string) error {
	if d.c.Bool("force") {
		if err := mayWrite(d.path, true); err != nil {
			return err
		}
		return atomicfile.Rename(whole, d.path)
	}
	err := atomicfile.RenameNew(whole, d.path)
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("%s exists; --force replaces it, and what was downloaded is in %s", d.path, whole)
	}
	return err
}
