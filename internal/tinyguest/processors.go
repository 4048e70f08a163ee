package tinyguest

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/vmop/sdk/vmop/qmp"
)

// processorCommands are those of QEMU's human monitor that show where the processors are and
// which interrupts they wait for. Each is asked twice: what moves in between computes.
var processorCommands = []string{
	"info status", "info cpus", "info registers -a", "info lapic 0", "info lapic 1", "info lapic 2", "info pic",
}

// Processors asks a QEMU by its socket for the state of its processors and interrupt controllers,
// for tests to show of a guest that does not answer. What QEMU refuses is part of the text.
func Processors(ctx context.Context, socket string) string {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	client, err := qmp.Dial(ctx, socket, qmp.Options{})
	if err != nil {
		return err.Error()
	}
	defer client.Close()
	var out strings.Builder
	for range 2 {
		for _, command := range processorCommands {
			var answer string
			reply, err := client.Execute(ctx, "human-monitor-command", map[string]string{"command-line": command})
			if err == nil {
				err = json.Unmarshal(reply, &answer)
			}
			if err != nil {
				answer = err.Error()
			}
			fmt.Fprintf(&out, "(qemu) %s\n%s\n", command, strings.TrimSpace(answer))
		}
	}
	return out.String()
}
