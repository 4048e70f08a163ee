package controller

import (
	"github.com/vmop/sdk/vmop/reconcile/objects"
)

// disks is what an engine has to know of disks and images.
type disks struct {
	settings objects.Settings
	progress *importProgress
}
