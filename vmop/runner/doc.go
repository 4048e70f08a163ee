// Package runner starts, supervises and ends one QEMU process.
//
// An [Engine] runs one machine from a runner configuration: it prepares the machine's directories,
// firmware variables, disks, NoCloud image and TPM, starts QEMU paused, connects to its monitor,
// applies the configuration, resumes the machine, and follows it until it ends.
//
//	e, err := runner.New(runner.Options{Config: cfg, Host: host, ...})
//	...
//	go func() { <-signals; e.Stop() }()
//	go func() { state, err := e.Wait(ctx, runner.PhaseBooting); ... }()
//	outcome, err := e.Run(ctx)
//
// The configuration is what machineconfig.ForHost makes of a manifest for one host, or comes from a
// ConfigMap ([ReadConfig]), with the directories in it. Package hostprobe probes the host.
//
// The contract, in chronological order:
//
//  1. The data directory is locked for as long as the engine or its QEMU lives,
//     also when the engine is killed: the lock is inherited by QEMU. A second
//     engine for the same machine fails with [ErrRunning] or, where only an
//     orphaned QEMU is left, ends that first. Two QEMU processes never open one
//     machine's disks.
//  2. Disks and firmware variables that exist are never created anew, resized
//     or overwritten.
//  3. QEMU starts paused; the guest executes its first instruction after the
//     configuration has been applied.
//  4. [Engine.Stop] asks the guest to shut down: by its agent, then by ACPI,
//     inside the power-down timeout; then QEMU is told to quit, then killed. A
//     second Stop shortens that.
//  5. When Run returns, no process, socket or runtime directory is left.
//
// A running machine follows its configuration: [Engine.Reconfigure] replaces it,
// and a [ConfigFollower] does so when files change. Package live decides on the
// missing steps; the engine executes them over QMP and reports in the conditions
// of its [State] what could not be reached, and why.
//
// While the machine runs, the engine talks to the agents in the guest: it has the VMOP agent log
// the wanted user in, and queries the QEMU guest agent after events (see live.Inquiry). It holds the
// guest agent's socket, which serves one client at a time, only for a query.
//
// The state has VM-Operator's conditions, from live.Report, and its events are
// messages with [Message.Event].
//
// States and messages go to a [Reporter]. The engine does not poll.
//
// # Stability
//
// Its Go interface may change in a release before 1.0, as package vmop says.
package runner
