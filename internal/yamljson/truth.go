package yamljson

// Truth returns what a plain word is to kubectl, and is false if that is no truth value. It
// reads by YAML 1.1, with all the words of https://yaml.org/type/bool.html.
func Truth(word string) (value, is bool) {
	switch word {
	case "true", "True", "TRUE", "yes", "Yes", "YES", "on", "On", "ON", "y", "Y":
		return true, true
	case "false", "False", "FALSE", "no", "No", "NO", "off", "Off", "OFF", "n", "N":
		return false, true
	}
	return false, false
}

// TruthOfSnakeYAML is [Truth] as VM-Operator's programs have it, whose parser reads by YAML
// 1.1, too, and takes y and n for texts.
func TruthOfSnakeYAML(word string) (value, is bool) {
	if len(word) == 1 {
		return false, false
	}
	return Truth(word)
}
