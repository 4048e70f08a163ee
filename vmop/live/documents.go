package live

import "github.com/vmop/sdk/vmop/runnerconfig"

// DisplayCertificate is the name of the [Document] that a display identifies itself by.
const DisplayCertificate = "displayCertificate"

// Document is a document for the guest, for its cloud-init or Windows' setup, or the
// certificate of the display, that comes from a Secret and is another one than when the
// machine was started. Nothing tells what stands in it.
type Document struct {
	// Name is that of the document: metaData, userData, networkConfig, sysprep or
	// displayCertificate.
	Name string `json:"name"`
	// Missing says that there is none any more: the Secret is gone, or the key of it,
	// without which the machine is not started again.
	Missing bool `json:"missing,omitempty"`
}

// ChangedDocuments are the documents whose content is another one than that with which
// a machine was started. A configuration that names another Secret or key is not among
// them: it differs itself.
func ChangedDocuments(started, now *runnerconfig.Config) []Document {
	if started == nil || now == nil {
		return nil
	}
	var out []Document
	if was, is := started.Runner.Sysprep, now.Runner.Sysprep; was != nil && is != nil {
		out = changedAnswers(was, is)
	}
	was, is := started.Runner.CloudInit, now.Runner.CloudInit
	if was == nil || is == nil {
		return out
	}
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

// changedAnswers is the one for the answers of Windows' setup, which are there if there
// is one of the files.
func changedAnswers(was, is *runnerconfig.Sysprep) []Document {
	digests := func(s *runnerconfig.Sysprep) (secret, all string, there bool) {
		for _, source := range s.Sources() {
			secret, all, there = (*source).Secret, all+(*source).Key+"="+(*source).ContentDigest+";", there || (*source).ContentDigest != ""
		}
		return secret, all, there
	}
	secret, before, had := digests(was)
	other, after, has := digests(is)
	if !had || secret != other || before == after {
		return nil
	}
	return []Document{{Name: "sysprep", Missing: !has}}
}
