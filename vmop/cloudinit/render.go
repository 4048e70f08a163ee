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

// MaxDepth is the maximum nesting of objects and arrays in user data and network configuration.
const MaxDepth = yamljson.MaxDepth

// userDataHeader makes cloud-init read user-data as cloud-config.
const userDataHeader = "#cloud-config\n"

// ErrNotAnObject means that user data or network configuration is another JSON value than an
// object. Cloud-init would ignore such a document with only a line in the guest's log.
var ErrNotAnObject = errors.New("must be an object")

// Input are the cloud-init settings of a manifest.
type Input struct {
	// MetaData becomes meta-data. The caller must set the keys "instance-id" (cloud-init runs its
	// once-per-instance modules again when it changes) and "local-hostname"; this package adds
	// none.
	MetaData map[string]string
	// MetaDataValues are further keys of meta-data: lists and mappings, as JSON. MetaData takes
	// precedence.
	MetaDataValues map[string]json.RawMessage

	// UserData becomes user-data: a JSON object in the form of cloud-config. It is kept as bytes
	// because the order of the keys and the difference between 1 and 1.0 do not survive decoding
	// into a map. Empty or null means no settings.
	UserData json.RawMessage

	// NetworkConfig becomes network-config: a JSON object in version 1 or 2 of cloud-init's network
	// configuration. Empty or null means that there is no such document and cloud-init uses its
	// default (DHCP on the first interface).
	NetworkConfig json.RawMessage

	// UserDataText, if not nil, is a complete user-data file, used unchanged instead of UserData.
	// Its first line declares its format.
	UserDataText []byte
	// AnyUserData accepts a UserDataText that cloud-init would ignore.
	AnyUserData bool
	// NetworkConfigText, if not nil, is a complete network-config file, used unchanged instead of
	// NetworkConfig.
	NetworkConfigText []byte
}

// ErrUserDataForm means that user data does not begin in a form that cloud-init knows, so that it
// would be ignored.
var ErrUserDataForm = userdata.ErrForm

// CheckUserData returns why cloud-init would ignore a complete user-data file: it does not begin in
// a known form ([ErrUserDataForm]), or is cloud-config that is not a YAML mapping. The error
// contains nothing of the text.
func CheckUserData(text []byte) error { return userdata.Check(text) }

// Documents are the files of a NoCloud seed.
type Documents struct {
	// MetaData is the content of the file meta-data, YAML.
	MetaData []byte
	// UserData is the content of the file user-data: the line #cloud-config, then YAML.
	UserData []byte
	// NetworkConfig is the content of the file network-config, YAML. Nil means that the seed has no
	// such file.
	NetworkConfig []byte
}

// Render renders the documents for in. Types and order are kept: an integer of any size stays an
// integer, a string that looks like a number or a boolean to any YAML parser (the guest's is for
// YAML 1.1) is quoted, keys keep the order of the manifest, and strings of several lines become
// block scalars.
//
// The error names every field that cannot be rendered: JSON that is malformed, nested deeper than
// [MaxDepth] or has a key twice, floating-point numbers beyond 64 bits, and top-level values that
// are not objects ([ErrNotAnObject]).
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

const noMembers = "{}\n"

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

// ParseMetaData parses meta-data that is written as YAML: a mapping of strings, numbers and
// booleans, of which the latter become strings as written. Errors contain no value.
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
