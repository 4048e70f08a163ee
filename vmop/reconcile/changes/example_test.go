package changes_test

import (
	"fmt"

	"github.com/vmop/sdk/vmop/reconcile/changes"
	"github.com/vmop/sdk/vmop/reconcile/internal/fixture"
	"github.com/vmop/sdk/vmop/spec"
)

func ExampleBetween() {
	old, new := fixture.WebServer(), fixture.WebServer()
	new.Spec.VM.Disks[0].Cdrom.Image = ""
	new.Spec.VM.Firmware = spec.FirmwareBIOS
	for _, c := range changes.Between(old, new, changes.Options{}) {
		fmt.Println(c)
	}
	// Output:
	// replace spec.vm.firmware: "uefi" -> "bios" (restart)
	// replace spec.vm.disks[0].cdrom.image: "debian.iso" -> "" (live)
}
