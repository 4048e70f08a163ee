package runnerconfig

import (
	"encoding/json"
	"maps"
)

const instanceIDKey = "instance-id"

// SeedMetaData is the content of the file meta-data. Cloud-init needs an instance-id, by which a
// guest knows that it is the same machine as at its last start; without one in the configuration it
// is the machine's UUID, which never changes. (VM-Operator's runner takes the file's modification
// time, so that each change looks like another machine.)
func (c *CloudInit) SeedMetaData(uuid string) map[string]string {
	out := map[string]string{instanceIDKey: uuid}
	maps.Copy(out, c.MetaData)
	if out[instanceIDKey] == "" {
		out[instanceIDKey] = uuid
	}
	return out
}

type cloudInitFile struct {
	*plainCloudInit
	MetaData map[string]json.RawMessage `json:"metaData,omitempty"`
}

type plainCloudInit CloudInit

// MarshalJSON writes all meta-data under one key.
func (c CloudInit) MarshalJSON() ([]byte, error) {
	if len(c.MetaDataValues) == 0 {
		return json.Marshal(plainCloudInit(c))
	}
	f := cloudInitFile{(*plainCloudInit)(&c), maps.Clone(c.MetaDataValues)}
	for key, text := range c.MetaData {
		raw, err := json.Marshal(text)
		if err != nil {
			return nil, err
		}
		f.MetaData[key] = raw
	}
	return json.Marshal(f)
}

// UnmarshalJSON reads what MarshalJSON writes.
func (c *CloudInit) UnmarshalJSON(data []byte) error {
	var out CloudInit
	f := cloudInitFile{plainCloudInit: (*plainCloudInit)(&out)}
	if err := json.Unmarshal(data, &f); err != nil {
		return err
	}
	if f.MetaData != nil {
		out.MetaData = map[string]string{}
	}
	for key, raw := range f.MetaData {
		if raw[0] == '{' || raw[0] == '[' {
			if out.MetaDataValues == nil {
				out.MetaDataValues = map[string]json.RawMessage{}
			}
			out.MetaDataValues[key] = raw
			continue
		}
		var text string
		if err := json.Unmarshal(raw, &text); err != nil {
			return err
		}
		out.MetaData[key] = text
	}
	*c = out
	return nil
}
