// Package agent is the guest's side of VM-Operator's login protocol: it listens on
// the virtio-serial port org.jdrupes.vmop_agent.0, is told "login USER" and
// "logout", and answers with three digits and a text:
//
//	220  the agent is there
//	102  a command is being worked on
//	201  the user is logged in
//	202  nobody is logged in
//	240  the agent leaves
//	451  the command failed, later it may not
//	500  not a command
//	501  not a user's name
//	504  a user that must not be logged in
//
// How a user is logged in is an [Action]; [Command] runs a program.
package agent
