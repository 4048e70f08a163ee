package main

import (
	"fmt"
	"strings"
	"testing"

	"github.com/vmop/sdk/vmop/names"
	"github.com/vmop/sdk/vmop/spec"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// asks waits until the pod of a machine asks for CPU, and the configuration gives
// the guest a number of processors.
func (t *test) asks(name, cpu string, guest int) {
	t.Helper()
	t.eventually(fmt.Sprintf("pod %s asks for %s, and the guest has %d CPUs", name, cpu, guest), func() error {
		pod, err := t.kube.CoreV1().Pods(t.namespace).Get(t.Context(), name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		cm, err := t.kube.CoreV1().ConfigMaps(t.namespace).Get(t.Context(), name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		if got := pod.Spec.Containers[0].Resources.Requests.Cpu(); got.Cmp(*quantity(cpu)) != 0 {
			return fmt.Errorf("it asks for %s", got)
		}
		if !strings.Contains(cm.Data[names.ConfigKey], fmt.Sprintf("currentCpus: %d\n", guest)) {
			return fmt.Errorf("the configuration is %s", cm.Data[names.ConfigKey])
		}
		return nil
	})
}

func (t *test) giveCPUs(name string, n int) {
	t.Helper()
	if _, err := t.vms.Patch(t.Context(), name, types.MergePatchType, fmt.Appendf(nil, `{"spec":{"vm":{"maximumCpus":16,"currentCpus":%d}}}`, n), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
}

// A pod grows before its guest does; where a quota forbids it the guest keeps what
// it has, until the quota is gone, and where its node is too small.
func TestGrowthResizesThePod(tt *testing.T) {
	tt.Parallel()
	t := newTest(tt)
	t.startKubeletThat(true)
	t.start(cluster.Kubeconfig())
	t.create(strings.Replace(machine("one", "Running"), "maximumCpus: 2", "maximumCpus: 16", 1))
	t.phase("one", spec.PhaseRunning)
	t.asks("one", "500m", 1)
	t.giveCPUs("one", 2)
	t.asks("one", "1", 2)

	quotas := t.kube.CoreV1().ResourceQuotas(t.namespace)
	quota := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Name: "full"}}
	quota.Spec.Hard = corev1.ResourceList{corev1.ResourceRequestsCPU: *quantity("1")}
	made, err := quotas.Create(t.Context(), quota, metav1.CreateOptions{})
	if err == nil {
		// The quota controller would do this.
		made.Status = corev1.ResourceQuotaStatus{Hard: quota.Spec.Hard, Used: quota.Spec.Hard}
		_, err = quotas.UpdateStatus(t.Context(), made, metav1.UpdateOptions{})
	}
	if err != nil {
		t.Fatal(err)
	}
	t.giveCPUs("one", 4)
	t.waits("one", spec.ConditionConfigurationApplied, spec.ReasonQuotaExceeded)
	t.asks("one", "1", 2)
	if err := quotas.Delete(t.Context(), "full", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	t.asks("one", "2", 4)

	// Its node has four processors.
	t.giveCPUs("one", 8)
	t.asks("one", "4", 8)
	t.giveCPUs("one", 16)
	t.waits("one", spec.ConditionConfigurationApplied, spec.ReasonResizeInfeasible)
	t.asks("one", "4", 8)
	t.giveCPUs("one", 7)
	t.asks("one", "4", 7)
}

// A cluster that does not resize pods lets guests grow as before, and says that the
// pod does not.
func TestGrowthWithoutResizing(tt *testing.T) {
	tt.Parallel()
	t := newTest(tt)
	t.startKubeletThat(true)
	p := newProxy(tt)
	p.old = true
	t.start(p.kubeconfig)
	t.create(strings.Replace(machine("one", "Running"), "maximumCpus: 2", "maximumCpus: 16", 1))
	t.phase("one", spec.PhaseRunning)
	t.giveCPUs("one", 2)
	t.asks("one", "500m", 2)
	t.eventually("the machine says so", func() error {
		vm, err := t.status("one")
		if err != nil {
			return err
		}
		c := spec.FindCondition(vm.Status.Conditions, spec.ConditionConfigurationApplied)
		if c == nil || c.Status != metav1.ConditionTrue || !strings.Contains(c.Message, "the API server does not resize pods in place") {
			return fmt.Errorf("%+v", c)
		}
		return nil
	})
}
