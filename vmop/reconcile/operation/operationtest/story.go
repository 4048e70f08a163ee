package operationtest

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/vmop/sdk/internal/promises"
	"github.com/vmop/sdk/vmop/reconcile"
	"github.com/vmop/sdk/vmop/reconcile/operation"
	"github.com/vmop/sdk/vmop/spec"
)

type line struct {
	form *regexp.Regexp
	does func(w *world, args []string) error
}

var lines = []line{
	{regexp.MustCompile(`^machine (\w+) is (Pending|Running|Stopped)(?: with policy (\w+))?$`), func(w *world, args []string) error {
		w.settled(args[0], spec.RunPolicy(args[2]), args[1])
		if args[1] == spec.PhasePending {
			delete(w.truth.pods, args[0])
		}
		return nil
	}},
	{regexp.MustCompile(`^person asks (\w+): (Start|Stop|Restart|Evict|Migrate|Suspend|Resume) of (\w+)( by force)?$`), func(w *world, args []string) error {
		w.addOperation(args[0], args[2], spec.OperationType(args[1]), args[3] != "")
		return nil
	}},
	{regexp.MustCompile(`^person deletes (\w+)$`), func(w *world, args []string) error {
		if w.truth.ops[args[0]] == nil {
			return fmt.Errorf("there is no operation %s", args[0])
		}
		w.deleteOperation(args[0])
		return nil
	}},
	{regexp.MustCompile(`^machine (\w+) (goes on|may be written|may not be written|is gone)$`), func(w *world, args []string) error {
		name := args[0]
		if w.truth.vms[name] == nil {
			return fmt.Errorf("there is no machine %s", name)
		}
		switch args[1] {
		case "goes on":
			w.proceeds(name)
		case "is gone":
			delete(w.truth.vms, name)
			delete(w.truth.pods, name)
		default:
			w.forbidden[name] = args[1] == "may not be written"
		}
		return nil
	}},
	{regexp.MustCompile(`^machine (\w+) is (?:held, (Pending|Blocked)|free)$`), func(w *world, args []string) error {
		if w.held[args[0]] = ""; args[1] != "" {
			w.held[args[0]] = "Restart" + args[1]
		}
		return nil
	}},
	{regexp.MustCompile(`^wait (\d+[smh])$`), func(w *world, args []string) error {
		d, err := time.ParseDuration(args[0])
		w.Now = w.Now.Add(d)
		return err
	}},
	{regexp.MustCompile(`^reconcile$`), func(w *world, _ []string) error {
		all := slices.Collect(maps.Keys(w.truth.vms))
		for _, o := range w.truth.ops {
			all = append(all, machineOf(o))
		}
		slices.Sort(all)
		for _, name := range slices.Compact(all) {
			w.tellRounds(name)
		}
		return nil
	}},
}

// Play runs a story: each line of the script is an event, and the decisions of decide are
// executed. It returns the results of the operations. An unknown line, one about a missing object
// and a broken promise are errors; the output until then is returned, too.
func Play(decide func(operation.Snapshot) reconcile.Plan, script string) (told string, err error) {
	var out strings.Builder
	w := newWorld()
	w.Decide, w.cleanup = decide, operation.Cleanup{Keep: 2, For: time.Hour}
	for text := range strings.Lines(script) {
		text = strings.TrimSpace(text)
		if text == "" || strings.HasPrefix(text, "#") {
			continue
		}
		i := slices.IndexFunc(lines, func(l line) bool { return l.form.MatchString(text) })
		if i < 0 {
			return out.String(), fmt.Errorf("unknown: %s", text)
		}
		fmt.Fprintf(&out, "%s > %s\n", w.Now.Format(time.TimeOnly), text)
		w.Log = nil
		var err error
		if broken := promises.Broken(func() { err = lines[i].does(w, lines[i].form.FindStringSubmatch(text)[1:]) }); broken != nil {
			err = broken
		}
		for _, l := range w.Log {
			fmt.Fprintf(&out, "  %s\n", l)
		}
		if err != nil {
			return out.String(), fmt.Errorf("%s: %w", text, err)
		}
	}
	return out.String(), nil
}

func (w *world) tellRounds(name string) {
	for range 20 {
		w.see(3)
		plan := w.reconcile(name, -1)
		for _, e := range plan.Events {
			w.Note("event %s", e)
		}
		if len(plan.Actions) > 0 {
			continue
		}
		if !plan.Wake.IsZero() {
			w.Note("look again at %s", plan.Wake.Format(time.TimeOnly))
		}
		return
	}
	w.Violated("the world comes to rest", "there is no end of writes")
}
