package runner

import "sync"

type broadcast struct {
	mu sync.Mutex
	c  chan struct{}
}

// told returns a channel that is closed by the next tell.
func (b *broadcast) told() <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.c == nil {
		b.c = make(chan struct{})
	}
	return b.c
}

func (b *broadcast) tell() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.c != nil {
		close(b.c)
		b.c = nil
	}
}
