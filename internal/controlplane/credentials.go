package controlplane

import (
	"errors"
	"fmt"
	"net"
)

// Credentials are the files of a program that runs on a node.
type Credentials struct {
	// Kubeconfig is for a client of the API server, at [Options].Address.
	Kubeconfig string
	// CertFile, KeyFile and CAFile are for a server.
	CertFile, KeyFile, CAFile string
}

// Credentials creates the credentials of a user in the given groups, also for serving at the given
// addresses and names. file is the base name of the files.
func (c *ControlPlane) Credentials(file, user string, groups []string, addresses []net.IP, names []string) (Credentials, error) {
	if c.server == "" {
		return Credentials{}, errors.New("control plane: nodes cannot reach it: Options.Address is not set")
	}
	id, err := c.authority.issue(file, user, groups, addresses, names)
	if err != nil {
		return Credentials{}, fmt.Errorf("control plane: credentials of %s: %w", user, err)
	}
	kubeconfig := c.kubeconfig(file)
	if err := writeKubeconfig(kubeconfig, c.server, c.authority.pem, id); err != nil {
		return Credentials{}, fmt.Errorf("control plane: credentials of %s: %w", user, err)
	}
	return Credentials{Kubeconfig: kubeconfig, CertFile: id.certFile, KeyFile: id.keyFile, CAFile: c.authority.certFile()}, nil
}
