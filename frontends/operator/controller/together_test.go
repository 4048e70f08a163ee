package controller

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// The functions wait for each other.
func TestTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var all sync.WaitGroup
		all.Add(3)
		meet := func() { all.Done(); all.Wait(); time.Sleep(time.Second) }
		began := time.Now()
		together([]func(){meet, meet, meet})
		if d := time.Since(began); d != time.Second {
			t.Errorf("returned after %v", d)
		}
		together(nil)
	})
}

// A panic ends the caller's goroutine, when the others have returned.
func TestPanicOfOneTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, others := range []int{0, 2} {
			returned := make(chan bool, others)
			tasks := []func(){func() { panic("lost") }}
			for range others {
				tasks = append(tasks, func() { time.Sleep(time.Second); returned <- true })
			}
			func() {
				defer func() {
					if v := recover(); v != "lost" || len(returned) != others {
						t.Errorf("with %d others: %v, and %d returned", others, v, len(returned))
					}
				}()
				together(tasks)
			}()
		}
	})
}
