package controller

import (
	"github.com/vmop/sdk/vmop/reconcile/objects"
)

type disks struct {
	settings objects.Settings
	progress *importProgress
}
