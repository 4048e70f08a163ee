package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/vmop/sdk/vmop/imagesource"
	"github.com/vmop/sdk/vmop/runner/tunnel"
	"github.com/vmop/sdk/vmop/runnerconfig"
	"github.com/vmop/sdk/vmop/transfer"
)

// uploading is the step while an upload is received, beside those of [imagesource].
const uploading imagesource.Step = runnerconfig.StepUploading

// transferStall is how long a client that uploads may send nothing, and one that downloads may
// receive nothing.
const transferStall = time.Minute

// uploadImage makes a disk of an upload. It is received beside the disk and checked like every
// fetched image. A partial upload of an earlier pod is not used.
func uploadImage(ctx context.Context, job runnerconfig.Import, to string, progress func(string), watch func(runnerconfig.ImportProgress)) (err error) {
	part := to + ".upload"
	if err := removeAll(append(imagesource.Leftovers(to+".making"), part)...); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, removeAll(part)) }()
	own, err := tunnel.LoadIdentity(filepath.Join(job.Upload.Keys, "tls.crt"), filepath.Join(job.Upload.Keys, "tls.key"))
	if err != nil {
		return err
	}
	// Only the API server's port forwarding connects to the loopback address.
	l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(job.Upload.Port)))
	if err != nil {
		return err
	}
	progress(fmt.Sprintf("waiting for an upload, for %d s", job.Upload.WaitSeconds))
	tell := imageProgress("what somebody sends", progress, watch)
	o := taking(job.Size, job.Keep)
	r := transfer.Receiver{
		// A compressed image may be a little larger than its content.
		Path: part, Max: o.MaxSize + o.MaxSize/8 + 1<<20, Own: own, Wait: time.Duration(job.Upload.WaitSeconds) * time.Second, Stall: transferStall,
		Report: func(done, total int64) { tell(imagesource.Progress{Step: uploading, Done: done, Total: total}) },
	}
	got, err := r.Receive(ctx, few(l))
	if err != nil {
		return fmt.Errorf("upload: %w", err)
	}
	progress(fmt.Sprintf("%d bytes have come, with the SHA-256 %s", got.Received, got.SHA256))
	o.Progress, o.Take = imageProgress("what was uploaded", progress, watch), true
	return fetchTo(ctx, imagesource.Source{Location: part, Checksum: job.Upload.Checksum}, to, "upload", job.Size, job.Keep, o)
}

func removeAll(paths ...string) error {
	var errs []error
	for _, p := range paths {
		if err := os.Remove(p); err != nil && !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}
