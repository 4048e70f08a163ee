package qemucmd

import (
	"testing"

	"github.com/vmop/sdk/vmop/limits"
)

// What package limits promises, the standard machine has places for.
func TestMachineHasPlacesForTheLimits(t *testing.T) {
	maxDisks := new(builder).diskSlots() * functions // in the original map, which has most
	if limits.MaxDisks > maxDisks || limits.MaxNetworks > maxNICs || limits.MaxUSBRedirects > usbPorts-usbPortRedirect+1 {
		t.Errorf("places for %d disks, %d networks and %d USB redirections", maxDisks, maxNICs, usbPorts-usbPortRedirect+1)
	}
}
