package runner

import (
	"io"
	"net"
	"regexp"
	"strings"
)

// sourceConsole is the source of messages that the guest printed.
const sourceConsole = "console"

// controlSequence is what firmware and boot loaders paint with (ECMA-48, CSI and
// two-character sequences).
var controlSequence = regexp.MustCompile(`\x1b(\[[0-?]*[ -/]*[@-~]|[ -Z\\-~])`)

// log hands on what the guest prints, line by line. It is a client like others:
// where line is slow, some is lost and nobody waits.
func (c *console) log(line func(text string)) {
	near, far := net.Pipe()
	c.serve(near)
	c.wg.Add(1)
	go func() {
		defer c.wg.Done()
		w := &lineWriter{line: func(text string) {
			if text = plain(text); text != "" {
				line(text)
			}
		}}
		_, _ = io.Copy(w, far) // it ends with the console
		w.flush()
		_ = far.Close()
	}()
}

// plain is a line of the console as text: without what moves and colours, and
// of a line that was written over what is there in the end.
func plain(line string) string {
	// What is left when one is taken out can be another.
	for without := ""; ; line = without {
		if without = controlSequence.ReplaceAllString(line, ""); without == line {
			break
		}
	}
	line = strings.TrimRight(line, " \r\n")
	if i := strings.LastIndexByte(line, '\r'); i >= 0 {
		line = line[i+1:]
	}
	return line
}
