package runnerconfig

import "maps"

// instanceIDKey is cloud-init's, in the meta-data.
const instanceIDKey = "instance-id"

// SeedMetaData is what the file meta-data says. Cloud-init needs an instance-id, by
// which a guest knows that it is the same machine as at its last start; where the
// configuration gives none it is the machine's UUID, which stays. (VM-Operator's
// runner takes the time at which the file was changed, so that each change makes
// another machine.)
func (c *CloudInit) SeedMetaData(uuid string) map[string]string {
	out := map[string]string{instanceIDKey: uuid}
	maps.Copy(out, c.MetaData)
	if out[instanceIDKey] == "" {
		out[instanceIDKey] = uuid
	}
	return out
}
