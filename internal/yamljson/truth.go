package yamljson

// Truth returns kubectl's boolean value of a plain word; is reports whether it is a boolean. It
// follows YAML 1.1, with all the words of https://yaml.org/type/bool.html.
func Truth(word string) (value, is bool) {
	switch word {
	case "true", "True", "TRUE", "yes", "Yes", "YES", "on", "On", "ON", "y", "Y":
		return true, true
	case "false", "False", "FALSE", "no", "No", "NO", "off", "Off", "OFF", "n", "N":
		return false, true
	}
	return false, false
}

// TruthOfSnakeYAML is [Truth] as in VM-Operator's programs, whose parser follows YAML 1.1, too, and
// takes y and n for strings.
func TruthOfSnakeYAML(word string) (value, is bool) {
	if len(word) == 1 {
		return false, false
	}
	return Truth(word)
}
