package runner

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"net"

	"github.com/vmop/sdk/vmop/qmp"
)

// agentChardev is the character device of the guest agent's channel; see
// qemucmd's group "channels".
const agentChardev = "guest-agent-socket"

// errNoAgent says that no guest agent has its end of the channel open.
var errNoAgent = errors.New("no guest agent is connected")

// agentShutdown asks the guest agent to power the guest down. The agent does
// not answer that command; an error means that it was not sent, or refused.
func agentShutdown(ctx context.Context, c *qmp.Client, socket string) error {
	open, err := channelOpen(ctx, c, agentChardev)
	if err != nil {
		return err
	}
	if !open {
		return errNoAgent
	}
	ctx, cancel := context.WithTimeout(ctx, agentDeadline)
	defer cancel()
	var d net.Dialer
	conn, err := d.DialContext(ctx, "unix", socket)
	if err != nil {
		return fmt.Errorf("guest agent: %w", err)
	}
	defer conn.Close()
	stop := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(deadlineIn(0)) })
	defer stop()
	if err := agentSync(conn); err != nil {
		return fmt.Errorf("guest agent: synchronize: %w", err)
	}
	if _, err := conn.Write([]byte(`{"execute":"guest-shutdown"}` + "\n")); err != nil {
		return fmt.Errorf("guest agent: %w", err)
	}
	return nil
}

// channelOpen says whether the guest has its end of a channel open. Without
// that, what is written to it waits in the socket for ever.
func channelOpen(ctx context.Context, c *qmp.Client, label string) (bool, error) {
	chardevs, err := qmp.Do(ctx, c, qmp.QueryChardev{})
	if err != nil {
		return false, err
	}
	for _, d := range chardevs {
		if d.Label == label {
			return d.FrontendOpen, nil
		}
	}
	return false, nil
}

// agentSync makes sure that what comes next answers what is sent next: a
// predecessor may have left half a command or unread replies behind. The reply
// to guest-sync-delimited begins with a byte that JSON never has (QEMU guest
// agent protocol).
func agentSync(conn net.Conn) error {
	var b [4]byte
	_, _ = rand.Read(b[:]) // never fails
	id := int64(binary.LittleEndian.Uint32(b[:]))
	request := append([]byte{0xff}, fmt.Sprintf(`{"execute":"guest-sync-delimited","arguments":{"id":%d}}`+"\n", id)...)
	if _, err := conn.Write(request); err != nil {
		return err
	}
	r := bufio.NewReader(conn)
	for {
		if _, err := r.ReadBytes(0xff); err != nil {
			return err
		}
		line, err := r.ReadBytes('\n')
		if err != nil {
			return err
		}
		var reply struct {
			Return int64 `json:"return"`
		}
		if json.Unmarshal(bytes.TrimSpace(line), &reply) == nil && reply.Return == id {
			return nil
		}
	}
}
