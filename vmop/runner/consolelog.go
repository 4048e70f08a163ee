package runner

import (
	"io"
	"net"
	"regexp"
	"strings"
)

const sourceConsole = "console"

// controlSequence matches the sequences that firmware and boot loaders use (ECMA-48, CSI and
// two-character sequences).
var controlSequence = regexp.MustCompile(`\x1b(\[[0-?]*[ -/]*[@-~]|[ -Z\\-~])`)

// log passes on the guest's output, line by line. It is a client like any other: if line is slow,
// output is lost and nothing blocks.
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

// plain returns a line without control sequences, as it looks after all overwriting.
func plain(line string) string {
	// A removal can leave another sequence.
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
