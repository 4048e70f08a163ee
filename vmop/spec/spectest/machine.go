package spectest

import (
	"fmt"
	"net"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/vmop/sdk/vmop/limits"
	"github.com/vmop/sdk/vmop/spec"
)

// Machine generates what may stand under spec.vm.
func Machine() *rapid.Generator[*spec.Machine] {
	return rapid.Custom(func(t *rapid.T) *spec.Machine {
		m := &spec.Machine{
			State:            rapid.SampledFrom([]spec.MachineState{"", spec.StateStopped, spec.StateRunning}).Draw(t, "state"),
			UseTPM:           rapid.Bool().Draw(t, "useTpm"),
			Firmware:         rapid.SampledFrom([]spec.Firmware{"", spec.FirmwareBIOS, spec.FirmwareUEFI, spec.FirmwareUEFI4M, spec.FirmwareSecure, spec.FirmwareSecure4M}).Draw(t, "firmware"),
			BootMenu:         rapid.Bool().Draw(t, "bootMenu"),
			PowerdownTimeout: drawInt(t, "powerdownTimeout", 0, 3600),
			Accelerator:      rapid.SampledFrom([]spec.Accelerator{"", spec.AcceleratorAuto, spec.AcceleratorKVM, spec.AcceleratorTCG}).Draw(t, "accelerator"),
			MachineType:      rapid.SampledFrom([]string{"", "q35", "pc-q35-7.2", "pc-q35-6.0"}).Draw(t, "machineType"),
			CPUModel: rapid.OneOf(
				rapid.SampledFrom([]string{"", "host", "max", "max,-avx2", "qemu64,+ssse3,hv-vendor-id=x"}),
				rapid.StringMatching(`[A-Za-z0-9_][A-Za-z0-9_.-]{0,8}(,[+-]?[A-Za-z0-9_][A-Za-z0-9_.-]{0,6}(=[A-Za-z0-9_.:+-]{1,6})?){0,3}`),
			).Draw(t, "cpuModel"),
			RTCBase:  rapid.SampledFrom([]string{"", "utc", "localtime", "2026-06-17", "2026-06-17T16:01:21"}).Draw(t, "rtcBase"),
			RTCClock: rapid.SampledFrom([]spec.RTCClock{"", spec.RTCClockHost, spec.RTCClockRT, spec.RTCClockVM}).Draw(t, "rtcClock"),
		}
		if maybe(t, "machineUuid") {
			m.MachineUUID = rapid.StringMatching(`[0-9a-fA-F]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`).Draw(t, "machineUuid")
		}
		if maybe(t, "kernelBoot") {
			m.KernelBoot = &spec.KernelBoot{Kernel: File().Draw(t, "kernel")}
			if maybe(t, "initrd") {
				m.KernelBoot.Initrd = File().Draw(t, "initrd")
			}
			if maybe(t, "args") {
				m.KernelBoot.Args = Text().Draw(t, "args")
			}
		}
		drawCPUs(t, m)
		drawRAM(t, m)
		if maybe(t, "serial") {
			m.Serial = &spec.SerialConsole{Enabled: drawBool(t, "enabled")}
		}
		drawDisplay(t, m)
		drawNetworks(t, m)
		drawDisks(t, m)
		return m
	})
}

func drawCPUs(t *rapid.T, m *spec.Machine) {
	// Software emulation has no IDs for more.
	most, perLevel := int32(limits.MaxCPUs), int32(8)
	if m.Accelerator == spec.AcceleratorTCG {
		most, perLevel = limits.MaxTCGAPICIDs, 3
	}
	if rapid.Bool().Draw(t, "by topology") {
		part := func(name string) int32 { return rapid.Int32Range(0, perLevel).Draw(t, name) }
		m.CPUTopology = &spec.CPUTopology{
			Sockets: part("sockets"), DiesPerSocket: part("diesPerSocket"),
			CoresPerDie: part("coresPerDie"), ThreadsPerCore: part("threadsPerCore"),
		}
	} else {
		n := rapid.OneOf(rapid.Int32Range(1, 64), rapid.Int32Range(1, most)).Draw(t, "maximumCpus")
		m.MaximumCPUs = &n
	}
	m.CurrentCPUs = drawInt(t, "currentCpus", 1, int32(m.MaxCPUs()))
}

func drawRAM(t *rapid.T, m *spec.Machine) {
	const least = 4 << 20
	limit := int64(1e9) // the default
	if maybe(t, "maximumRam") {
		q := Bytes(least, 1<<50).Draw(t, "maximumRam")
		limit = q.Value()
		m.MaximumRAM = &q
	}
	if maybe(t, "currentRam") {
		q := Bytes(1, limit).Draw(t, "currentRam")
		m.CurrentRAM = &q
	}
}

func drawDisplay(t *rapid.T, m *spec.Machine) {
	if !maybe(t, "display") {
		return
	}
	m.Display = &spec.Display{Outputs: drawInt(t, "outputs", 1, 4)}
	if maybe(t, "loggedInUser") {
		m.Display.LoggedInUser = rapid.StringMatching(`[a-z_][a-z0-9_,=-]{0,12}`).Draw(t, "loggedInUser")
	}
	if maybe(t, "tls") {
		m.Display.TLS = &spec.DisplayTLS{SecretName: "desk-tls"}
		if maybe(t, "tlsMade") {
			m.Display.TLS = &spec.DisplayTLS{GenerateSecret: true}
		}
	}
	if maybe(t, "vnc") {
		// Above the ports of SPICE, which must not be taken twice.
		m.Display.VNC = &spec.VNC{Port: drawInt(t, "vncPort", 6100, 6200), GenerateSecret: drawBool(t, "vncSecret")}
		switch {
		case maybe(t, "unixSocket"):
			m.Display.VNC.UnixSocket, m.Display.VNC.Port = true, nil
		case maybe(t, "websocket"):
			m.Display.VNC.Websocket = drawInt(t, "websocketPort", 6201, 6300)
		}
	}
	if !maybe(t, "spice") {
		return
	}
	m.Display.Spice = &spec.Spice{
		// Above the ports of the forwards and below VNC's default, which must not
		// be taken twice.
		Port:           drawInt(t, "port", 5800, 5900),
		Server:         rapid.SampledFrom([]string{"", "viewer.example.org", "2001:db8::1"}).Draw(t, "server"),
		GenerateSecret: drawBool(t, "generateSecret"),
		ProxyURL:       rapid.SampledFrom([]string{"", "http://proxy.example.org:3128"}).Draw(t, "proxyUrl"),
		StreamingVideo: rapid.SampledFrom([]string{"", "off", "filter", "all"}).Draw(t, "streamingVideo"),
		UsbRedirects:   drawInt(t, "usbRedirects", 0, 4),
	}
}

func drawNetworks(t *rapid.T, m *spec.Machine) {
	device := func() string {
		return rapid.SampledFrom(append(limits.NICModels(), "", "virtio-net")).Draw(t, "device")
	}
	// Many are rare, as in life, and there is room for two that a test adds.
	few := rapid.IntRange(0, 3)
	count := rapid.OneOf(few, few, few, few, few, few, few, rapid.IntRange(0, limits.MaxNetworks-2))
	port := int32(2000)
	for i := range count.Draw(t, "networks") {
		mac := ""
		if maybe(t, "mac") {
			mac = fmt.Sprintf("%02x:54:00:%02x:%02X:%02x", rapid.IntRange(0, 127).Draw(t, "first")*2, i, rapid.IntRange(0, 255).Draw(t, "mac"), i)
			if maybe(t, "hyphens") {
				mac = strings.ReplaceAll(mac, ":", "-")
			}
		}
		if rapid.Bool().Draw(t, "tap") {
			m.Networks = append(m.Networks, spec.Network{Tap: &spec.TapNetwork{
				Device: device(), MAC: mac,
				Bridge: rapid.OneOf(
					rapid.SampledFrom([]string{"", "br0", "br-lan,1", "brücke"}),
					rapid.StringMatching(`[!-.0-9;-~]{3,15}`),
				).Draw(t, "bridge"),
			}})
			continue
		}
		user := &spec.UserNetwork{
			Device: device(), MAC: mac,
			Net: drawNet(t),
		}
		for range rapid.IntRange(0, 2).Draw(t, "hostForwards") {
			port += rapid.Int32Range(1, 9).Draw(t, "step")
			user.HostForwards = append(user.HostForwards, spec.HostForward{
				Protocol:    rapid.SampledFrom([]spec.ForwardProtocol{"", spec.ForwardTCP, spec.ForwardUDP}).Draw(t, "protocol"),
				HostAddress: rapid.SampledFrom([]string{"", "127.0.0.1", "0.0.0.0"}).Draw(t, "hostAddress"),
				HostPort:    port,
				GuestPort:   rapid.Int32Range(1, 65535).Draw(t, "guestPort"),
			})
		}
		m.Networks = append(m.Networks, spec.Network{User: user})
	}
}

// drawNet draws a network of any address and prefix, in all of its spellings.
func drawNet(t *rapid.T) string {
	if !maybe(t, "net") {
		return ""
	}
	byte := func(name string) int { return rapid.IntRange(0, 255).Draw(t, name) }
	address := fmt.Sprintf("%d.%d.%d.%d", byte("a"), byte("b"), byte("c"), byte("d"))
	bits := rapid.IntRange(4, 29).Draw(t, "bits")
	switch rapid.IntRange(0, 2).Draw(t, "spelling") {
	case 0:
		return address
	case 1:
		return fmt.Sprintf("%s/%s", address, net.IP(net.CIDRMask(bits, 32)))
	}
	return fmt.Sprintf("%s/%d", address, bits)
}

func drawDisks(t *rapid.T, m *spec.Machine) {
	n := rapid.IntRange(0, 5).Draw(t, "disks")
	// A prefix of its own keeps names apart without discarding draws.
	name := func(i int, what string) string { return fmt.Sprintf("%s%d%s", what, i, Label().Draw(t, what)) }
	for i := range n {
		var d spec.Disk
		switch rapid.IntRange(0, 4).Draw(t, "kind") {
		case 0:
			d.VolumeClaimTemplate = drawTemplate(t, i, name)
		case 1:
			d.PersistentVolumeClaim = &spec.VolumeClaimReference{ClaimName: name(i, "claim")}
		case 2:
			d.Cdrom = &spec.Cdrom{Image: ImageName().Draw(t, "image")}
		case 3:
			d.Image = drawImage(t, name(i, "image"))
		case 4:
			d.ContainerDisk = drawContainerDisk(t, name(i, "container"))
		}
		if maybe(t, "bootindex") {
			index := int32(10*i) + rapid.Int32Range(0, 9).Draw(t, "bootindex")
			d.Bootindex = &index
		}
		m.Disks = append(m.Disks, d)
	}
}

// drawBlockDevices draws disks that exist by themselves.
func drawBlockDevices(t *rapid.T, s *spec.VirtualMachineSpec) {
	if rapid.IntRange(0, 2).Draw(t, "has references") > 0 {
		return
	}
	for i := range rapid.IntRange(1, 3).Draw(t, "references") {
		r := spec.BlockDeviceRef{Kind: rapid.SampledFrom([]string{spec.KindDisk, spec.KindImage}).Draw(t, "kind"), Name: fmt.Sprintf("ref%d%s", i, Label().Draw(t, "reference"))}
		r.Name = strings.TrimRight(r.Name[:min(len(r.Name), spec.MaxDiskName)], "-")
		if maybe(t, "bootOrder") {
			r.BootOrder = new(int32(100 + i)) // those of the disks are lower
		}
		s.BlockDeviceRefs = append(s.BlockDeviceRefs, r)
	}
}

// drawImage draws an image of a server or a registry: files are those of one host.
func drawImage(t *rapid.T, name string) *spec.DiskImage {
	im := &spec.DiskImage{Name: name, Size: new(Bytes(1, 1<<44).Draw(t, "size"))}
	im.Source = rapid.SampledFrom([]string{"https://example.org/debian.qcow2", "http://images.example:8080/a.raw.xz", "oci://quay.io/disks/debian:13"}).Draw(t, "source")
	if im.Source[0] == 'o' && maybe(t, "path") {
		im.Path = "/disk/debian.img"
	}
	if maybe(t, "checksum") {
		im.Checksum = "sha256:" + strings.Repeat("0f", 32)
	}
	if maybe(t, "storageClassName") {
		im.StorageClassName = new(rapid.SampledFrom([]string{"", "local-path"}).Draw(t, "storageClassName"))
	}
	return im
}

func drawContainerDisk(t *rapid.T, name string) *spec.ContainerDisk {
	c := &spec.ContainerDisk{Name: name, Persistent: maybe(t, "persistent")}
	c.Image = rapid.SampledFrom([]string{"debian", "quay.io/disks/debian:13", "registry.example:5000/a/b@sha256:" + strings.Repeat("0f", 32)}).Draw(t, "image")
	if c.Persistent || maybe(t, "size") {
		c.Size = new(Bytes(1, 1<<44).Draw(t, "size"))
	}
	if c.Persistent && maybe(t, "storageClassName") {
		c.StorageClassName = new(rapid.SampledFrom([]string{"", "local-path"}).Draw(t, "storageClassName"))
	}
	if maybe(t, "pullPolicy") {
		c.PullPolicy = rapid.SampledFrom([]corev1.PullPolicy{corev1.PullAlways, corev1.PullIfNotPresent}).Draw(t, "pullPolicy")
	}
	return c
}

func drawTemplate(t *rapid.T, i int, name func(int, string) string) *spec.VolumeClaimTemplate {
	v := &spec.VolumeClaimTemplate{}
	if maybe(t, "metadata") {
		v.Metadata = spec.EmbeddedObjectMeta{Name: name(i, "disk"), Labels: Labels().Draw(t, "labels"), Annotations: Labels().Draw(t, "annotations")}
	}
	v.Spec.Resources.Requests = corev1.ResourceList{corev1.ResourceStorage: Bytes(1, 1<<44).Draw(t, "storage")}
	if maybe(t, "accessModes") {
		v.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteMany}
	}
	if maybe(t, "storageClassName") {
		class := rapid.SampledFrom([]string{"", "local-path", "rook-ceph-block"}).Draw(t, "storageClassName")
		v.Spec.StorageClassName = &class
	}
	if maybe(t, "volumeMode") {
		mode := rapid.SampledFrom([]corev1.PersistentVolumeMode{corev1.PersistentVolumeBlock, corev1.PersistentVolumeFilesystem}).Draw(t, "volumeMode")
		v.Spec.VolumeMode = &mode
	}
	if maybe(t, "selector") {
		v.Spec.Selector = &metav1.LabelSelector{MatchLabels: Labels().Draw(t, "selector")}
	}
	if maybe(t, "dataSource") {
		group := "snapshot.storage.k8s.io"
		v.Spec.DataSource = &corev1.TypedLocalObjectReference{APIGroup: &group, Kind: "VolumeSnapshot", Name: "snapshot"}
	}
	return v
}
