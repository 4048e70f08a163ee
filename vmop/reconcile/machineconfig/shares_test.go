package machineconfig_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/vmop/sdk/vmop/reconcile/machineconfig"
	"github.com/vmop/sdk/vmop/runnerconfig"
	"github.com/vmop/sdk/vmop/spec"
)

func sharing(userData string, shares ...spec.Share) *spec.VirtualMachine {
	vm := spec.NewVirtualMachine("lab", "web")
	one := int32(1)
	vm.Spec.VM.MaximumCPUs = &one
	vm.Spec.VM.Shares = shares
	if userData != "" {
		vm.Spec.CloudInit = &spec.CloudInit{UserData: &runtime.RawExtension{Raw: []byte(userData)}}
	}
	return vm
}

// What the guest mounts is added to the user data, of which nothing else changes;
// what the user data mount themselves counts.
func TestSharesAreMountedByCloudInit(t *testing.T) {
	src := spec.Share{Tag: "src", HostPath: "/s"}
	docs := spec.Share{Tag: "docs", HostPath: "/d", ReadOnly: true, Protocol: spec.Share9P, MountPoint: "/srv/docs"}
	for _, c := range []struct {
		userData string
		shares   []spec.Share
		want     string
	}{
		{`{"b":1.0,"a":"<x>"}`, nil, `{"b":1.0,"a":"<x>"}`},
		{`{"b":1.0,"a":"<x>"}`, []spec.Share{src}, `{"b":1.0,"a":"<x>","mounts":[["src","/mnt/src","virtiofs","defaults,nofail","0","0"]]}`},
		{`{}`, []spec.Share{docs}, `{"mounts":[["docs","/srv/docs","9p","trans=virtio,version=9p2000.L,msize=262144,nofail,ro","0","0"]]}`},
		{`{"mounts":[["vdb","/data"]],"z":null}`, []spec.Share{src}, `{"z":null,"mounts":[["vdb","/data"],["src","/mnt/src","virtiofs","defaults,nofail","0","0"]]}`},
		{`{"mounts":[["src","/home"]]}`, []spec.Share{src}, `{"mounts":[["src","/home"]]}`},
		{`{"mounts":"none"}`, []spec.Share{src}, `{"mounts":"none"}`},
	} {
		got, err := machineconfig.ForHost(sharing(c.userData, c.shares...), machineconfig.Host{DataDir: "/data", RuntimeDir: "/run"})
		if err != nil {
			t.Fatal(err)
		}
		if string(got.Runner.CloudInit.UserData) != c.want || !json.Valid(got.Runner.CloudInit.UserData) {
			t.Errorf("%s with %v:\n%s, want\n%s", c.userData, c.shares, got.Runner.CloudInit.UserData, c.want)
		}
	}
	got, err := machineconfig.ForHost(sharing("", src), machineconfig.Host{DataDir: "/data", RuntimeDir: "/run"})
	if err != nil || got.Runner.CloudInit != nil {
		t.Errorf("%+v, %v", got.Runner.CloudInit, err)
	}
}

func TestFoldersOfShares(t *testing.T) {
	claim := spec.Share{Tag: "data", PersistentVolumeClaim: &spec.VolumeClaimReference{ClaimName: "shared"}, ReadOnly: true}
	relative := spec.Share{Tag: "src", HostPath: "../src/."}
	host := machineconfig.Host{DataDir: "/data", RuntimeDir: "/run", ShareBase: "/home/ann/vm"}
	_, err := machineconfig.ForHost(sharing("", claim), host)
	if err == nil || !strings.Contains(err.Error(), "--share DIR:data") {
		t.Errorf("a claim on one host: %v", err)
	}
	host.Shares = []machineconfig.LocalShare{{Tag: "data", Dir: "/srv/data"}, {Tag: "more", Dir: "/srv/more", ReadOnly: true}}
	c, err := machineconfig.ForHost(sharing("", relative, claim), host)
	want := []runnerconfig.Share{{Tag: "src", Dir: "/home/ann/src"}, {Tag: "data", Dir: "/srv/data", ReadOnly: true}, {Tag: "more", Dir: "/srv/more", ReadOnly: true}}
	if err != nil || !slices.Equal(c.Runner.VM.Shares, want) {
		t.Errorf("%+v, %v", c.Runner.VM.Shares, err)
	}
	host.ShareBase = ""
	if _, err := machineconfig.ForHost(sharing("", relative), host); err == nil || !strings.Contains(err.Error(), "shares[0].hostPath") {
		t.Errorf("a relative path without a folder: %v", err)
	}

	c, err = machineconfig.ForCluster(sharing("", claim), machineconfig.Options{})
	if want := []runnerconfig.Share{{Tag: "data", Dir: machineconfig.ShareMountDir + "/data", ReadOnly: true}}; err != nil || !slices.Equal(c.Runner.VM.Shares, want) {
		t.Errorf("%+v, %v", c.Runner.VM.Shares, err)
	}
	if _, err := machineconfig.ForCluster(sharing("", relative), machineconfig.Options{}); err == nil || !strings.Contains(err.Error(), "shares[0].hostPath") {
		t.Errorf("a folder of a node: %v", err)
	}
}
