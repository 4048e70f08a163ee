package main

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
)

// printableText escapes what could steer a terminal. Line feeds and tabs stay:
// it is for texts of several lines.
func printableText(s string) string {
	return escape(s, func(r rune) bool { return r == '\n' || r == '\t' })
}

// printableCell is printableText for something that has to stay on its line.
func printableCell(s string) string {
	return escape(s, func(rune) bool { return false })
}

// oneLine has several lines as one.
func oneLine(s string) string {
	return strings.Join(strings.FieldsFunc(s, func(r rune) bool { return r == '\n' }), "; ")
}

// counted is a number of things.
func counted(n int, thing string) string {
	if n != 1 {
		thing += "s"
	}
	return strconv.Itoa(n) + " " + thing
}

// inWords is size for a sentence, in which a number alone would say nothing.
func inWords(n int64) string {
	if n < 1<<10 {
		return counted(int(n), "byte")
	}
	return size(n)
}

// shellWord is a word as a shell reads it back.
func shellWord(s string) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("_-./:=@%+,", r)
	}
	if s != "" && !strings.ContainsFunc(s, func(r rune) bool { return !plain(r) }) {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

func escape(s string, keep func(rune) bool) string {
	bad := func(r rune) bool { return !keep(r) && !unicode.IsPrint(r) }
	if !strings.ContainsFunc(s, bad) {
		return s
	}
	var b strings.Builder
	for _, r := range s {
		if bad(r) {
			fmt.Fprintf(&b, `\u%04x`, r)
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}
