package live

import "github.com/vmop/sdk/vmop/runnerconfig"

// DisplayCertificate is the name of the [Document] with the certificate of the display.
const DisplayCertificate = "displayCertificate"

// Document is a document from a Secret that differs from the one at the machine's start: one for
// the guest's cloud-init or Windows' setup, or the certificate of the display. It never contains
// the content.
type Document struct {
	// Name is metaData, userData, networkConfig, sysprep or displayCertificate.
	Name string `json:"name"`
	// Missing reports that the Secret, or its key, was deleted; if the key is required, the machine
	// is not started again.
	Missing bool `json:"missing,omitempty"`
}

// ChangedDocuments are the documents whose content differs from the one with which a machine was
// started. They exclude a configuration that names another Secret or key: that change is in the
// configuration itself.
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
