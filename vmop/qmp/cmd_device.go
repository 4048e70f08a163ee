package qmp

import (
	"encoding/json"
	"fmt"
)

// DeviceAdd plugs a device. The properties depend on the driver, see DeviceListProperties; they
// keep their JSON types.
type DeviceAdd struct {
	Driver     string
	ID         string         // needed to unplug it again
	Bus        string         // empty lets QEMU choose
	Properties map[string]any // the driver's own, without the above
}

// QMP implements Command.
func (DeviceAdd) QMP() (string, None) { return "device_add", None{} }

// MarshalJSON encodes the properties beside the named fields. It fails if they contain one of
// these.
func (d DeviceAdd) MarshalJSON() ([]byte, error) {
	return flat(d.Properties, option{"driver", d.Driver}, option{"id", d.ID}, option{"bus", d.Bus})
}

// DeviceDel requests to unplug a device. Where the guest may refuse, the reply only confirms the
// request; a DEVICE_DELETED or DEVICE_UNPLUG_GUEST_ERROR event reports the outcome. The error is
// ErrDeviceNotFound if the device does not exist.
type DeviceDel struct {
	ID string `json:"id"` // id or QOM path
}

// QMP implements Command.
func (DeviceDel) QMP() (string, None) { return "device_del", None{} }

// DeviceListProperties queries the properties of a device driver.
type DeviceListProperties struct {
	Typename string `json:"typename"` // driver
}

// QMP implements Command.
func (DeviceListProperties) QMP() (string, []ObjectProperty) { return "device-list-properties", nil }

// ObjectAdd creates an object such as a memory backend, a secret or an iothread.
type ObjectAdd struct {
	QOMType    string
	ID         string
	Properties map[string]any // the type's own
}

// QMP implements Command.
func (ObjectAdd) QMP() (string, None) { return "object-add", None{} }

// MarshalJSON encodes the properties beside the named fields. It fails if they contain one of
// these.
func (o ObjectAdd) MarshalJSON() ([]byte, error) {
	return flat(o.Properties, option{"qom-type", o.QOMType}, option{"id", o.ID})
}

// ObjectDel deletes an object that was created with -object or ObjectAdd.
type ObjectDel struct {
	ID string `json:"id"`
}

// QMP implements Command.
func (ObjectDel) QMP() (string, None) { return "object-del", None{} }

// NetdevAdd creates a network backend.
type NetdevAdd struct {
	Type       string // "user", "tap", "stream", ...
	ID         string
	Properties map[string]any // the type's own
}

// QMP implements Command.
func (NetdevAdd) QMP() (string, None) { return "netdev_add", None{} }

// MarshalJSON encodes the properties beside the named fields. It fails if they contain one of
// these.
func (n NetdevAdd) MarshalJSON() ([]byte, error) {
	return flat(n.Properties, option{"type", n.Type}, option{"id", n.ID})
}

// NetdevDel deletes a network backend.
type NetdevDel struct {
	ID string `json:"id"`
}

// QMP implements Command.
func (NetdevDel) QMP() (string, None) { return "netdev_del", None{} }

type option struct {
	name  string
	value string // left out when empty
}

func flat(properties map[string]any, named ...option) ([]byte, error) {
	all := make(map[string]any, len(properties)+len(named))
	for name, value := range properties {
		all[name] = value
	}
	for _, o := range named {
		if _, twice := all[o.name]; twice {
			return nil, fmt.Errorf("property %q must be given as its own field", o.name)
		}
		if o.value != "" {
			all[o.name] = o.value
		}
	}
	return json.Marshal(all)
}
