package controlplane

import (
	"encoding/json"
	"os"

	clientcmd "k8s.io/client-go/tools/clientcmd/api/v1"
)

func writeKubeconfig(file, server string, ca []byte, id identity) error {
	const name = "vmop-test"
	data, err := json.MarshalIndent(clientcmd.Config{
		APIVersion: "v1",
		Kind:       "Config",
		Clusters: []clientcmd.NamedCluster{{Name: name, Cluster: clientcmd.Cluster{
			Server: server, CertificateAuthorityData: ca,
		}}},
		AuthInfos: []clientcmd.NamedAuthInfo{{Name: name, AuthInfo: clientcmd.AuthInfo{
			ClientCertificateData: id.certPEM, ClientKeyData: id.keyPEM,
		}}},
		Contexts:       []clientcmd.NamedContext{{Name: name, Context: clientcmd.Context{Cluster: name, AuthInfo: name}}},
		CurrentContext: name,
	}, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(file, append(data, '\n'), 0o600)
}
