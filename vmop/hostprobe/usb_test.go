package hostprobe_test

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/vmop/sdk/vmop/hostprobe"
)

func TestUSBDevices(t *testing.T) {
	root := t.TempDir()
	if got, err := hostprobe.USBDevices(root); err != nil || got != nil {
		t.Errorf("a host without USB: %v, %v", got, err)
	}
	write := func(name, content string) {
		t.Helper()
		file := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for name, content := range map[string]string{
		"1-2/idVendor": "0951\n", "1-2/idProduct": "1666\n", "1-2/busnum": "1\n", "1-2/devnum": "4\n",
		"2-1/idVendor": "046D\n", "2-1/idProduct": "c31c\n", "2-1/busnum": "2\n", "2-1/devnum": "11\n",
		"1-2:1.0/bInterfaceClass": "08\n", // an interface
	} {
		write("sys/bus/usb/devices/"+name, content)
	}
	write("dev/bus/usb/001/004", "")
	got, err := hostprobe.USBDevices(root)
	want := []hostprobe.USBDevice{
		{Vendor: "0951", Product: "1666", Node: "/dev/bus/usb/001/004"},
		{Vendor: "046d", Product: "c31c", Node: "/dev/bus/usb/002/011", Denied: "no such file or directory"},
	}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("%+v, %v", got, err)
	}
}
