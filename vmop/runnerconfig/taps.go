package runnerconfig

import (
	"fmt"
	"strconv"
	"strings"
)

// PreparedTapsEnv is the environment variable of a pod's containers with the tap interfaces that
// one of them prepares and the runner takes over; see [FormatTaps].
const PreparedTapsEnv = "VMOP_TAPS"

// PreparedTap is a tap interface that is created before the runner starts.
type PreparedTap struct {
	// Network is the index of its network in the configuration.
	Network int
	// Name and Bridge are the names of the interface and of its bridge on the host.
	Name, Bridge string
	// Queues is its number of pairs of queues; see [VM.TapQueues].
	Queues int
}

// FormatTaps writes interfaces as one line. Names of interfaces contain neither
// colons nor spaces (Linux, dev_valid_name).
func FormatTaps(taps []PreparedTap) string {
	var s []string
	for _, t := range taps {
		s = append(s, fmt.Sprintf("%d:%s:%s:%d", t.Network, t.Name, t.Bridge, t.Queues))
	}
	return strings.Join(s, " ")
}

// ParseTaps parses the result of [FormatTaps].
func ParseTaps(line string) ([]PreparedTap, error) {
	var taps []PreparedTap
	for _, s := range strings.Fields(line) {
		parts := strings.Split(s, ":")
		if len(parts) != 4 || parts[1] == "" || parts[2] == "" {
			return nil, fmt.Errorf("tap interface %q: want network:name:bridge:queues", s)
		}
		network, err := strconv.Atoi(parts[0])
		queues, qerr := strconv.Atoi(parts[3])
		if err != nil || qerr != nil || network < 0 || queues < 1 {
			return nil, fmt.Errorf("tap interface %q: want network:name:bridge:queues", s)
		}
		taps = append(taps, PreparedTap{Network: network, Name: parts[1], Bridge: parts[2], Queues: queues})
	}
	return taps, nil
}
