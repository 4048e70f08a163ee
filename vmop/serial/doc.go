// Package serial shows the serial console of a machine at a terminal, as vmop-cli console
// does: it passes on what is typed, and the machine goes on when the user detaches.
//
//	conn, err := m.Console(ctx) // of package host
//	raw, err := serial.MakeRaw(os.Stdin)
//	defer raw.Restore()
//	end, err := (&serial.View{Conn: conn, Stdin: os.Stdin, Stdout: os.Stdout, Keys: true}).Run(ctx)
//
// A guest's output controls the terminal, which is the purpose of a console: show it only
// to a user who has asked for it.
//
// # Stability
//
// Its Go interface may change in a release before 1.0, as package vmop says.
package serial
