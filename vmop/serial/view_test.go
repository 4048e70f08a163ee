package serial

import (
	"bytes"
	"net"
	"os"
	"path/filepath"
	"testing"
)

// Input from a file and from /dev/null, which nobody can wait for, is input too.
func TestViewTakesFiles(t *testing.T) {
	typed := filepath.Join(t.TempDir(), "typed")
	if err := os.WriteFile(typed, []byte("help\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for file, want := range map[string]string{typed: "help\n", os.DevNull: ""} {
		in, err := os.Open(file)
		if err != nil {
			t.Fatal(err)
		}
		defer in.Close()
		guest, host := net.Pipe()
		got := make(chan string, 1)
		go func() {
			b := make([]byte, len(want))
			n := 0
			for n < len(b) {
				more, err := guest.Read(b[n:])
				n += more
				if err != nil {
					break
				}
			}
			_, _ = guest.Write([]byte("ready"))
			_ = guest.Close()
			got <- string(b[:n])
		}()
		var out bytes.Buffer
		end, err := (&View{Conn: host, Stdin: in, Stdout: &out}).Run(t.Context())
		if typed := <-got; err != nil || end != MachineEnded || out.String() != "ready" || typed != want {
			t.Errorf("%s: %v, %v, the guest got %q and said %q", file, end, err, typed, out.String())
		}
	}
}
