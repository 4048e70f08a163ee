// Package shellwords writes words so that a POSIX shell reads them back as they are: in the
// command lines that messages tell people to type, and in those that a shell of a guest gets
// from ssh. There is no other place that quotes for a shell (internal/house).
package shellwords

import (
	"slices"
	"strings"
)

// plain are the characters that no POSIX shell treats specially inside of a word. The tilde and the
// braces are not among them.
const plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_@%+=:,./-"

// reserved are the words of plain characters that are not looked up as commands in command
// position: those of POSIX, bash, ksh and zsh.
var reserved = []string{
	"case", "coproc", "do", "done", "elif", "else", "end", "esac", "fi", "for", "foreach", "function", "if", "in",
	"nocorrect", "repeat", "select", "then", "time", "until", "while",
}

// Quote returns a word for a shell, in quotes if it needs them.
func Quote(word string) string {
	if word != "" && strings.Trim(word, plain) == "" {
		return word
	}
	return quoted(word)
}

func quoted(word string) string {
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

// Join returns the command line of a command and its arguments. The first word stays the command
// even if a shell would take it for an assignment or a reserved word, and a line given to a shell
// with -c is not taken for an option.
func Join(words ...string) string {
	var out []string
	for i, word := range words {
		if i == 0 && (strings.Contains(word, "=") || strings.IndexAny(word, "-+") == 0 || slices.Contains(reserved, word)) {
			out = append(out, quoted(word))
			continue
		}
		out = append(out, Quote(word))
	}
	return strings.Join(out, " ")
}
