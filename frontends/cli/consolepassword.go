package main

import (
	"crypto/rand"
	"fmt"
	"os"
	"os/user"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/vmop/sdk/internal/textout"
	"github.com/vmop/sdk/vmop/reconcile/console"
	"github.com/vmop/sdk/vmop/reconcile/objects"
)

func (p *program) consolePasswordCommand() *cli.Command {
	return &cli.Command{
		Name:      "console-password",
		Usage:     "print the password of the display of a cluster's machine",
		ArgsUsage: "NAME",
		Description: "Prints the password that opens the machine's SPICE or VNC display now. One that has\n" +
			"expired is replaced by a new one, which is valid for a short time: connect at once.\n" +
			"The status of the machine says whose console it is.\n\n" +
			"Examples:\n" +
			"  vmop-cli console-password web\n" +
			"  vmop-cli console-password --validity 5m -n shop web",
		Flags: clusterFlags(
			&cli.DurationFlag{Name: "validity", Value: console.DefaultValidity, Usage: "a new password is valid for this `DURATION`"},
			&cli.StringFlag{Name: "user", Usage: "`NAME` of the user whose console it is (default: yours on this host)"},
		),
		Action: p.consolePassword,
	}
}

func (p *program) consolePassword(c *cli.Context) error {
	validity := c.Duration("validity")
	if validity < time.Second {
		return usagef(c, "--validity %v: want at least a second", validity)
	}
	client, namespace, name, err := p.clusterMachine(c)
	if err != nil {
		return err
	}
	who := c.String("user")
	if who == "" {
		who = userName()
	}
	var random [16]byte
	if _, err := rand.Read(random[:]); err != nil {
		return fmt.Errorf("make a password: %w", err)
	}
	ctx, cancel := bounded(c, requestTimeout, "the API server did not answer")
	defer cancel()
	password, err := client.ConsolePassword(ctx, namespace, name, who, objects.Password(random), validity)
	if err != nil {
		return err
	}
	fmt.Fprintln(p.stdout, textout.Cell(password))
	return nil
}

func userName() string {
	if u, err := user.Current(); err == nil && u.Username != "" {
		return u.Username
	}
	return fmt.Sprint(os.Geteuid())
}
