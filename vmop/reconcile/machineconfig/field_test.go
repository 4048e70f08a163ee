package machineconfig_test

import (
	"testing"

	"github.com/vmop/sdk/vmop/reconcile/machineconfig"
)

func TestManifestField(t *testing.T) {
	for config, want := range map[string]string{
		"vm.drives[1]":                           "spec.vm.disks[1]",
		"vm.drives[1].size":                      "spec.vm.disks[1].size",
		"vm.network":                             "spec.vm.networks",
		"vm.network[0]":                          "spec.vm.networks[0]",
		"vm.network[0].bridge":                   "spec.vm.networks[0].tap.bridge",
		"vm.network[2].hostForwards[1].hostPort": "spec.vm.networks[2].user.hostForwards[1].hostPort",
		"vm.maximumRam":                          "spec.vm.maximumRam",
		"vm.uuid":                                "spec.vm.machineUuid",
		"vm.display.spice.port":                  "spec.vm.display.spice.port",
		"cloudInit.userData":                     "spec.cloudInit.userData",
		"cloudInit.metaData":                     "spec.cloudInit.metaData",
		"cloudInit.networkConfigFrom.key":        "spec.cloudInit.networkConfigFrom.key",
		"cloudInit.userDataText":                 "spec.provisioning.userData",
		"cloudInit.userDataFrom.key":             "cloudInit.userDataFrom.key", // of spec.cloudInit or spec.provisioning
		"loggingProperties":                      "loggingProperties",
	} {
		if got := machineconfig.ManifestField(config); got != want {
			t.Errorf("%s: %s, want %s", config, got, want)
		}
	}
}
