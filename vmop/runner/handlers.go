package runner

import (
	"github.com/vmop/sdk/vmop/qmp"
)

type handlers[R any] map[string]func(R, qmp.Event) error

func with[E qmp.EventData, R any](h handlers[R], do func(R, E)) {
	var zero E
	h[zero.QMPEvent()] = func(r R, ev qmp.Event) error {
		data, err := qmp.DecodeEvent[E](ev)
		if err != nil {
			return err
		}
		do(r, data)
		return nil
	}
}

func (h handlers[R]) at(do func(R), events ...qmp.EventData) {
	for _, e := range events {
		h[e.QMPEvent()] = func(r R, _ qmp.Event) error { do(r); return nil }
	}
}
