package debianguest_test

import (
	"context"
	"fmt"
	"os/exec"
	"time"

	"github.com/vmop/sdk/internal/debianguest"
)

func ExampleEnsure() {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	defer cancel()
	guest, err := debianguest.Ensure(ctx, debianguest.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	cmd := exec.CommandContext(ctx, "qemu-system-x86_64", "-m", "768", "-accel", "tcg", "-nographic",
		"-kernel", guest.Kernel, "-initrd", guest.Initrd, "-append", guest.Append,
		"-drive", "file="+guest.Disk+",format=raw,if=virtio,snapshot=on")
	fmt.Println(cmd.Run())
}
