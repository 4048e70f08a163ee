// Package operatorconfig holds the fuzz target of the operator's configuration
// file, with its corpus.
//
//	go test -fuzz FuzzParse ./fuzz/operatorconfig
package operatorconfig
