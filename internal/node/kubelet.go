package node

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
)

// StopKubelet kills the kubelet, as if the node were unreachable: its pods keep running, and within
// a minute the node is considered not ready.
func (n *Node) StopKubelet() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	p := n.kubelet.process
	if p == nil {
		return errors.New("node: the kubelet does not run")
	}
	// It is a child of nsenter, which ends with it.
	id := strconv.Itoa(p.PID())
	children, err := os.ReadFile("/proc/" + id + "/task/" + id + "/children")
	if err != nil {
		return fmt.Errorf("node: kubelet: %w", err)
	}
	for _, word := range strings.Fields(string(children)) {
		pid, err := strconv.Atoi(word)
		if err == nil {
			err = syscall.Kill(pid, syscall.SIGKILL)
		}
		if err != nil {
			return fmt.Errorf("node: kubelet: %w", err)
		}
	}
	p.Stop()
	n.kubelet.process = nil
	return nil
}

// StartKubelet starts a stopped kubelet again, and waits until the node is ready.
func (n *Node) StartKubelet(ctx context.Context) error {
	if err := n.restartKubelet(); err != nil {
		return fmt.Errorf("node: %w", err)
	}
	return n.awaitReady(ctx)
}

func (n *Node) restartKubelet() (err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.kubelet.process != nil {
		return errors.New("the kubelet runs already")
	}
	n.kubelet.process, err = n.startInside("kubelet", n.kubelet.args...)
	return err
}
