// Package vmopagent speaks, for the runner, with the VMOP agent in a guest: the
// program that logs a user in and out of the guest's desktop. The protocol is
// VM-Operator's ("VM-Operator agent", auto login): lines over the virtio-serial
// port org.jdrupes.vmop_agent.0. The runner sends "login USER" and "logout", the
// agent answers with three digits and a text.
//
// [Machine] decides, and depends only on its inputs: a line that arrived, a port
// that opened or closed, another wanted user, the time. [Run] is the thin layer
// around it that reads and writes a connection.
//
//	m := vmopagent.NewMachine(vmopagent.Config{}, user)
//	err := vmopagent.Run(ctx, conn, m, vmopagent.Inputs{Users: users, Ports: ports}, report)
//
// # Contract
//
//  1. Nothing is sent before the agent has sent 220, which it does whenever it
//     starts.
//  2. A command is sent when the wanted user differs from the one that was
//     confirmed, and not otherwise: setting the same user again sends nothing, and
//     an agent that restarts after a confirmed logout is not sent another logout,
//     which could end a session that a user started by hand.
//  3. One command is under way at a time, for at most [Config].Timeout. Without an
//     answer, or after a temporary failure (4xx), it is repeated after a growing
//     pause, at most [Config].Attempts times in all; after a refusal (5xx) it is
//     not. Another user, or a restart of the agent, begins anew.
//  4. Answers come in the order of the commands. An answer that is late is matched
//     with the command that it belongs to, within two timeouts; one that belongs to
//     none changes nothing.
//  5. An agent that leaves, by 240, a closed port or a lost connection, is not
//     connected, and no user is known to be logged in.
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
