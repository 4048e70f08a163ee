package host

import (
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/vmop/sdk/internal/atomicfile"
	"github.com/vmop/sdk/internal/filecopy"
	"github.com/vmop/sdk/vmop/imageinspect"
	"github.com/vmop/sdk/vmop/runner"
	"github.com/vmop/sdk/vmop/spec"
)

// downloadStall is how long a server may send nothing.
const downloadStall = time.Minute

// Image is what the disk of a new machine is a copy of.
type Image struct {
	// Source is a file, or a URL of http or https.
	Source string
	// Checksum is sha256:HEX or sha512:HEX of the source's content; empty trusts it.
	Checksum string
	// Checksums is the URL of a list with the checksum of the source, which counts if
	// Checksum is empty; see [PublicImage].
	Checksums string
	// Size is what the disk gets, in bytes. No image is made smaller.
	Size int64
	// Client gets what Source names; nil is http.DefaultClient.
	Client *http.Client
}

// Check says what is wrong with an image before anything is made of it.
func (i Image) Check() error {
	if _, _, err := i.digest(); err != nil {
		return err
	}
	switch u, err := url.Parse(i.Source); {
	case err == nil && u.Scheme == "oci":
		return fmt.Errorf("image %s: images in registries are not taken yet: download the disk image, and name the file", i.Source)
	case i.remote() || err != nil || u.Scheme == "":
	case strings.Contains(i.Source, "://"):
		return fmt.Errorf("image %s: want a file, or a URL of http or https", i.Source)
	}
	return nil
}

func (i Image) remote() bool {
	return strings.HasPrefix(i.Source, "http://") || strings.HasPrefix(i.Source, "https://")
}

// digest is the checksum that the source must have, nil if any will do.
func (i Image) digest() (hash.Hash, []byte, error) {
	if i.Checksum == "" {
		return nil, nil, nil
	}
	kind, text, _ := strings.Cut(i.Checksum, ":")
	want, err := hex.DecodeString(text)
	var h hash.Hash
	switch kind {
	case "sha256":
		h = sha256.New()
	case "sha512":
		h = sha512.New()
	}
	if h == nil || err != nil || len(want) != h.Size() {
		return nil, nil, fmt.Errorf("checksum %q: want sha256:HEX or sha512:HEX", i.Checksum)
	}
	return h, want, nil
}

// CreateFromImage is [Host.Create] of a machine whose disk [SystemDisk] is a copy of
// an image, which is looked at, and enlarged. What is interrupted leaves no machine.
func (h *Host) CreateFromImage(ctx context.Context, o *spec.Object, g Given, image Image, options CopyOptions) (Machine, error) {
	if err := image.Check(); err != nil {
		return Machine{}, err
	}
	to, err := h.free(o.Namespace, o.Name)
	if err != nil {
		return Machine{}, err
	}
	if _, _, err := h.configuration(o, g); err != nil {
		return Machine{}, err
	}
	parent := filepath.Dir(to.Data)
	if err := makePrivate(parent); err != nil {
		return Machine{}, fmt.Errorf("directory of the machine: %w", err)
	}
	prefix := ".new-" + o.Name + "-"
	if err := removeAbandoned(parent, prefix); err != nil {
		return Machine{}, err
	}
	tmp, err := os.MkdirTemp(parent, prefix)
	if err != nil {
		return Machine{}, err
	}
	err = fillFromImage(ctx, tmp, o, g, image, options)
	if err == nil {
		err = moveNew(tmp, to.Data)
	}
	if err != nil {
		return Machine{}, errors.Join(fmt.Errorf("image %s: %w", image.Source, err), os.RemoveAll(tmp))
	}
	return h.Machine(o.Namespace, o.Name)
}

func fillFromImage(ctx context.Context, dir string, o *spec.Object, g Given, image Image, options CopyOptions) (err error) {
	own, err := runner.Lock(dir) // nobody takes it for abandoned
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, own.Close()) }()
	disk := filepath.Join(dir, SystemDisk+".img")
	if err := image.fetch(ctx, disk, options); err != nil {
		return err
	}
	if err := prepareImage(ctx, disk, image.Size); err != nil {
		return err
	}
	return errors.Join(Directories{Data: dir}.keep(o, g), atomicfile.SyncDir(dir))
}

// fetch copies the source to a path, and compares it with the checksum.
func (i Image) fetch(ctx context.Context, to string, options CopyOptions) error {
	if i.Checksum == "" && i.Checksums != "" {
		var err error
		if i.Checksum, err = i.listedChecksum(ctx); err != nil {
			return err
		}
	}
	sum, want, err := i.digest()
	if err != nil {
		return err
	}
	if i.remote() {
		return i.download(ctx, to, sum, want, options)
	}
	info, err := os.Stat(i.Source)
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return errors.New("it is no file")
	}
	if err := checkUnused(i.Source); err != nil {
		return err
	}
	if err := checkRoom(filepath.Dir(to), []string{i.Source}); err != nil {
		return err
	}
	var done int64
	err = filecopy.Copy(ctx, i.Source, to, func(n int64) {
		if done += n; options.Progress != nil {
			options.Progress(done, info.Size())
		}
	})
	if err != nil || sum == nil {
		return err
	}
	f, err := os.Open(to) // what was copied, whatever the source has by now
	if err != nil {
		return err
	}
	defer f.Close()
	if _, err := io.Copy(sum, contextReader{ctx, f}); err != nil {
		return err
	}
	return compare(sum, want)
}

// contextReader ends with its context.
type contextReader struct {
	ctx context.Context
	io.Reader
}

func (r contextReader) Read(p []byte) (int, error) {
	if r.ctx.Err() != nil {
		return 0, context.Cause(r.ctx)
	}
	return r.Reader.Read(p)
}

func compare(sum hash.Hash, want []byte) error {
	if got := sum.Sum(nil); !bytes.Equal(got, want) {
		return fmt.Errorf("its checksum is %x, and not the %x that was given", got, want)
	}
	return nil
}

// download gets the source from its server, which has to go on sending.
func (i Image) download(ctx context.Context, to string, sum hash.Hash, want []byte, options CopyOptions) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	stalled := time.AfterFunc(downloadStall, func() { cancel(fmt.Errorf("the server sent nothing for %v", downloadStall)) })
	defer stalled.Stop()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, i.Source, nil)
	if err != nil {
		return err
	}
	client := i.Client
	if client == nil {
		client = http.DefaultClient
	}
	fail := func(err error) error {
		if cause := context.Cause(ctx); cause != nil {
			return cause
		}
		return err
	}
	answer, err := client.Do(request)
	if err != nil {
		return fail(err)
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("the server answers %s", answer.Status)
	}
	dst, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	out := io.Writer(dst)
	if sum != nil {
		out = io.MultiWriter(dst, sum)
	}
	n, err := io.Copy(out, &progressReader{body: answer.Body, stalled: stalled, total: answer.ContentLength, options: options})
	if err = errors.Join(err, dst.Sync(), dst.Close()); err != nil {
		return fail(err)
	}
	if answer.ContentLength >= 0 && n != answer.ContentLength {
		return fmt.Errorf("the server sent %d bytes of %d", n, answer.ContentLength)
	}
	if sum == nil {
		return nil
	}
	return compare(sum, want)
}

// progressReader tells how far a download is.
type progressReader struct {
	body        io.Reader
	stalled     *time.Timer
	done, total int64
	options     CopyOptions
}

func (r *progressReader) Read(p []byte) (int, error) {
	n, err := r.body.Read(p)
	if n > 0 {
		r.stalled.Reset(downloadStall)
		if r.done += int64(n); r.options.Progress != nil {
			r.options.Progress(r.done, max(r.total, r.done))
		}
	}
	return n, err
}

// prepareImage looks at an image that was copied, and makes it as large as its disk
// shall be.
func prepareImage(ctx context.Context, path string, size int64) error {
	if err := checkUpload(path); err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	header := make([]byte, min(info.Size(), imageinspect.HeaderSize))
	if _, err := io.ReadFull(f, header); err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	if len(header) == 0 {
		return errors.New("it is empty")
	}
	format, has, err := imageinspect.ProbeFormat(header, info.Size())
	if err != nil {
		return err
	}
	switch {
	case has > size:
		return fmt.Errorf("its disk has %d bytes (%s), more than the %s asked for: no disk is made smaller", has, mebibytes(uint64(has)), mebibytes(uint64(size)))
	case has == size:
		return nil
	case format == imageinspect.FormatQcow2:
		return growQCOW2(ctx, path, size)
	}
	return errors.Join(f.Truncate(size), f.Sync())
}

// growQCOW2 has QEMU's tool enlarge an image, of which it reads no other file:
// ProbeFormat has seen to that.
func growQCOW2(ctx context.Context, path string, size int64) error {
	tool, err := exec.LookPath("qemu-img")
	if err != nil {
		return fmt.Errorf("a qcow2 image is enlarged by qemu-img, which is not installed (Debian: package qemu-utils): %w", err)
	}
	out, err := exec.CommandContext(ctx, tool, "resize", "-q", "-f", "qcow2", path, strconv.FormatInt(size, 10)).CombinedOutput()
	if err != nil {
		return fmt.Errorf("enlarge it: %w: %s", err, strings.TrimSpace(string(out)))
	}
	return nil
}
