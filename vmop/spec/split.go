package spec

import (
	"bytes"
)

// splitYAML splits a stream into documents, at the lines that begin with "---" or "...". YAML
// allows such lines nowhere else, not even in quotes, so a syntax error in one document does not
// affect the others.
func splitYAML(data []byte) []document {
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	var docs []document
	start, startLine := 0, 1
	cut := func(end, nextLine int) {
		chunk := data[start:end]
		if onlyDirectives(chunk) {
			return // they belong to the next document
		}
		docs = append(docs, document{raw: chunk, line: startLine})
		start, startLine = end, nextLine
	}
	line := 1
	for i := 0; i < len(data); line++ {
		end := len(data)
		if n := bytes.IndexByte(data[i:], '\n'); n >= 0 {
			end = i + n + 1
		}
		text := data[i:end]
		switch {
		case isMarker(text, "---") && i > start:
			cut(i, line)
		case isMarker(text, "...") && end > start:
			chunk := data[start:end]
			if !onlyDirectives(data[start:i]) {
				docs = append(docs, document{raw: chunk, line: startLine})
			}
			start, startLine = end, line+1
		}
		i = end
	}
	if start < len(data) && !onlyComments(data[start:]) {
		docs = append(docs, document{raw: data[start:], line: startLine})
	}
	return docs
}

// isMarker reports whether a line is a document marker: the three characters, then nothing or a
// blank.
func isMarker(line []byte, marker string) bool {
	rest, ok := bytes.CutPrefix(line, []byte(marker))
	return ok && (len(rest) == 0 || bytes.IndexByte([]byte(" \t\r\n"), rest[0]) >= 0)
}

// onlyDirectives reports whether a chunk has only directives (%YAML), comments and blank lines.
func onlyDirectives(chunk []byte) bool {
	for line := range bytes.Lines(chunk) {
		if line[0] != '%' && !onlyComments(line) {
			return false
		}
	}
	return true
}

func onlyComments(chunk []byte) bool {
	for line := range bytes.Lines(chunk) {
		if t := bytes.TrimSpace(line); len(t) > 0 && t[0] != '#' {
			return false
		}
	}
	return true
}
