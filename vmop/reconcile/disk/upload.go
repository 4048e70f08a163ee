package disk

import (
	"fmt"

	"github.com/vmop/sdk/vmop/conditions"
	"github.com/vmop/sdk/vmop/spec"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func (d *decision) uploaded() bool {
	s := d.disk.Spec.DataSource
	return s != nil && s.Type == spec.DiskSourceUpload
}

func (d *decision) command() string {
	flag := ""
	if d.image != nil {
		flag = " --image"
	}
	return fmt.Sprintf("vmop-cli disk upload --cluster -n %s %s FILE%s", d.disk.Namespace, d.disk.Name, flag)
}

func (d *decision) needUpload(im *spec.VirtualDiskImport) {
	const reason = conditions.ReasonDiskUploadNeeded
	if im != nil && im.Message != "" {
		message := "nothing was uploaded: " + im.Message
		// The user who requested this upload knows the command; the cause is what they do not
		// know.
		if how := ". Upload it: " + d.command(); len(message)+len(how) <= conditions.Line {
			message += how
		}
		d.say(spec.DiskWaitForUserUpload, metav1.ConditionFalse, reason, "%s", message)
		return
	}
	d.say(spec.DiskWaitForUserUpload, metav1.ConditionFalse, reason, "upload what the %s is to be: %s", d.noun, d.command())
}
