package cloudinit

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	"go.yaml.in/yaml/v3"

	"github.com/vmop/sdk/internal/yamljson"
)

// MaxDepth is how deeply objects and arrays may be nested in user data and
// network configuration.
const MaxDepth = yamljson.MaxDepth

// userDataHeader is what makes cloud-init read user-data as cloud-config
// rather than as a script or an archive.
const userDataHeader = "#cloud-config\n"

// ErrNotAnObject says that user data or network configuration is some other
// JSON value than an object. Cloud-init would ignore such a document with
// nothing but a line in the guest's log.
var ErrNotAnObject = errors.New("must be an object")

// Input is what a manifest says about cloud-init.
type Input struct {
	// MetaData becomes meta-data. The caller has put the keys "instance-id"
	// (cloud-init runs its once-per-instance modules again when it changes) and
	// "local-hostname" into it; this package adds none.
	MetaData map[string]string

	// UserData becomes user-data: a JSON object in the form of cloud-config.
	// It is kept as the bytes of the manifest because the order of the keys and
	// the difference between 1 and 1.0 do not survive decoding into a map.
	// Empty or null means no settings.
	UserData json.RawMessage

	// NetworkConfig becomes network-config: a JSON object in version 1 or 2 of
	// cloud-init's network configuration. Empty or null means that there is no
	// such document and cloud-init decides (DHCP on the first interface).
	NetworkConfig json.RawMessage
}

// Documents are the files of a NoCloud seed.
type Documents struct {
	// MetaData is the content of the file meta-data, YAML.
	MetaData []byte
	// UserData is the content of the file user-data: the line #cloud-config,
	// then YAML.
	UserData []byte
	// NetworkConfig is the content of the file network-config, YAML. Nil means
	// that the seed has no such file.
	NetworkConfig []byte
}

// Render makes the documents for in. Types and order are kept: an integer of
// any size stays an integer, a string that looks like a number or a truth value
// to any YAML parser (the guest has one for YAML 1.1) is quoted, keys come in
// the order of the manifest, and strings of several lines become block scalars.
//
// The error names every field that cannot be rendered: JSON that is malformed,
// nested deeper than [MaxDepth] or has a key twice, floating-point numbers
// beyond 64 bits, and top-level values for which errors.Is(err,
// [ErrNotAnObject]) holds.
func Render(in Input) (Documents, error) {
	var docs Documents
	var errs []error

	meta, err := yamljson.Encode(yamljson.StringsNode(in.MetaData))
	if err != nil {
		errs = append(errs, fmt.Errorf("metaData: %w", err))
	}
	docs.MetaData = meta

	user, err := renderObject(in.UserData)
	if err != nil {
		errs = append(errs, fmt.Errorf("userData: %w", err))
	}
	if user == nil {
		user = []byte("{}\n")
	}
	docs.UserData = append([]byte(userDataHeader), user...)

	docs.NetworkConfig, err = renderObject(in.NetworkConfig)
	if err != nil {
		errs = append(errs, fmt.Errorf("networkConfig: %w", err))
	}

	if len(errs) > 0 {
		return Documents{}, errors.Join(errs...)
	}
	return docs, nil
}

// renderObject returns nil when raw is absent or null.
func renderObject(raw json.RawMessage) ([]byte, error) {
	if len(bytes.TrimSpace(raw)) == 0 {
		return nil, nil
	}
	node, err := yamljson.JSONToNode(raw)
	if err != nil {
		return nil, err
	}
	switch {
	case node.Kind == yaml.MappingNode:
		return yamljson.Encode(node)
	case node.Tag == "!!null":
		return nil, nil
	default:
		return nil, ErrNotAnObject
	}
}
