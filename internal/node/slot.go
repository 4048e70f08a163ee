package node

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// slots is how many nodes may run at the same time. Addresses have room for 256.
const slots = 8

// slot is one of the places for a node on this host. Everything that outlives a killed test is
// named by its number, so that the next holder of the slot finds it.
type slot struct {
	number int
	dir    string
	lock   *os.File
}

// slotsDir has the nodes of all users of a host.
const slotsDir = "/var/lib/vmop-node"

// takeSlot takes a free slot and removes what its last holder left.
func takeSlot(ctx context.Context) (*slot, error) {
	s, err := findSlot(ctx, slotsDir)
	if err != nil {
		return nil, err
	}
	if err := errors.Join(s.clean(ctx), os.Mkdir(s.dir, 0o700)); err != nil {
		return nil, errors.Join(fmt.Errorf("clean up after an earlier node: %w", err), s.lock.Close())
	}
	return s, nil
}

func findSlot(ctx context.Context, base string) (*slot, error) {
	if err := os.MkdirAll(base, 0o700); err != nil {
		return nil, err
	}
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for {
		for number := range slots {
			s := &slot{number: number, dir: filepath.Join(base, strconv.Itoa(number))}
			if taken, err := s.take(); err != nil || taken {
				return s, err
			}
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("all %d nodes that a host may have are running: %w", slots, ctx.Err())
		case <-tick.C:
		}
	}
}

// take takes the slot's lock, which the kernel releases when the process dies. The node's processes
// do not inherit it: Go opens files with close-on-exec.
func (s *slot) take() (bool, error) {
	f, err := os.OpenFile(s.dir+".lock", os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return false, fmt.Errorf("lock: %w", err)
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		_ = f.Close()
		if errors.Is(err, unix.EWOULDBLOCK) {
			return false, nil
		}
		return false, fmt.Errorf("lock %s: %w", f.Name(), err)
	}
	s.lock = f
	return true, nil
}

func (s *slot) name() string { return "vmop-node-" + strconv.Itoa(s.number) }

// link is the host's end of the veth pair.
func (s *slot) link() string { return "vmopnode" + strconv.Itoa(s.number) }

// hostAddress and nodeAddress are those of the veth pair, podNetwork is behind the node.
func (s *slot) hostAddress() net.IP { return net.IPv4(10, 213, byte(s.number), 1) }
func (s *slot) nodeAddress() net.IP { return net.IPv4(10, 213, byte(s.number), 2) }
func (s *slot) podNetwork() string  { return fmt.Sprintf("10.214.%d.0/24", s.number) }

// clean removes what a node leaves outside of its namespaces. The node must have ended. It waits
// for what the kernel still takes down.
func (s *slot) clean(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		// The order: volumes use loop devices, loop devices use files.
		err := errors.Join(removeLink(s.link()), removeControlGroups(s.name()), detachLoops(s.dir))
		if err == nil {
			err = os.RemoveAll(s.dir)
		}
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return err
		case <-tick.C:
		}
	}
}

// release removes the node's remains and frees the slot.
func (s *slot) release(ctx context.Context) error {
	return errors.Join(s.clean(ctx), s.lock.Close())
}
