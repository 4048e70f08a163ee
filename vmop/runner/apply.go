package runner

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/vmop/sdk/vmop/qmp"
	"github.com/vmop/sdk/vmop/runnerconfig"
)

// The files of the display secret, as VM-Operator mounts them.
const (
	displayPasswordFile = "display-password"
	passwordExpiryFile  = "password-expiry"
)

// hasDisplayPassword says whether the secret's directory has a password. An
// empty directory name means that there is no secret.
func hasDisplayPassword(dir string) (bool, error) {
	_, found, err := readSecret(dir, displayPasswordFile)
	return found, err
}

func readSecret(dir, name string) (value string, found bool, err error) {
	if dir == "" {
		return "", false, nil
	}
	data, err := os.ReadFile(filepath.Join(dir, name))
	if errors.Is(err, os.ErrNotExist) {
		return "", false, nil
	}
	if err != nil {
		return "", false, fmt.Errorf("display secret: %w", err)
	}
	return string(data), true, nil
}

// apply brings a paused machine to its configuration.
func (e *Engine) apply(ctx context.Context, c *qmp.Client) error {
	vm := &e.o.Config.Runner.VM
	cpus, err := e.plugCPUs(ctx, c, vm.CurrentCPUs)
	if err != nil {
		return err
	}
	ram := e.State().MaximumRAM
	if vm.CurrentRAM > 0 && int64(vm.CurrentRAM) < ram {
		if err := do(ctx, c, qmp.Balloon{Value: int64(vm.CurrentRAM)}); err != nil {
			return fmt.Errorf("set the memory balloon to %s: %w", vm.CurrentRAM, err)
		}
		ram = int64(vm.CurrentRAM)
	}
	e.update(func(s *State) { s.CPUs, s.RAM = cpus, ram })
	return e.applyDisplayPassword(ctx, c, vm.Display)
}

func (e *Engine) applyDisplayPassword(ctx context.Context, c *qmp.Client, d *runnerconfig.Display) error {
	if d == nil || d.SPICE == nil {
		return nil
	}
	password, found, err := readSecret(e.o.DisplaySecretDir, displayPasswordFile)
	if err != nil || !found {
		return err
	}
	if err := do(ctx, c, qmp.SetPassword{Protocol: "spice", Password: password}); err != nil {
		return fmt.Errorf("set the display password: %w", err)
	}
	expiry, found, err := readSecret(e.o.DisplaySecretDir, passwordExpiryFile)
	if err != nil || !found {
		return err
	}
	// Secrets that were made with echo end in a newline, which QEMU refuses.
	if err := do(ctx, c, qmp.ExpirePassword{Protocol: "spice", Time: strings.TrimSpace(expiry)}); err != nil {
		return fmt.Errorf("set the expiry of the display password: %w", err)
	}
	return nil
}

// plugCPUs plugs CPUs until there are as many as wanted and returns how many
// there are.
func (e *Engine) plugCPUs(ctx context.Context, c *qmp.Client, wanted int) (int, error) {
	slots, err := answer(ctx, c, qmp.QueryHotpluggableCPUs{})
	if err != nil {
		return 0, fmt.Errorf("ask for the CPU slots: %w", err)
	}
	present, adds := missingCPUs(slots, wanted)
	for _, add := range adds {
		if err := do(ctx, c, add); err != nil {
			return present, fmt.Errorf("plug %s: %w", add.ID, err)
		}
		present++
	}
	return present, nil
}

// cpuIDPrefix begins the ids of plugged CPUs. It is VM-Operator's.
const cpuIDPrefix = "cpu-"

// missingCPUs says how many CPUs are plugged, and what to plug to have wanted:
// the free slots in the order of the topology (QEMU lists them backwards).
func missingCPUs(slots []qmp.HotpluggableCPU, wanted int) (present int, adds []qmp.DeviceAdd) {
	var free []qmp.HotpluggableCPU
	used := map[string]bool{}
	for _, s := range slots {
		if s.QOMPath == "" {
			free = append(free, s)
			continue
		}
		present++
		used[filepath.Base(s.QOMPath)] = true
	}
	slices.SortFunc(free, func(a, b qmp.HotpluggableCPU) int { return slices.Compare(place(a), place(b)) })
	next := 1
	for _, s := range free {
		if present+len(adds) >= wanted {
			break
		}
		for used[fmt.Sprint(cpuIDPrefix, next)] {
			next++
		}
		id := fmt.Sprint(cpuIDPrefix, next)
		used[id] = true
		props := make(map[string]any, len(s.Props))
		for k, v := range s.Props {
			props[k] = v
		}
		adds = append(adds, qmp.DeviceAdd{Driver: s.Type, ID: id, Properties: props})
	}
	return present, adds
}

// place is the position of a slot in the topology, outermost part first.
func place(s qmp.HotpluggableCPU) []int64 {
	var out []int64
	for _, key := range []string{"socket-id", "die-id", "cluster-id", "core-id", "thread-id"} {
		out = append(out, s.Props[key])
	}
	return out
}

// do runs a command whose answer says nothing, within its deadline.
func do[R any](ctx context.Context, c *qmp.Client, cmd qmp.Command[R]) error {
	_, err := answer(ctx, c, cmd)
	return err
}

// answer runs a command within its deadline.
func answer[R any](ctx context.Context, c *qmp.Client, cmd qmp.Command[R]) (R, error) {
	ctx, cancel := context.WithTimeout(ctx, commandDeadline)
	defer cancel()
	return qmp.Do(ctx, c, cmd)
}
