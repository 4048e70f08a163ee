package qmp

// QueryYank queries which connections of QEMU can be cut with Yank. It may be executed out of band.
type QueryYank struct{}

// QMP implements Command.
func (QueryYank) QMP() (string, []YankInstance) { return "query-yank", nil }

// Yank cuts connections on which QEMU may hang, such as that of a storage server that does not
// respond. A QEMU that hangs executes it only out of band.
type Yank struct {
	Instances []YankInstance `json:"instances"`
}

// QMP implements Command.
func (Yank) QMP() (string, None) { return "yank", None{} }

// YankInstance is a connection that can be cut.
type YankInstance struct {
	Type     string `json:"type"`                // "block-node", "chardev" or "migration"
	NodeName string `json:"node-name,omitempty"` // of a block-node
	ID       string `json:"id,omitempty"`        // of a chardev
}
