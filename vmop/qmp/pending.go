package qmp

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// pendingCalls are the commands whose replies have not arrived, numbered in the order in which they
// are written.
//
// A command written while no other is pending carries no id: its reply is then the only one
// without, and the shorter command is executed sooner (see request). All others carry their number.
type pendingCalls struct {
	calls  map[uint64]pendingCall
	last   uint64 // number of the last command
	silent uint64 // number of the pending command that carries no id, or 0
}

type pendingCall struct {
	name  string
	reply chan reply // has one free place; nil after the caller has stopped waiting
	oob   bool
	slot  bool // holds a token of Client.slots
	file  bool // holds the token of Client.file
}

type reply struct {
	value json.RawMessage
	err   error
}

// add registers a call and returns its number, and the id to write, 0 for none. Where commands may
// overtake each other, each gets an id.
func (p *pendingCalls) add(call pendingCall, mayOvertake bool) (number, id uint64) {
	p.last++
	if len(p.calls) == 0 && !mayOvertake {
		p.silent = p.last
	} else {
		id = p.last
	}
	p.calls[p.last] = call
	return p.last, id
}

func (p *pendingCalls) remove(number uint64) (call pendingCall, ok bool) {
	call, ok = p.calls[number]
	delete(p.calls, number)
	if number == p.silent {
		p.silent = 0
	}
	return call, ok
}

// abandon keeps a call after its caller has stopped waiting: it holds its tokens until QEMU has
// replied, and the late reply is not mistaken for one to no command.
func (p *pendingCalls) abandon(number uint64) (ok bool) {
	call, ok := p.calls[number]
	if ok {
		call.reply = nil
		p.calls[number] = call
	}
	return ok
}

func (p *pendingCalls) answered(m *message) (pendingCall, error) {
	number, hasID, err := m.callID()
	if err != nil {
		return pendingCall{}, err
	}
	switch {
	case hasID && number == p.silent:
		number = 0 // it was sent without an id
	case !hasID && p.silent != 0:
		number = p.silent
	case !hasID && m.refusal != nil:
		// QEMU cannot name the id of a command that its parser refuses, for example because an
		// argument is given twice. It reports that when it is the command's turn.
		number = p.oldest()
	}
	call, ok := p.remove(number)
	if !ok {
		return call, fmt.Errorf("%w: reply to no command, id %s", ErrProtocol, excerpt(m.id))
	}
	return call, nil
}

func (p *pendingCalls) oldest() uint64 {
	var oldest uint64
	for number, call := range p.calls {
		if !call.oob && (oldest == 0 || number < oldest) {
			oldest = number
		}
	}
	return oldest
}

func (p *pendingCalls) end(err error) {
	for _, call := range p.calls {
		if call.reply != nil {
			call.reply <- reply{err: err}
		}
	}
	clear(p.calls)
	p.silent = 0
}

// reply returns the outcome of the command of that name. It does not alias the line.
func (m *message) reply(command string) (reply, error) {
	if m.refusal == nil {
		return reply{value: bytes.Clone(m.result)}, nil
	}
	var refusal struct {
		Class string `json:"class"`
		Desc  string `json:"desc"`
	}
	if err := json.Unmarshal(m.refusal, &refusal); err != nil {
		return reply{}, fmt.Errorf("%w: refusal: %w", ErrProtocol, err)
	}
	return reply{err: &Error{Command: command, Class: refusal.Class, Desc: refusal.Desc}}, nil
}
