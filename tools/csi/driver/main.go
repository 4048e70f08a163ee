// Command driver is a driver of CSI for tests: it makes volumes of folders and files of one
// node, clones them and makes snapshots of them, by copying. It registers itself with the
// kubelet.
//
// Everything but the storage is what any driver has: the sidecars that call it, and the
// kubelet, are the real ones.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"golang.org/x/sys/unix"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/timestamppb"
	"google.golang.org/protobuf/types/known/wrapperspb"
	registration "k8s.io/kubelet/pkg/apis/pluginregistration/v1"
)

func main() {
	d := &driver{}
	flag.StringVar(&d.name, "name", "csi.vmop.test", "the name of the driver")
	flag.StringVar(&d.node, "node", "node", "the name of the node")
	flag.StringVar(&d.data, "data", "", "the folder of the volumes and snapshots")
	flag.StringVar(&d.endpoint, "endpoint", "", "the socket that is listened on")
	register := flag.String("registration", "", "the socket by which the kubelet finds the driver")
	flag.Parse()
	if err := d.run(*register); err != nil {
		fmt.Fprintln(os.Stderr, "driver:", err)
		os.Exit(1)
	}
}

// driver is all services of one driver.
type driver struct {
	csi.UnimplementedIdentityServer
	csi.UnimplementedControllerServer
	csi.UnimplementedNodeServer
	registration.UnimplementedRegistrationServer

	name, node, data, endpoint string
	// one at a time: a sidecar repeats what takes long.
	mu sync.Mutex
}

func (d *driver) run(register string) error {
	if d.data == "" || d.endpoint == "" || register == "" {
		return errors.New("want --data, --endpoint and --registration")
	}
	for _, dir := range []string{d.path("volumes", ""), d.path("snapshots", ""), filepath.Dir(d.endpoint), filepath.Dir(register)} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
	}
	server := grpc.NewServer()
	csi.RegisterIdentityServer(server, d)
	csi.RegisterControllerServer(server, d)
	csi.RegisterNodeServer(server, d)
	ended := make(chan error, 2)
	serve := func(s *grpc.Server, socket string) error {
		if err := os.Remove(socket); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		l, err := net.Listen("unix", socket)
		if err != nil {
			return err
		}
		go func() { ended <- s.Serve(l) }()
		return nil
	}
	if err := serve(server, d.endpoint); err != nil {
		return err
	}
	// The kubelet asks as soon as there is a socket.
	kubelet := grpc.NewServer()
	registration.RegisterRegistrationServer(kubelet, d)
	if err := serve(kubelet, register); err != nil {
		return err
	}
	return <-ended
}

// GetInfo tells the kubelet where the driver is.
func (d *driver) GetInfo(context.Context, *registration.InfoRequest) (*registration.PluginInfo, error) {
	return &registration.PluginInfo{Type: registration.CSIPlugin, Name: d.name, Endpoint: d.endpoint, SupportedVersions: []string{"1.0.0"}}, nil
}

// NotifyRegistrationStatus is told whether the kubelet has taken the driver.
func (d *driver) NotifyRegistrationStatus(_ context.Context, s *registration.RegistrationStatus) (*registration.RegistrationStatusResponse, error) {
	fmt.Fprintf(os.Stderr, "registered: %v %s\n", s.PluginRegistered, s.Error)
	return &registration.RegistrationStatusResponse{}, nil
}

// GetPluginInfo names the driver.
func (d *driver) GetPluginInfo(context.Context, *csi.GetPluginInfoRequest) (*csi.GetPluginInfoResponse, error) {
	return &csi.GetPluginInfoResponse{Name: d.name, VendorVersion: "0"}, nil
}

// GetPluginCapabilities says that it makes volumes.
func (d *driver) GetPluginCapabilities(context.Context, *csi.GetPluginCapabilitiesRequest) (*csi.GetPluginCapabilitiesResponse, error) {
	return &csi.GetPluginCapabilitiesResponse{Capabilities: []*csi.PluginCapability{{Type: &csi.PluginCapability_Service_{
		Service: &csi.PluginCapability_Service{Type: csi.PluginCapability_Service_CONTROLLER_SERVICE},
	}}}}, nil
}

// Probe says that it works.
func (d *driver) Probe(context.Context, *csi.ProbeRequest) (*csi.ProbeResponse, error) {
	return &csi.ProbeResponse{Ready: wrapperspb.Bool(true)}, nil
}

// ControllerGetCapabilities says what it does with volumes.
func (d *driver) ControllerGetCapabilities(context.Context, *csi.ControllerGetCapabilitiesRequest) (*csi.ControllerGetCapabilitiesResponse, error) {
	out := &csi.ControllerGetCapabilitiesResponse{}
	for _, c := range []csi.ControllerServiceCapability_RPC_Type{
		csi.ControllerServiceCapability_RPC_CREATE_DELETE_VOLUME, csi.ControllerServiceCapability_RPC_CREATE_DELETE_SNAPSHOT,
		csi.ControllerServiceCapability_RPC_CLONE_VOLUME,
	} {
		out.Capabilities = append(out.Capabilities, &csi.ControllerServiceCapability{Type: &csi.ControllerServiceCapability_Rpc{
			Rpc: &csi.ControllerServiceCapability_RPC{Type: c},
		}})
	}
	return out, nil
}

// path is where a volume or a snapshot is; the part behind the name is beside it.
func (d *driver) path(kind, id string, more ...string) string {
	return filepath.Join(d.data, kind, id) + strings.Join(more, "")
}

// known refuses what is no name of the sidecars.
func known(id string) error {
	if id == "" || strings.ContainsAny(id, "/.") {
		return status.Errorf(codes.NotFound, "there is no %q", id)
	}
	return nil
}

const sizeSuffix = ".size"

// CreateVolume makes a folder, or a file for a block device, with what a snapshot or
// another volume has.
func (d *driver) CreateVolume(ctx context.Context, r *csi.CreateVolumeRequest) (*csi.CreateVolumeResponse, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := known(r.Name); err != nil {
		return nil, err
	}
	size, block := r.GetCapacityRange().GetRequiredBytes(), false
	for _, c := range r.GetVolumeCapabilities() {
		block = block || c.GetBlock() != nil
	}
	from := ""
	if s := r.GetVolumeContentSource(); s != nil {
		kind, id := "snapshots", s.GetSnapshot().GetSnapshotId()
		if s.GetVolume() != nil {
			kind, id = "volumes", s.GetVolume().GetVolumeId()
		}
		from = d.path(kind, id)
		if _, err := os.Stat(from); known(id) != nil || err != nil {
			return nil, status.Errorf(codes.NotFound, "there is no %s in %s", id, kind)
		}
		least, err := sizeOf(from)
		if err != nil {
			return nil, err
		}
		if size < least {
			return nil, status.Errorf(codes.OutOfRange, "%s has %d bytes, and %d are asked for", id, least, size)
		}
	}
	to := d.path("volumes", r.Name)
	err := made(to, size, func(tmp string) error {
		if from != "" {
			if err := copied(ctx, from, tmp); err != nil {
				return err
			}
		} else if !block {
			return os.Mkdir(tmp, 0o777)
		}
		if !block {
			return nil
		}
		f, err := os.OpenFile(tmp, os.O_CREATE|os.O_WRONLY, 0o600)
		if err != nil {
			return err
		}
		return errors.Join(f.Truncate(size), f.Close())
	})
	if err != nil {
		return nil, err
	}
	return &csi.CreateVolumeResponse{Volume: &csi.Volume{VolumeId: r.Name, CapacityBytes: size, ContentSource: r.GetVolumeContentSource()}}, nil
}

// made makes something that appears whole, if it is not there.
func made(path string, size int64, make func(tmp string) error) error {
	if _, err := os.Stat(path); err == nil {
		return nil
	}
	tmp := path + ".tmp"
	if err := os.RemoveAll(tmp); err != nil {
		return err
	}
	if err := make(tmp); err != nil {
		return err
	}
	return errors.Join(os.WriteFile(path+sizeSuffix, []byte(strconv.FormatInt(size, 10)), 0o600), os.Rename(tmp, path))
}

func sizeOf(path string) (int64, error) {
	text, err := os.ReadFile(path + sizeSuffix)
	if err != nil {
		return 0, err
	}
	return strconv.ParseInt(string(text), 10, 64)
}

func copied(ctx context.Context, from, to string) error {
	return run(ctx, "cp", "-a", "--sparse=always", "--reflink=auto", from, to)
}

func run(ctx context.Context, name string, args ...string) error {
	if out, err := exec.CommandContext(ctx, name, args...).CombinedOutput(); err != nil {
		return fmt.Errorf("%s %s: %w: %s", name, strings.Join(args, " "), err, out)
	}
	return nil
}

// DeleteVolume removes a volume.
func (d *driver) DeleteVolume(_ context.Context, r *csi.DeleteVolumeRequest) (*csi.DeleteVolumeResponse, error) {
	return &csi.DeleteVolumeResponse{}, d.removed("volumes", r.GetVolumeId())
}

// DeleteSnapshot removes a snapshot.
func (d *driver) DeleteSnapshot(_ context.Context, r *csi.DeleteSnapshotRequest) (*csi.DeleteSnapshotResponse, error) {
	return &csi.DeleteSnapshotResponse{}, d.removed("snapshots", r.GetSnapshotId())
}

func (d *driver) removed(kind, id string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if known(id) != nil {
		return nil
	}
	return errors.Join(os.RemoveAll(d.path(kind, id)), os.RemoveAll(d.path(kind, id, sizeSuffix)))
}

// CreateSnapshot copies a volume.
func (d *driver) CreateSnapshot(ctx context.Context, r *csi.CreateSnapshotRequest) (*csi.CreateSnapshotResponse, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := errors.Join(known(r.Name), known(r.GetSourceVolumeId())); err != nil {
		return nil, err
	}
	from, to := d.path("volumes", r.GetSourceVolumeId()), d.path("snapshots", r.Name)
	size, err := sizeOf(from)
	if err != nil {
		return nil, status.Errorf(codes.NotFound, "there is no volume %s: %v", r.GetSourceVolumeId(), err)
	}
	if err := made(to, size, func(tmp string) error { return copied(ctx, from, tmp) }); err != nil {
		return nil, err
	}
	info, err := os.Stat(to + sizeSuffix)
	if err != nil {
		return nil, err
	}
	return &csi.CreateSnapshotResponse{Snapshot: &csi.Snapshot{
		SnapshotId: r.Name, SourceVolumeId: r.GetSourceVolumeId(), SizeBytes: size, CreationTime: timestamppb.New(info.ModTime()), ReadyToUse: true,
	}}, nil
}

// ValidateVolumeCapabilities takes any.
func (d *driver) ValidateVolumeCapabilities(_ context.Context, r *csi.ValidateVolumeCapabilitiesRequest) (*csi.ValidateVolumeCapabilitiesResponse, error) {
	return &csi.ValidateVolumeCapabilitiesResponse{Confirmed: &csi.ValidateVolumeCapabilitiesResponse_Confirmed{VolumeCapabilities: r.GetVolumeCapabilities()}}, nil
}

// NodeGetInfo names the node.
func (d *driver) NodeGetInfo(context.Context, *csi.NodeGetInfoRequest) (*csi.NodeGetInfoResponse, error) {
	return &csi.NodeGetInfoResponse{NodeId: d.node}, nil
}

// NodeGetCapabilities has none that are not needed.
func (d *driver) NodeGetCapabilities(context.Context, *csi.NodeGetCapabilitiesRequest) (*csi.NodeGetCapabilitiesResponse, error) {
	return &csi.NodeGetCapabilitiesResponse{}, nil
}

// NodePublishVolume mounts a folder, or a block device that it makes of a file.
func (d *driver) NodePublishVolume(ctx context.Context, r *csi.NodePublishVolumeRequest) (*csi.NodePublishVolumeResponse, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := known(r.GetVolumeId()); err != nil {
		return nil, err
	}
	from, to := d.path("volumes", r.GetVolumeId()), r.GetTargetPath()
	if mounted(to) {
		return &csi.NodePublishVolumeResponse{}, nil
	}
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return nil, err
	}
	if r.GetVolumeCapability().GetBlock() == nil {
		if err := os.Mkdir(to, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
			return nil, err
		}
	} else {
		out, err := exec.CommandContext(ctx, "losetup", "--find", "--show", from).Output()
		if err != nil {
			return nil, fmt.Errorf("losetup: %w", err)
		}
		from = strings.TrimSpace(string(out))
		f, err := os.OpenFile(to, os.O_CREATE, 0o600)
		if err != nil {
			return nil, err
		}
		_ = f.Close()
	}
	return &csi.NodePublishVolumeResponse{}, unix.Mount(from, to, "", unix.MS_BIND, "")
}

// mounted reports whether something is mounted at a path.
func mounted(path string) bool {
	text, err := os.ReadFile("/proc/self/mountinfo")
	return err == nil && strings.Contains(string(text), " "+path+" ")
}

// NodeUnpublishVolume takes that back.
func (d *driver) NodeUnpublishVolume(ctx context.Context, r *csi.NodeUnpublishVolumeRequest) (*csi.NodeUnpublishVolumeResponse, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	to := r.GetTargetPath()
	if mounted(to) {
		if err := unix.Unmount(to, 0); err != nil {
			return nil, err
		}
	}
	if err := os.Remove(to); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	if known(r.GetVolumeId()) != nil {
		return &csi.NodeUnpublishVolumeResponse{}, nil
	}
	// A device in use goes away with its last user.
	out, err := exec.CommandContext(ctx, "losetup", "--noheadings", "--output", "NAME", "--associated", d.path("volumes", r.GetVolumeId())).Output()
	if err != nil {
		return nil, fmt.Errorf("losetup: %w", err)
	}
	for _, device := range strings.Fields(string(out)) {
		if err := run(ctx, "losetup", "--detach", device); err != nil {
			return nil, err
		}
	}
	return &csi.NodeUnpublishVolumeResponse{}, nil
}
