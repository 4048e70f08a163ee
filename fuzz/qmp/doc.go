// Package qmp holds the fuzz target of the QMP client as a whole, with its
// corpus: a monitor that says anything at all. The target for what reads single
// messages, FuzzReader, is beside the code in vmop/qmp.
//
//	go test -fuzz FuzzClient ./fuzz/qmp
package qmp
