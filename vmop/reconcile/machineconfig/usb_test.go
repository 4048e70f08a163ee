package machineconfig_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/vmop/sdk/vmop/reconcile/machineconfig"
	"github.com/vmop/sdk/vmop/runnerconfig"
	"github.com/vmop/sdk/vmop/spec"
)

// One host gives its machines USB devices; a cluster does not, and says so.
func TestUSBDevices(t *testing.T) {
	vm := sharing("")
	vm.Spec.VM.USBDevices = []spec.USBDevice{{Vendor: "046D", Product: "C31c"}}
	c, err := machineconfig.ForHost(vm, machineconfig.Host{DataDir: "/data", RuntimeDir: "/run"})
	if want := []runnerconfig.USBDevice{{Vendor: "046d", Product: "c31c"}}; err != nil || !slices.Equal(c.Runner.VM.USBDevices, want) {
		t.Errorf("%+v, %v", c.Runner.VM.USBDevices, err)
	}
	_, err = machineconfig.ForCluster(vm, machineconfig.Options{})
	if err == nil || !strings.Contains(err.Error(), "spec.vm.usbDevices[0]") || !strings.Contains(err.Error(), "there is no setting") {
		t.Errorf("in a cluster: %v", err)
	}
}
