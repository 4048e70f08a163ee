package node

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// StopKubelet kills the kubelet, as if the node were unreachable: its pods keep running, and within
// a minute the node is considered not ready.
func (n *Node) StopKubelet() error { return n.kill(n.kubelet) }

// StartKubelet starts a stopped kubelet again, and waits until the node is ready.
func (n *Node) StartKubelet(ctx context.Context) error {
	begin := time.Now()
	if err := n.restart(n.kubelet); err != nil {
		return err
	}
	return n.awaitReady(ctx, begin)
}

// StopContainerd kills containerd. Containers that run keep running.
func (n *Node) StopContainerd() error { return n.kill(n.containerd) }

// StartContainerd starts a stopped containerd again, and waits until it answers.
func (n *Node) StartContainerd(ctx context.Context) error {
	if err := n.restart(n.containerd); err != nil {
		return err
	}
	return n.awaitContainerd(ctx)
}

// CutPower kills everything within the node at once: its programs, and its pods with all that is in
// them. The API server is not within the node, and is told nothing.
func (n *Node) CutPower(ctx context.Context) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	// Whoever signals all processes spares itself and the first one of its namespace.
	if _, err := n.run(ctx, "sh", "-c", "kill -KILL -1"); err != nil {
		return fmt.Errorf("node: %w", err)
	}
	for _, p := range n.programs {
		if p.process != nil {
			<-p.process.Done()
			p.process = nil
		}
	}
	return nil
}

// RestorePower starts the programs of the node again after [Node.CutPower], and waits until the
// node is ready. As the node has lost no file, it finds what has been left of its pods.
func (n *Node) RestorePower(ctx context.Context) error {
	begin := time.Now()
	for _, p := range n.programs {
		if err := n.restart(p); err != nil {
			return err
		}
		if p == n.containerd {
			if err := n.awaitContainerd(ctx); err != nil {
				return err
			}
		}
	}
	return n.awaitReady(ctx, begin)
}

func (n *Node) kill(program *program) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	p := program.process
	if p == nil {
		return fmt.Errorf("node: %s does not run", program.name)
	}
	// It is a child of nsenter, which ends with it.
	id := strconv.Itoa(p.PID())
	children, err := os.ReadFile("/proc/" + id + "/task/" + id + "/children")
	if err != nil {
		return fmt.Errorf("node: %s: %w", program.name, err)
	}
	for _, word := range strings.Fields(string(children)) {
		pid, err := strconv.Atoi(word)
		if err == nil {
			err = syscall.Kill(pid, syscall.SIGKILL)
		}
		if err != nil {
			return fmt.Errorf("node: %s: %w", program.name, err)
		}
	}
	p.Stop()
	program.process = nil
	return nil
}

func (n *Node) restart(p *program) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if p.process != nil {
		return fmt.Errorf("node: %s runs already", p.name)
	}
	if err := n.startAgain(p); err != nil {
		return fmt.Errorf("node: %w", err)
	}
	return nil
}
