// Command selfpatching has a guest's kernel change its own code, by switching statistics of
// its scheduler on and off, while other threads have the scheduler run it. It prints how often,
// after some seconds.
package main

import (
	"fmt"
	"os"
	"sync/atomic"
	"syscall"
	"time"
)

func main() {
	var ends [2][4]int
	for i := range ends {
		for j := range 2 {
			var pipe [2]int
			if err := syscall.Pipe(pipe[:]); err != nil {
				fail(err)
			}
			ends[i][2*j], ends[i][2*j+1] = pipe[0], pipe[1]
		}
		go pass(ends[i][0], ends[i][3])
		go pass(ends[i][2], ends[i][1])
		if _, err := syscall.Write(ends[i][1], []byte{0}); err != nil {
			fail(err)
		}
	}
	var times atomic.Int64
	go func() {
		for {
			for _, file := range []string{"/proc/sys/kernel/sched_schedstats", "/proc/sys/kernel/task_delayacct"} {
				if err := os.WriteFile(file, []byte{'0' + byte(times.Load()&1)}, 0); err != nil {
					fail(err)
				}
			}
			times.Add(1)
		}
	}()
	time.Sleep(8 * time.Second)
	fmt.Printf("patched %d times\n", times.Load())
}

// pass waits for a byte in the kernel and passes it on, without the runtime's poller.
func pass(from, to int) {
	buf := make([]byte, 1)
	for {
		if _, err := syscall.Read(from, buf); err != nil {
			fail(err)
		}
		if _, err := syscall.Write(to, buf); err != nil {
			fail(err)
		}
	}
}

func fail(err error) {
	fmt.Println("failed:", err)
	os.Exit(1)
}
