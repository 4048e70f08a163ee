package runner

import "strings"

// rootWarning is empty if user, in a user namespace with the map uidMap (user_namespaces(7)), is
// not the host's root.
func rootWarning(user int, uidMap string, inPod bool) string {
	if user != 0 {
		return ""
	}
	if f := strings.Fields(uidMap); len(f) >= 2 && f[0] == "0" && f[1] != "0" {
		return "" // another user outside
	}
	if inPod {
		return "the runner is root, and QEMU with it: a guest that breaks out of QEMU is root in this pod, and of its node where the pod is privileged; " +
			"use an image whose user is another one, such as 65532 of deploy/images, and no securityContext that says runAsUser: 0"
	}
	return "the runner is root, and QEMU with it: a guest that breaks out of QEMU has this host; " +
		"run machines as a user of their own, who needs the group of /dev/kvm and nothing else"
}
