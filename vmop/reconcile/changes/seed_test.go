package changes_test

import (
	"strings"
	"testing"

	"github.com/vmop/sdk/vmop/reconcile/changes"
	"github.com/vmop/sdk/vmop/reconcile/internal/fixture"
)

// What cloud-init does not do with another document is said, and what would have it done;
// not where the guest has seen none, or is to be set up anew in any case.
func TestKnownInstance(t *testing.T) {
	const ignored, network, clean = "acts only on what is for each boot, such as bootcmd, and perhaps on sections that are new; ", "keeps the network", "cloud-init clean in the guest has it set up everything anew"
	for _, x := range []struct{ name, old, new, path, want string }{
		{"user data", "cloudInit: {userData: {a: 1}}", "cloudInit: {userData: {a: 2}}", "spec.cloudInit.userData", ignored},
		{"what applies them", "cloudInit: {userData: {a: 1}}", "cloudInit: {userData: {a: 2}}", "spec.cloudInit.userData", "; another instance-id in the meta-data, or cloud-init clean in the guest, has it set up everything anew"},
		{"first user data", "cloudInit: {metaData: {zone: a}}", "cloudInit: {metaData: {zone: a}, userData: {a: 2}}", "spec.cloudInit.userData", ignored},
		{"a Secret instead", "cloudInit: {userData: {a: 1}}", "cloudInit: {userDataFrom: {secretRef: {name: s}}}", "spec.cloudInit.userDataFrom", ignored},
		{"another Secret", "cloudInit: {userDataFrom: {secretRef: {name: r}}}", "cloudInit: {userDataFrom: {secretRef: {name: s}}}", "spec.cloudInit.userDataFrom.secretRef.name", ignored},
		{"network", "cloudInit: {networkConfig: {version: 1}}", "cloudInit: {networkConfig: {version: 2}}", "spec.cloudInit.networkConfig", network},
		{"the same id, written", "cloudInit: {userData: {a: 1}}", "cloudInit: {metaData: {instance-id: shop.web}, userData: {a: 2}}", "spec.cloudInit.userData", ignored},
		{"another id", "cloudInit: {userData: {a: 1}}", "cloudInit: {metaData: {instance-id: new}, userData: {a: 2}}", "spec.cloudInit.userData", ""},
		{"another id itself", "cloudInit: {metaData: {instance-id: old, zone: a}}", "cloudInit: {metaData: {instance-id: new, zone: b}}", "spec.cloudInit.metaData[instance-id]", "cloud-init sets up everything anew"},
		{"what stands beside it", "cloudInit: {metaData: {instance-id: old, zone: a}}", "cloudInit: {metaData: {instance-id: new, zone: b}}", "spec.cloudInit.metaData[zone]", ""},
		{"no seed before", "", "cloudInit: {userData: {a: 2}}", "spec.cloudInit", ""},
		{"no seed any more", "cloudInit: {userData: {a: 2}}", "", "spec.cloudInit", ""},
		{"provisioning", `provisioning: {type: UserData, userData: "#cloud-config"}`, `provisioning: {type: UserData, userData: "#!/bin/sh"}`, "spec.provisioning.userData", ignored},
		{"provisioning has no meta-data", `provisioning: {type: UserData, userData: "#cloud-config"}`, `provisioning: {type: UserData, userData: "#!/bin/sh"}`, "spec.provisioning.userData", "; " + clean},
		{"provisioning instead", "cloudInit: {userData: {a: 1}}", `provisioning: {type: UserData, userData: "#cloud-config"}`, "spec.provisioning", ignored},
		{"Windows", "provisioning: {type: SysprepRef, sysprepRef: {kind: Secret, name: r}}", "provisioning: {type: SysprepRef, sysprepRef: {kind: Secret, name: s}}", "spec.provisioning.sysprepRef.name", ""},
	} {
		t.Run(x.name, func(t *testing.T) {
			const head = "apiVersion: vmoperator.jdrupes.org/v1\nkind: VirtualMachine\nmetadata: {name: web, namespace: shop}\nspec:\n  vm: {maximumCpus: 1, networks: []}\n"
			old, new := fixture.Parse(t, "old.yaml", head+"  "+x.old+"\n"), fixture.Parse(t, "new.yaml", head+"  "+x.new+"\n")
			found := false
			for _, c := range changes.Between(old, new, changes.Options{}) {
				if c.Path != x.path {
					continue
				}
				found = true
				if c.Applied != changes.AppliedRestart || x.want == "" && c.Reason != "" || !strings.Contains(c.Reason, x.want) {
					t.Errorf("%s, want %q", c, x.want)
				}
			}
			if !found {
				t.Errorf("%s is no change: %v", x.path, changes.Between(old, new, changes.Options{}))
			}
		})
	}
}
