package runnerconfig

import (
	"encoding/json"

	"github.com/vmop/sdk/internal/jsonwriter"
)

// JSON returns the same bytes as encoding/json in a fraction of the time: every decision about a
// machine encodes its configuration to detect changes.
func (c *Config) JSON() ([]byte, error) {
	return c.AppendJSON(make([]byte, 0, 2048)) // more than most need
}

// AppendJSON appends what [Config.JSON] returns to b.
func (c *Config) AppendJSON(b []byte) ([]byte, error) {
	w := jsonwriter.New(b)
	w.Open('{')
	w.Key("/Runner")
	c.Runner.write(w)
	w.Close('}')
	return w.Result()
}

func (r *Runner) write(w *jsonwriter.Writer) {
	w.Open('{')
	w.Number("generation", r.Generation)
	w.Text("machineUid", r.MachineUID)
	w.Text("namespace", r.Namespace)
	w.Text("dataDir", r.DataDir)
	w.Text("runtimeDir", r.RuntimeDir)
	w.Text("template", r.Template)
	w.Flag("updateTemplate", r.UpdateTemplate)
	w.Key("guestShutdownStops")
	w.Bool(r.GuestShutdownStops)
	w.Flag("guestResetEnds", r.GuestResetEnds)
	number(w, "resetCounter", r.ResetCounter)
	member(w, "cloudInit", r.CloudInit)
	member(w, "sysprep", r.Sysprep)
	w.Key("vm")
	r.VM.write(w)
	w.Close('}')
}

type writer[T any] interface {
	*T
	write(w *jsonwriter.Writer)
}

func member[T any, P writer[T]](w *jsonwriter.Writer, key string, p P) {
	if p != nil {
		w.Key(key)
		p.write(w)
	}
}

func items[T any, P writer[T]](w *jsonwriter.Writer, key string, list []T) {
	w.Key(key)
	if list == nil {
		w.Null()
		return
	}
	w.Open('[')
	for i := range list {
		P(&list[i]).write(w)
	}
	w.Close(']')
}

func someItems[T any, P writer[T]](w *jsonwriter.Writer, key string, list []T) {
	if len(list) > 0 {
		items[T, P](w, key, list)
	}
}

func number[T int | int64](w *jsonwriter.Writer, key string, n *T) {
	if n != nil {
		w.Key(key)
		w.Int(int64(*n))
	}
}

func size(w *jsonwriter.Writer, key string, b Bytes) {
	if b != 0 {
		w.Key(key)
		w.String(b.String())
	}
}

func raw(w *jsonwriter.Writer, key string, r json.RawMessage) {
	if len(r) > 0 {
		w.Key(key)
		w.Raw(r)
	}
}

func (c *CloudInit) write(w *jsonwriter.Writer) {
	if len(c.MetaDataValues) > 0 {
		all, err := c.MarshalJSON()
		w.Fail(err)
		w.Raw(all)
		return
	}
	w.Open('{')
	if len(c.MetaData) > 0 {
		w.Key("metaData")
		w.Strings(c.MetaData)
	}
	raw(w, "userData", c.UserData)
	raw(w, "networkConfig", c.NetworkConfig)
	w.Text("userDataText", c.UserDataText)
	member(w, "metaDataFrom", c.MetaDataFrom)
	member(w, "userDataFrom", c.UserDataFrom)
	member(w, "networkConfigFrom", c.NetworkConfigFrom)
	w.Close('}')
}

func (s *CloudInitSource) write(w *jsonwriter.Writer) {
	w.Open('{')
	w.Key("secret")
	w.String(s.Secret)
	w.Key("key")
	w.String(s.Key)
	w.Text("file", s.File)
	w.Text("otherKey", s.OtherKey)
	w.Text("otherFile", s.OtherFile)
	w.Flag("anyForm", s.AnyForm)
	w.Text("contentDigest", s.ContentDigest)
	w.Close('}')
}

func (s *Sysprep) write(w *jsonwriter.Writer) {
	w.Open('{')
	member(w, "unattend", s.Unattend)
	member(w, "autounattend", s.Autounattend)
	w.Close('}')
}

func (vm *VM) write(w *jsonwriter.Writer) {
	w.Open('{')
	w.Key("name")
	w.String(vm.Name)
	w.Text("uuid", vm.UUID)
	w.Key("useTpm")
	w.Bool(vm.UseTPM)
	w.Text("firmware", vm.Firmware)
	w.Text("panicDevice", vm.PanicDevice)
	w.Key("bootMenu")
	w.Bool(vm.BootMenu)
	number(w, "powerdownTimeout", vm.PowerdownTimeout)
	w.Text("cpuModel", vm.CPUModel)
	w.Number("maximumCpus", int64(vm.MaximumCPUs))
	w.Number("sockets", int64(vm.Sockets))
	w.Number("diesPerSocket", int64(vm.DiesPerSocket))
	w.Number("coresPerDie", int64(vm.CoresPerDie))
	w.Number("threadsPerCore", int64(vm.ThreadsPerCore))
	w.Number("currentCpus", int64(vm.CurrentCPUs))
	size(w, "maximumRam", vm.MaximumRAM)
	size(w, "currentRam", vm.CurrentRAM)
	w.Number("pendingCpus", int64(vm.PendingCPUs))
	size(w, "pendingRam", vm.PendingRAM)
	w.Text("accelerator", vm.Accelerator)
	w.Text("machineType", vm.MachineType)
	w.Text("rtcBase", vm.RTCBase)
	w.Text("rtcClock", vm.RTCClock)
	w.Text("bootOrder", vm.BootOrder)
	w.Text("cpuOrder", vm.CPUOrder)
	member(w, "kernelBoot", vm.KernelBoot)
	if vm.Serial != nil {
		w.Key("serial")
		w.Bool(*vm.Serial)
	}
	items(w, "network", vm.Network)
	items(w, "drives", vm.Drives)
	someItems(w, "shares", vm.Shares)
	someItems(w, "attachments", vm.Attachments)
	someItems(w, "usbDevices", vm.USBDevices)
	member(w, "display", vm.Display)
	w.Close('}')
}

func (k *KernelBoot) write(w *jsonwriter.Writer) {
	w.Open('{')
	w.Key("kernel")
	w.String(k.Kernel)
	w.Text("initrd", k.Initrd)
	w.Text("args", k.Args)
	w.Close('}')
}

func (n *Network) write(w *jsonwriter.Writer) {
	w.Open('{')
	w.Key("type")
	w.String(n.Type)
	w.Text("bridge", n.Bridge)
	w.Text("device", n.Device)
	w.Text("mac", n.MAC)
	w.Text("net", n.Net)
	someItems(w, "hostForwards", n.HostForwards)
	w.Close('}')
}

func (f *HostForward) write(w *jsonwriter.Writer) {
	w.Open('{')
	w.Text("protocol", f.Protocol)
	w.Text("hostAddress", f.HostAddress)
	w.Key("hostPort")
	w.Int(int64(f.HostPort))
	w.Key("guestPort")
	w.Int(int64(f.GuestPort))
	w.Close('}')
}

func (d *Drive) write(w *jsonwriter.Writer) {
	w.Open('{')
	w.Key("type")
	w.String(d.Type)
	w.Text("name", d.Name)
	w.Text("resource", d.Resource)
	w.Text("file", d.File)
	w.Text("device", d.Device)
	size(w, "size", d.Size)
	size(w, "growTo", d.GrowTo)
	w.Flag("newImage", d.NewImage)
	member(w, "image", d.Image)
	w.Flag("readOnly", d.ReadOnly)
	number(w, "bootindex", d.BootIndex)
	w.Close('}')
}

func (i *DriveImage) write(w *jsonwriter.Writer) {
	w.Open('{')
	w.Key("source")
	w.String(i.Source)
	w.Text("path", i.Path)
	w.Text("checksum", i.Checksum)
	w.Text("caBundle", i.CABundle)
	w.Text("pullPolicy", i.PullPolicy)
	w.Flag("ephemeral", i.Ephemeral)
	w.Close('}')
}

func (s *Share) write(w *jsonwriter.Writer) {
	w.Open('{')
	w.Key("tag")
	w.String(s.Tag)
	w.Key("dir")
	w.String(s.Dir)
	w.Flag("readOnly", s.ReadOnly)
	w.Text("protocol", s.Protocol)
	w.Close('}')
}

func (a *Attachment) write(w *jsonwriter.Writer) {
	w.Open('{')
	w.Key("uid")
	w.String(a.UID)
	w.Key("name")
	w.String(a.Name)
	w.Number("place", int64(a.Place))
	w.Text("path", a.Path)
	size(w, "growTo", a.GrowTo)
	w.Text("address", a.Address)
	w.Text("fingerprint", a.Fingerprint)
	w.Flag("detach", a.Detach)
	w.Close('}')
}

func (u *USBDevice) write(w *jsonwriter.Writer) {
	w.Open('{')
	w.Key("vendor")
	w.String(u.Vendor)
	w.Key("product")
	w.String(u.Product)
	w.Close('}')
}
