package controller

import "sync"

// together calls functions concurrently, and returns when all have returned. A panic of one is
// that of together: the caller's goroutine recovers from panics.
func together(tasks []func()) {
	if len(tasks) == 1 {
		tasks[0]()
		return
	}
	var all sync.WaitGroup
	panics := make(chan any, len(tasks))
	for _, task := range tasks {
		all.Go(func() {
			defer func() {
				if v := recover(); v != nil {
					panics <- v
				}
			}()
			task()
		})
	}
	all.Wait()
	select {
	case v := <-panics:
		panic(v)
	default:
	}
}
