// Package vmopagent speaks, for the runner, with the VMOP agent in a guest: the
// program that logs a user in and out of the guest's desktop. The protocol is
// VM-Operator's ("VM-Operator agent", auto login): lines over the virtio-serial
// port org.jdrupes.vmop_agent.0. The runner says "login USER" and "logout", the
// agent answers with three digits and a text.
//
// [Machine] decides, and is a function of what it is told: a line that arrived, a
// port that opened or closed, another user who is wanted, the time. [Run] is the
// thin part around it that reads and writes a connection.
//
//	m := vmopagent.NewMachine(vmopagent.Config{}, user)
//	err := vmopagent.Run(ctx, conn, m, vmopagent.Inputs{Users: users, Ports: ports}, report)
//
// # Contract
//
//  1. Nothing is sent before the agent has said 220, which it does whenever it
//     starts.
//  2. A command is sent when the wanted user differs from the one that was
//     confirmed, and not otherwise: telling the same user again sends nothing, and
//     an agent that starts again after a confirmed logout is not told to log out
//     again, which could end a session that somebody started by hand.
//  3. One command is under way at a time, for at most [Config].Timeout. Without an
//     answer, or after an answer that speaks of a temporary failure (4xx), it is
//     repeated after a growing pause, at most [Config].Attempts times in all; after
//     a refusal (5xx) it is not. Another user, and an agent that starts again, begin
//     anew.
//  4. Answers come in the order of the commands. An answer that is late is matched
//     with the command that it belongs to, within two timeouts; one that belongs to
//     none changes nothing.
//  5. An agent that leaves, by 240, a closed port or a lost connection, is not
//     connected, and nobody is known to be logged in.
//
// # Compatibility
//
// Works with VM-Operator's agents. Where its runner sends a command again at each
// change of its configuration and reports a login as confirmed before it is, this
// one does not.
//
// # Stability
//
// What is stored, sent or printed of it is kept; its Go interface may change in a
// release before 1.0, as package vmop says.
package vmopagent
