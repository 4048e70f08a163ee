package qemucmd

import (
	"testing"

	"github.com/vmop/sdk/vmop/limits"
)

// What package limits promises, the standard machine has places for.
func TestMachineHasPlacesForTheLimits(t *testing.T) {
	_, slots := new(builder).diskSlots() // in the original map, which has most
	maxDisks, maxNICs := slots*functions, new(builder).nicSlots()*functions
	if limits.MaxDisks > maxDisks || limits.MaxNetworks > maxNICs || limits.MaxUSBRedirects > usbPorts-usbPortRedirect+1 {
		t.Errorf("places for %d disks, %d networks and %d USB redirections", maxDisks, maxNICs, usbPorts-usbPortRedirect+1)
	}
}
