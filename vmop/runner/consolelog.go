package runner

import (
	"io"
	"net"
	"regexp"
	"strings"
)

// sourceConsole is the source of messages that the guest printed.
const sourceConsole = "console"

// controlSequence matches what firmware and boot loaders paint with (ECMA-48, CSI and two-character
// sequences).
var controlSequence = regexp.MustCompile(`\x1b(\[[0-?]*[ -/]*[@-~]|[ -Z\\-~])`)

// log passes on what the guest prints, line by line. It is a client like any other: if line is
// slow, output is lost and nothing blocks.
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

// plain returns a line of the console as text: without control sequences, and as it looks after all
// overwriting.
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
