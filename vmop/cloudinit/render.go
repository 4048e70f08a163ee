package cloudinit

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/vmop/sdk/internal/userdata"
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
	// MetaDataValues are more of meta-data: lists and mappings, as JSON. Of a key that
	// MetaData has, too, that text counts.
	MetaDataValues map[string]json.RawMessage

	// UserData becomes user-data: a JSON object in the form of cloud-config.
	// It is kept as the bytes of the manifest because the order of the keys and
	// the difference between 1 and 1.0 do not survive decoding into a map.
	// Empty or null means no settings.
	UserData json.RawMessage

	// NetworkConfig becomes network-config: a JSON object in version 1 or 2 of
	// cloud-init's network configuration. Empty or null means that there is no
	// such document and cloud-init decides (DHCP on the first interface).
	NetworkConfig json.RawMessage

	// UserDataText is a whole user-data file, taken as it is instead of UserData if it
	// is not nil: its first line says what it is.
	UserDataText []byte
	// AnyUserData takes such a text though cloud-init would ignore it.
	AnyUserData bool
	// NetworkConfigText is a whole network-config file, taken as it is instead of
	// NetworkConfig if it is not nil.
	NetworkConfigText []byte
}

// ErrUserDataForm says that user data begins in no way that cloud-init knows, which
// would ignore it.
var ErrUserDataForm = userdata.ErrForm

// CheckUserData says why cloud-init would make nothing of a whole user-data file: it
// begins in no way that cloud-init knows ([ErrUserDataForm]), or is cloud-config that
// is no YAML, or no mapping. The error has nothing of what it says.
func CheckUserData(text []byte) error { return userdata.Check(text) }

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

	var err error
	if docs.MetaData, err = metaData(&in); err != nil {
		errs = append(errs, fmt.Errorf("metaData: %w", err))
	}
	if docs.UserData, err = userData(&in); err != nil {
		errs = append(errs, fmt.Errorf("userData: %w", err))
	}
	if docs.NetworkConfig, err = networkConfig(&in); err != nil {
		errs = append(errs, fmt.Errorf("networkConfig: %w", err))
	}

	if len(errs) > 0 {
		return Documents{}, errors.Join(errs...)
	}
	return docs, nil
}

// noMembers is the YAML of an empty object.
const noMembers = "{}\n"

// metaData writes the texts, then all else.
func metaData(in *Input) ([]byte, error) {
	var out []byte
	for _, key := range slices.Sorted(maps.Keys(in.MetaData)) {
		out = yamljson.AppendText(out, key, in.MetaData[key])
	}
	for _, key := range slices.Sorted(maps.Keys(in.MetaDataValues)) {
		if _, given := in.MetaData[key]; given {
			continue
		}
		var err error
		if out, err = yamljson.AppendMember(out, key, in.MetaDataValues[key]); err != nil {
			return nil, fmt.Errorf("%.100q: %w", key, err)
		}
	}
	if out == nil {
		return []byte(noMembers), nil
	}
	return out, nil
}

func userData(in *Input) ([]byte, error) {
	if in.UserDataText != nil {
		if !in.AnyUserData && !userdata.Known(in.UserDataText) {
			return nil, ErrUserDataForm
		}
		return in.UserDataText, nil
	}
	user, err := renderObject(in.UserData)
	if user == nil {
		user = []byte(noMembers)
	}
	return append([]byte(userDataHeader), user...), err
}

func networkConfig(in *Input) ([]byte, error) {
	if in.NetworkConfigText == nil {
		return renderObject(in.NetworkConfig)
	}
	doc, err := yamljson.ToJSON(in.NetworkConfigText)
	if err != nil {
		return nil, userdata.Hidden(err)
	}
	if doc = bytes.TrimSpace(doc); len(doc) == 0 || doc[0] != '{' {
		return nil, ErrNotAnObject
	}
	return in.NetworkConfigText, nil
}

// ParseMetaData reads meta-data that is written as YAML: a mapping of strings, or of
// numbers and truth values, which are the strings that they are written as. No error
// shows a value.
func ParseMetaData(text []byte) (map[string]string, error) {
	doc, err := yamljson.ToJSON(text)
	if err != nil {
		return nil, fmt.Errorf("metaData: %w", userdata.Hidden(err))
	}
	var members map[string]json.RawMessage
	if err := json.Unmarshal(doc, &members); err != nil || members == nil {
		return nil, fmt.Errorf("metaData: %w", ErrNotAnObject)
	}
	out := make(map[string]string, len(members))
	for _, key := range slices.Sorted(maps.Keys(members)) {
		raw := members[key]
		var text string
		switch {
		case json.Unmarshal(raw, &text) == nil && raw[0] == '"':
			out[key] = text
		case raw[0] != '{' && raw[0] != '[' && raw[0] != 'n':
			out[key] = string(raw)
		default:
			return nil, fmt.Errorf("metaData: %q is not a string", key)
		}
	}
	return out, nil
}

// renderObject returns nil when raw is absent or null.
func renderObject(raw json.RawMessage) ([]byte, error) {
	value := bytes.TrimSpace(raw)
	if len(value) == 0 {
		return nil, nil
	}
	document, err := yamljson.FromJSON(raw)
	switch {
	case err != nil || value[0] == '{':
		return document, err
	case value[0] == 'n':
		return nil, nil
	default:
		return nil, ErrNotAnObject
	}
}
