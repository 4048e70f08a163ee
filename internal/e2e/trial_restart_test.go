//go:build e2e

package e2e

import (
	"strings"
	"testing"
)

// firstConsumer is a storage class whose claims have no volume before a pod uses them, and a volume
// of it.
const firstConsumer = `
apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata: {name: first-consumer}
provisioner: kubernetes.io/no-provisioner
volumeBindingMode: WaitForFirstConsumer
---
apiVersion: v1
kind: PersistentVolume
metadata: {name: first-consumer}
spec:
  accessModes: [ReadWriteOnce]
  capacity: {storage: 32Mi}
  storageClassName: first-consumer
  persistentVolumeReclaimPolicy: Retain
  hostPath: {path: "DIRECTORY"}
`

// restarts has a machine restarted whose new disk has no volume before its next pod is there, which
// is no reason to wait; and one whose disk would be gone then, which is: it runs on, and the
// operation ends with the reason, long before its time.
func restarts(t *testing.T, cli told) {
	ready(t)
	dir := strings.TrimSpace(onNode(t, "mktemp", "-d"))
	onNode(t, "chmod", "777", dir)
	apply(t, strings.Replace(firstConsumer, "DIRECTORY", dir, 1))
	t.Cleanup(func() {
		kubectl(t, "delete", "storageclass/first-consumer", "pv/first-consumer", "--wait=false")
	})
	before := podUID(t)
	apply(t, trialMachine(t)+`    - volumeClaimTemplate:
        metadata:
          name: late
        spec:
          storageClassName: first-consumer
          volumeMode: Filesystem
          resources:
            requests:
              storage: 32Mi
`)
	awaitMessage(t, "tiny", "AwaitingRestartToApplyConfiguration", "ChangesPendingRestart", "the next start")
	cli.run("restart", "tiny")
	if now := podUID(t); now == before {
		t.Error("the machine has the same pod")
	}
	awaitDisks(t, ready(t), "vdb 33554432 bytes", true)

	before = podUID(t)
	kubectl(t, "delete", "pvc", "-n", namespace, "tiny-late-disk", "--wait=false")
	awaitMessage(t, "tiny", "BlockDevicesReady", "ClaimTerminating", "claim tiny-late-disk of ")
	cli.refused("machine tiny was not restarted: claim tiny-late-disk of ", "restart", "tiny")
	if now := podUID(t); now != before {
		t.Errorf("the pod was %s and is %s: the claim was deleted with its data", before, now)
	}
	// Who does not want the disk any more says so.
	apply(t, trialMachine(t))
	cli.run("restart", "tiny")
	awaitDisks(t, ready(t), "vdb", false)
}
