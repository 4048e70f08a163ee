package qmptest

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
)

// Call is a command that the server has received.
type Call struct {
	// Server is the server that received it.
	Server *Server
	// Files came with the command. The handler must close them.
	Files []*os.File

	request request
}

type request struct {
	Execute   string          `json:"execute"`
	ExecOOB   string          `json:"exec-oob"`
	Arguments json.RawMessage `json:"arguments"`
	ID        json.RawMessage `json:"id"`
}

// Name returns the command's name.
func (c *Call) Name() string {
	if c.OOB() {
		return c.request.ExecOOB
	}
	return c.request.Execute
}

// OOB reports whether the command is to be executed out of band.
func (c *Call) OOB() bool { return c.request.ExecOOB != "" }

// ID returns the JSON value by which the client recognizes the reply, nil if it gave none.
func (c *Call) ID() json.RawMessage { return c.request.ID }

// Arguments decodes the command's arguments into v; missing ones count as an empty object.
func (c *Call) Arguments(v any) error {
	if c.request.Arguments == nil {
		return json.Unmarshal([]byte("{}"), v)
	}
	return json.Unmarshal(c.request.Arguments, v)
}

// Return sends the result of the command; nil stands for the empty object. It reports whether it
// was sent in full.
func (c *Call) Return(value any) bool {
	if value == nil {
		value = struct{}{}
	}
	return c.Server.send(withID(map[string]any{"return": value}, c.request.ID))
}

// Fail refuses the command. It reports whether the reply was sent in full.
func (c *Call) Fail(class, desc string) bool {
	return c.Server.send(refusal(class, desc, c.request.ID))
}

func refusal(class, desc string, id json.RawMessage) map[string]any {
	return withID(map[string]any{"error": map[string]string{"class": class, "desc": desc}}, id)
}

func withID(message map[string]any, id json.RawMessage) map[string]any {
	if id != nil {
		message["id"] = id
	}
	return message
}

const capabilities = "qmp_capabilities"

func (s *Server) dispatch(c *Call) {
	name := c.Name()
	s.mu.Lock()
	s.received = append(s.received, name)
	negotiated, oob := s.negotiated, s.oob
	s.mu.Unlock()

	handler := s.options.Handlers[name]
	negotiating := s.options.Handlers[capabilities] // nil for the built-in one
	switch {
	case name == "":
		c.Fail("GenericError", "QMP input lacks member 'execute'")
	case c.OOB() && !oob:
		c.Fail("GenericError", "QMP input member 'exec-oob' is unexpected")
	case name == capabilities && negotiating == nil:
		s.negotiate(c, negotiated)
	case name == capabilities:
		negotiating(c)
	case !negotiated && negotiating == nil:
		c.Fail("CommandNotFound", "Expecting capabilities negotiation with 'qmp_capabilities'")
	case handler != nil:
		handler(c)
	case s.options.Default != nil:
		s.options.Default(c)
	default:
		c.Fail("CommandNotFound", fmt.Sprintf("The command %s has not been found", name))
	}
}

func (s *Server) negotiate(c *Call, again bool) {
	var args struct {
		Enable []string `json:"enable"`
	}
	if again {
		c.Fail("CommandNotFound", "Capabilities negotiation is already complete, command ignored")
		return
	}
	if err := c.Arguments(&args); err != nil {
		c.Fail("GenericError", err.Error())
		return
	}
	for _, name := range args.Enable {
		if !slices.Contains(s.options.Capabilities, name) {
			c.Fail("GenericError", fmt.Sprintf("Capability %s not available", name))
			return
		}
	}
	s.mu.Lock()
	s.negotiated = true
	s.oob = slices.Contains(args.Enable, "oob")
	s.mu.Unlock()
	if s.options.BeforeReply != nil {
		s.options.BeforeReply(s)
	}
	c.Return(nil)
}
