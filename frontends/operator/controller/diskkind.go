package controller

import (
	"github.com/vmop/sdk/vmop/reconcile/objects"
)

type disks struct {
	*reader
	settings objects.Settings
	starts   *starts
	progress *importProgress
}
