package controlplane

import (
	"fmt"
	"net"
	"path/filepath"
	"strconv"

	"k8s.io/client-go/rest"
)

type ports struct{ etcd, peer, api, manager, scheduler int }

type identities struct {
	store, server, accounts, frontProxy, admin, manager, scheduler, kubelets identity
}

func (c *ControlPlane) configure(at ports, o Options) error {
	ids, err := c.issueIdentities(o)
	if err != nil {
		return fmt.Errorf("certificates: %w", err)
	}
	host := fmt.Sprintf("https://127.0.0.1:%d", at.api)
	c.config = &rest.Config{
		Host:            host,
		TLSClientConfig: rest.TLSClientConfig{CAData: c.authority.pem, CertData: ids.admin.certPEM, KeyData: ids.admin.keyPEM},
		QPS:             -1, // tests must not wait for their own client
	}
	for file, id := range map[string]identity{
		c.Kubeconfig(): ids.admin, c.kubeconfig(ControllerManager): ids.manager, c.kubeconfig(Scheduler): ids.scheduler,
	} {
		if err := writeKubeconfig(file, host, c.authority.pem, id); err != nil {
			return err
		}
	}
	if o.Address != nil {
		c.server = "https://" + net.JoinHostPort(o.Address.String(), strconv.Itoa(at.api))
	}
	etcd := fmt.Sprintf("https://127.0.0.1:%d", at.etcd)
	c.etcd = c.etcdComponent(at, etcd, ids)
	c.apiServer, c.apiPort = c.apiServerComponent(at, etcd, ids, o), at.api
	c.controllerManager = c.controllerManagerComponent(at, ids)
	c.scheduler = c.schedulerComponent(at, ids)
	return nil
}

func (c *ControlPlane) issueIdentities(o Options) (ids identities, err error) {
	if c.authority, err = newAuthority(c.dir); err != nil {
		return ids, err
	}
	addresses := []net.IP{net.IPv4(127, 0, 0, 1), net.IPv4(10, 96, 0, 1)}
	if o.Address != nil {
		addresses = append(addresses, o.Address)
	}
	names := []string{"localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc"}
	for _, i := range []struct {
		id         *identity
		file, user string
		groups     []string
	}{
		{&ids.store, Etcd, "etcd", nil},
		{&ids.server, APIServer, "kube-apiserver", nil},
		{&ids.accounts, "service-accounts", "service-accounts", nil},
		{&ids.frontProxy, "front-proxy", "front-proxy-client", nil},
		{&ids.admin, "admin", "admin", []string{"system:masters"}},
		{&ids.manager, ControllerManager, "system:kube-controller-manager", nil},
		{&ids.scheduler, Scheduler, "system:kube-scheduler", nil},
		{&ids.kubelets, "kubelet-client", "kube-apiserver-kubelet-client", []string{"system:masters"}},
	} {
		if *i.id, err = c.authority.issue(i.file, i.user, i.groups, addresses, names); err != nil {
			return ids, err
		}
	}
	return ids, nil
}

func (c *ControlPlane) etcdComponent(at ports, url string, ids identities) component {
	peer := fmt.Sprintf("https://127.0.0.1:%d", at.peer)
	return component{name: Etcd, ready: url + "/readyz", args: []string{
		"--data-dir=" + filepath.Join(c.dir, "etcd"),
		"--unsafe-no-fsync", // nothing has to survive
		"--listen-client-urls=" + url, "--advertise-client-urls=" + url,
		"--listen-peer-urls=" + peer, "--initial-advertise-peer-urls=" + peer, "--initial-cluster=default=" + peer,
		// Certificates also distinguish this etcd from another one at the same port.
		"--cert-file=" + ids.store.certFile, "--key-file=" + ids.store.keyFile,
		"--trusted-ca-file=" + c.authority.certFile(), "--client-cert-auth",
		"--peer-cert-file=" + ids.store.certFile, "--peer-key-file=" + ids.store.keyFile,
		"--peer-trusted-ca-file=" + c.authority.certFile(), "--peer-client-cert-auth",
	}}
}

func (c *ControlPlane) apiServerComponent(at ports, etcd string, ids identities, o Options) component {
	ca := c.authority.certFile()
	args := []string{
		"--etcd-servers=" + etcd, "--etcd-cafile=" + ca,
		"--etcd-certfile=" + ids.store.certFile, "--etcd-keyfile=" + ids.store.keyFile,
		fmt.Sprintf("--secure-port=%d", at.api),
		"--tls-cert-file=" + ids.server.certFile, "--tls-private-key-file=" + ids.server.keyFile,
		"--client-ca-file=" + ca,
		"--service-account-issuer=https://kubernetes.default.svc",
		"--service-account-key-file=" + ids.accounts.certFile, "--service-account-signing-key-file=" + ids.accounts.keyFile,
		"--authorization-mode=Node,RBAC", "--enable-admission-plugins=NodeRestriction",
		"--service-cluster-ip-range=10.96.0.0/16", "--allow-privileged=true",
		"--requestheader-client-ca-file=" + ca, "--requestheader-allowed-names=front-proxy-client",
		"--requestheader-username-headers=X-Remote-User", "--requestheader-group-headers=X-Remote-Group",
		"--requestheader-extra-headers-prefix=X-Remote-Extra-",
		"--proxy-client-cert-file=" + ids.frontProxy.certFile, "--proxy-client-key-file=" + ids.frontProxy.keyFile,
		"--profiling=false",
	}
	if o.Address == nil {
		// Endpoints must not have a loopback address, so the Service "kubernetes" has none.
		args = append(args, "--bind-address=127.0.0.1", "--endpoint-reconciler-type=none")
	} else {
		args = append(args, "--bind-address=0.0.0.0", "--advertise-address="+o.Address.String(),
			"--kubelet-client-certificate="+ids.kubelets.certFile, "--kubelet-client-key="+ids.kubelets.keyFile,
			"--kubelet-certificate-authority="+ca, "--kubelet-preferred-address-types=InternalIP")
	}
	if !o.Controllers { // without controllers, pods would lack the account "default"
		args = append(args, "--disable-admission-plugins=ServiceAccount")
	}
	return component{name: APIServer, ready: fmt.Sprintf("https://127.0.0.1:%d/readyz", at.api), args: args}
}

func (c *ControlPlane) controllerManagerComponent(at ports, ids identities) component {
	ca := c.authority.certFile()
	return component{name: ControllerManager, ready: fmt.Sprintf("https://127.0.0.1:%d/healthz", at.manager), args: []string{
		"--kubeconfig=" + c.kubeconfig(ControllerManager),
		"--bind-address=127.0.0.1", fmt.Sprintf("--secure-port=%d", at.manager),
		"--tls-cert-file=" + ids.manager.certFile, "--tls-private-key-file=" + ids.manager.keyFile,
		"--use-service-account-credentials=true", "--service-account-private-key-file=" + ids.accounts.keyFile,
		"--root-ca-file=" + ca, "--requestheader-client-ca-file=" + ca,
		"--cluster-signing-cert-file=" + ca, "--cluster-signing-key-file=" + c.authority.keyFile(),
		"--leader-elect=false", "--profiling=false",
		"--controllers=*,-node-ipam-controller,-cloud-node-lifecycle-controller",
		// At the default rate, the first service account comes after five seconds.
		"--kube-api-qps=1000", "--kube-api-burst=2000",
	}}
}

func (c *ControlPlane) schedulerComponent(at ports, ids identities) component {
	return component{name: Scheduler, ready: fmt.Sprintf("https://127.0.0.1:%d/readyz", at.scheduler), args: []string{
		"--kubeconfig=" + c.kubeconfig(Scheduler),
		"--bind-address=127.0.0.1", fmt.Sprintf("--secure-port=%d", at.scheduler),
		"--tls-cert-file=" + ids.scheduler.certFile, "--tls-private-key-file=" + ids.scheduler.keyFile,
		"--leader-elect=false", "--profiling=false",
	}}
}
