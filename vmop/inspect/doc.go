// Package inspect inspects machines: what its host has kept of one and what its QEMU
// reports, beside what its manifest asks for. It is what vmop-cli inspect prints, as a
// value and as text. What it prints as JSON has the types of package
// output: a report has no names in JSON.
//
//	m, err := h.Machine("lab", "web")       // package host
//	report, err := inspect.Machine(ctx, &m) // asks QEMU, too
//	err = report.WriteText(os.Stdout)
//
// [Report.Query] fills a report in from any QEMU. [WriteImage] is the same for what
// package imageinspect finds out about an image.
//
// These functions escape a guest's text for the terminal.
//
// # Stability
//
// Its Go interface may change in a release before 1.0, as package vmop says.
package inspect
