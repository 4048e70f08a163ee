#!/bin/sh
# VM-Operator's login protocol in POSIX shell. See README.md.
#
#   vmop-agent.sh PORT [LOGIN [LOGOUT]]
#
# PORT is the device of the port org.jdrupes.vmop_agent.0. LOGIN is a program that
# logs a user in and gets the user as its only argument, LOGOUT one that logs the
# user out. Both get 50 seconds; the host waits for a minute.
set -u
LC_ALL=C
export LC_ALL

port=${1:?usage: vmop-agent.sh PORT [LOGIN [LOGOUT]]}
login=${2:-true}
logout=${3:-true}
current=
cr=$(printf '\r')

say() { # CODE TEXT: the text is data, never a format
	printf '%s %s\n' "$1" "$2" >&3
}

leave() {
	trap '' TERM INT HUP
	kill "${!:-}" 2>/dev/null && wait
	say 240 leaving
	exit 0
}

# act PROGRAM [USER]: neither the port nor this script's input are the program's.
act() {
	timeout 50 "$@" </dev/null >&2 3>&-
}

valid() { # USER: no option, no path, no number, nothing that means something somewhere
	case $1 in
	'' | [!A-Za-z0-9_]* | *[!A-Za-z0-9_.@-]*) return 1 ;;
	*[!0-9]*) [ ${#1} -le 64 ] ;;
	*) return 1 ;;
	esac
}

forbidden() { # USER: is it root, or another name of root's?
	[ "$1" = root ] || [ "$(id -u "$1" 2>/dev/null)" = 0 ]
}

do_login() { # USER
	if ! valid "$1"; then
		say 501 "not a user's name"
	elif forbidden "$1"; then
		say 504 "$1 must not be logged in"
	elif [ "$1" = "$current" ]; then
		say 201 "$1 is logged in already"
	else
		say 102 "logging in $1"
		current=
		if act "$login" "$1"; then
			current=$1
			say 201 "$1 is logged in"
		else
			say 451 "the login program failed"
		fi
	fi
}

do_logout() {
	say 102 "logging out"
	current=
	if act "$logout"; then
		say 202 "nobody is logged in"
	else
		say 451 "the logout program failed"
	fi
}

serve() {
	say 220 "vmop-agent.sh is ready"
	while IFS= read -r line <&3; do
		line=${line%"$cr"}
		case $line in
		'login '*) do_login "${line#login }" ;;
		logout) do_logout ;;
		*) say 500 "not understood" ;;
		esac
	done
}

exec 3<>"$port" || exit 1
trap leave TERM INT HUP
# A shell looks for signals before it reads, and one that comes between the two would
# wait for the host's next line. Waiting for a process misses none.
serve &
wait "$!"
# The host is gone. systemd starts the next one.
