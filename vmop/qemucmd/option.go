package qemucmd

import (
	"slices"
	"strings"
)

// Option is one option of QEMU's command line in structured form; [Option.Args] quotes it.
type Option struct {
	// Flag is the option with its dash, "-device".
	Flag string
	// HeadKey is the name of the property that QEMU lets one write without a key ("driver" of
	// -device, "qom-type" of -object), and Head is its value. For options with a literal argument
	// (-append, -cpu, -initrd, -kernel, -m, -uuid) Head is the argument.
	HeadKey string
	Head    string
	// ID is what other options refer to: "id", or "node-name" of -blockdev.
	ID    string
	Props []Prop
	// JSON selects the JSON form of the argument, which QEMU accepts for -audiodev, -blockdev,
	// -device (see [Host.JSONDevice]), -netdev and -object.
	JSON bool
	// Verbatim are the unchanged arguments of an option of a custom machine type, including the
	// flag; see [BuildTemplate]. All other fields but Why are then unset.
	Verbatim []string
	// Why is the reason for the option, for readers of a command line.
	Why string
}

// literal reports whether QEMU takes the argument of a flag as it is. The model of -cpu does have
// properties, but is QEMU syntax written by the user and checked against a set of characters.
func literal(flag string) bool {
	switch flag {
	case "-append", "-cpu", "-initrd", "-kernel", "-m", "-uuid":
		return true
	}
	return false
}

func idKey(flag string) string {
	if flag == "-blockdev" {
		return "node-name"
	}
	return "id"
}

// Args renders the option: the flag, and its argument if it has one.
func (o Option) Args() []string {
	if len(o.Verbatim) > 0 {
		return slices.Clone(o.Verbatim)
	}
	if o.Head == "" && o.ID == "" && len(o.Props) == 0 && !literal(o.Flag) {
		return []string{o.Flag}
	}
	return []string{o.Flag, o.Argument()}
}

// Argument renders the argument alone; "" for an option without one.
func (o Option) Argument() string {
	if literal(o.Flag) {
		return o.Head
	}
	return string(o.appendArgument(make([]byte, 0, 96)))
}

func (o Option) appendArgument(b []byte) []byte {
	if literal(o.Flag) {
		return append(b, o.Head...)
	}
	if o.JSON {
		return o.appendJSON(b)
	}
	begin := len(b)
	if o.Head != "" {
		// A head with an equals sign would be read as key=value.
		if strings.Contains(o.Head, "=") {
			b = append(append(b, o.HeadKey...), '=')
		}
		b = appendEscaped(b, o.Head)
	}
	if o.ID != "" {
		b = appendKey(b, begin, idKey(o.Flag))
		b = appendEscaped(b, o.ID)
	}
	for _, p := range o.Props {
		b = appendKey(b, begin, p.Key)
		b = p.Value.appendText(b)
	}
	return b
}

func (o *Option) bound() int {
	n := textBound(o.HeadKey) + textBound(o.Head) + textBound("node-name") + textBound(o.ID) + 8
	for i := range o.Props {
		n += propBound(&o.Props[i])
	}
	return n
}

func (o Option) appendJSON(b []byte) []byte {
	begin := len(b)
	key := func(name string) {
		c := byte(',')
		if len(b) == begin {
			c = '{'
		}
		b = append(appendJSONString(append(b, c), name), ':')
	}
	if o.Head != "" {
		key(o.HeadKey)
		b = appendJSONString(b, o.Head)
	}
	if o.ID != "" {
		key(idKey(o.Flag))
		b = appendJSONString(b, o.ID)
	}
	for _, p := range o.Props {
		key(p.Key)
		b = p.Value.appendJSON(b)
	}
	if len(b) == begin {
		b = append(b, '{')
	}
	return append(b, '}')
}

// appendKey appends the name of a property; begin is where the argument begins.
func appendKey(b []byte, begin int, key string) []byte {
	if len(b) > begin {
		b = append(b, ',')
	}
	return append(append(b, key...), '=')
}
