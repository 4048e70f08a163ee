package main

import (
	"fmt"
	"os"
)

// terminationLog is where Kubernetes reads a container's termination message. It exists in a
// container only.
const terminationLog = "/dev/termination-log"

func writeTermination(path string, message []byte) error {
	if path == "" {
		path = terminationLog
		if _, err := os.Stat(path); err != nil {
			return nil
		}
	}
	if err := os.WriteFile(path, message, 0o600); err != nil {
		return fmt.Errorf("write the termination message: %w", err)
	}
	return nil
}
