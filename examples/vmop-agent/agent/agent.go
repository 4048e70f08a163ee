package agent

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"
)

// leaveTimeout limits the farewell, which the host may not read.
const leaveTimeout = time.Second

// maxLine limits a command, in bytes.
const maxLine = 1024

// Port is the agent's end of the channel: an *os.File of the device, or a net.Conn.
type Port interface {
	io.ReadWriter
	SetReadDeadline(time.Time) error
	SetWriteDeadline(time.Time) error
}

// Action logs a user in or, if the user is "", the present one out. It returns when that is done.
// Its error is sent to the host.
type Action func(ctx context.Context, user string) error

// ErrHostGone reports that the host has closed its end. Serve may be called again on the same port.
var ErrHostGone = errors.New("the host has closed the port")

// Serve greets the host and executes its commands until ctx ends, which is announced to the host,
// or the host has closed the port (ErrHostGone).
func Serve(ctx context.Context, port Port, login, logout Action) error {
	if err := errors.Join(port.SetReadDeadline(time.Time{}), port.SetWriteDeadline(time.Time{})); err != nil {
		return fmt.Errorf("port: %w", err)
	}
	past := time.Unix(1, 0)
	done := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(done)
		_ = port.SetReadDeadline(past)
		_ = port.SetWriteDeadline(past)
	})
	err := serve(ctx, port, login, logout)
	if !stop() {
		<-done
	}
	if ctx.Err() == nil {
		if errors.Is(err, io.EOF) {
			err = ErrHostGone
		}
		return err
	}
	_ = port.SetWriteDeadline(time.Now().Add(leaveTimeout))
	_, err = io.WriteString(port, "240 leaving\n")
	if err != nil {
		return fmt.Errorf("say goodbye: %w", err)
	}
	return nil
}

func serve(ctx context.Context, port Port, login, logout Action) error {
	s := session{ctx: ctx, port: port, login: login, logout: logout}
	if err := s.say(220, "vmop-agent is ready"); err != nil {
		return err
	}
	in := bufio.NewReaderSize(port, maxLine)
	for {
		line, err := in.ReadSlice('\n')
		tooLong := errors.Is(err, bufio.ErrBufferFull)
		text := string(line) // the buffer is used again
		for errors.Is(err, bufio.ErrBufferFull) {
			_, err = in.ReadSlice('\n')
		}
		if err != nil {
			return err // half a line is not a command
		}
		if tooLong {
			err = s.say(500, "the line is too long")
		} else {
			err = s.do(strings.TrimRight(text, "\r\n"))
		}
		if err != nil {
			return err
		}
	}
}

type session struct {
	ctx           context.Context
	port          io.Writer
	login, logout Action
	user          string // the user logged in by this agent
}

func (s *session) do(line string) error {
	verb, user, hasUser := strings.Cut(line, " ")
	switch {
	case verb == "login" && hasUser:
		return s.doLogin(user)
	case verb == "logout" && !hasUser:
		return s.doLogout()
	}
	return s.say(500, fmt.Sprintf("not understood: %.80q", line))
}

func (s *session) doLogin(user string) error {
	if err := CheckUser(user); err != nil {
		code := 501
		if errors.Is(err, ErrForbidden) {
			code = 504
		}
		return s.say(code, err.Error())
	}
	if user == s.user {
		return s.say(201, user+" is logged in already")
	}
	if err := s.say(102, "logging in "+user); err != nil {
		return err
	}
	s.user = ""
	if err := s.login(s.ctx, user); err != nil {
		return s.failed(err)
	}
	s.user = user
	return s.say(201, user+" is logged in")
}

func (s *session) doLogout() error {
	if err := s.say(102, "logging out"); err != nil {
		return err
	}
	s.user = ""
	if err := s.logout(s.ctx, ""); err != nil {
		return s.failed(err)
	}
	return s.say(202, "nobody is logged in")
}

// failed reports an action's failure to the host. If the agent's end interrupted the action, the
// farewell explains it.
func (s *session) failed(err error) error {
	if s.ctx.Err() != nil {
		return s.ctx.Err()
	}
	return s.say(451, err.Error())
}

// say sends a line. A line feed within the text would be another answer.
func (s *session) say(code int, text string) error {
	text = strings.Map(func(r rune) rune {
		if r < ' ' {
			return ' '
		}
		return r
	}, text)
	_, err := fmt.Fprintf(s.port, "%03d %s\n", code, text)
	return err
}
