package live

import "github.com/vmop/sdk/vmop/runnerconfig"

// Document is a document for the guest's cloud-init that comes from a Secret and is
// another one than when the machine was started. Nothing tells what stands in it.
type Document struct {
	// Name is that of the document: metaData, userData or networkConfig.
	Name string `json:"name"`
	// Missing says that there is none any more: the Secret is gone, or the key of it,
	// without which the machine is not started again.
	Missing bool `json:"missing,omitempty"`
}

// ChangedDocuments are the documents whose content is another one than that with which
// a machine was started. A configuration that names another Secret or key is not among
// them: it differs itself.
func ChangedDocuments(started, now *runnerconfig.Config) []Document {
	was, is := started.Runner.CloudInit, now.Runner.CloudInit
	if was == nil || is == nil {
		return nil
	}
	var out []Document
	for _, d := range []struct {
		name    string
		was, is *runnerconfig.CloudInitSource
	}{
		{"metaData", was.MetaDataFrom, is.MetaDataFrom},
		{"userData", was.UserDataFrom, is.UserDataFrom},
		{"networkConfig", was.NetworkConfigFrom, is.NetworkConfigFrom},
	} {
		if d.was == nil || d.is == nil || d.was.Secret != d.is.Secret || d.was.Key != d.is.Key ||
			d.was.ContentDigest == "" || d.was.ContentDigest == d.is.ContentDigest {
			continue
		}
		out = append(out, Document{Name: d.name, Missing: d.is.ContentDigest == ""})
	}
	return out
}
