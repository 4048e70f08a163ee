// Package shellwords writes words so that a POSIX shell reads them back as they are: in the
// command lines that messages tell people to type, and in those that a shell of a guest gets
// from ssh. There is no other place that quotes for a shell (internal/house).
package shellwords

import (
	"slices"
	"strings"
)

// plain are the characters that no POSIX shell treats specially inside of a word. The tilde
// and the braces are not among them.
const plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_@%+=:,./-"

// reserved are the words of plain characters that shells do not look for a command by, where
// one is expected: those of POSIX, bash, ksh and zsh.
var reserved = []string{
	"case", "coproc", "do", "done", "elif", "else", "end", "esac", "fi", "for", "foreach", "function", "if", "in",
	"nocorrect", "repeat", "select", "then", "time", "until", "while",
}

// Quote is a word as a shell reads it back, in quotes if it needs some.
func Quote(word string) string {
	if word != "" && strings.Trim(word, plain) == "" {
		return word
	}
	return quoted(word)
}

func quoted(word string) string {
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

// Join is the command line of a command and its arguments. The first word is the command,
// also where a shell would take it for an assignment or a word of its own, and a line that is
// given to a shell with -c is none of its options.
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
