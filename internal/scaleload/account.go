package main

import (
	"context"
	"fmt"
	"path/filepath"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// account makes a service account that may do anything, and returns its configuration. In a
// cluster operators, controllers and runners have tokens, which an API server remembers; a
// client's certificate it verifies anew with each request, which is more than a twentieth
// of what such a request takes.
func account(ctx context.Context, admin *rest.Config) (*rest.Config, error) {
	kube, err := kubernetes.NewForConfig(admin)
	if err != nil {
		return nil, err
	}
	const name = "scaleload"
	meta := metav1.ObjectMeta{Name: name}
	if _, err := kube.CoreV1().ServiceAccounts(metav1.NamespaceDefault).Create(ctx, &corev1.ServiceAccount{ObjectMeta: meta}, metav1.CreateOptions{}); err != nil {
		return nil, err
	}
	if _, err := kube.RbacV1().ClusterRoleBindings().Create(ctx, &rbacv1.ClusterRoleBinding{
		ObjectMeta: meta,
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Name: name, Namespace: metav1.NamespaceDefault}},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
	}, metav1.CreateOptions{}); err != nil {
		return nil, err
	}
	day := int64(24 * 60 * 60)
	answer, err := kube.CoreV1().ServiceAccounts(metav1.NamespaceDefault).CreateToken(ctx, name, &authenticationv1.TokenRequest{
		Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: &day},
	}, metav1.CreateOptions{})
	if err != nil {
		return nil, fmt.Errorf("token of %s: %w", name, err)
	}
	out := rest.AnonymousClientConfig(admin)
	out.QPS, out.Burst, out.BearerToken = admin.QPS, admin.Burst, answer.Status.Token
	return out, nil
}

// writeKubeconfig writes a configuration with a token into a directory, and returns the
// file.
func writeKubeconfig(dir string, c *rest.Config) (string, error) {
	file := filepath.Join(dir, "kubeconfig")
	err := clientcmd.WriteToFile(clientcmdapi.Config{
		Clusters:       map[string]*clientcmdapi.Cluster{"load": {Server: c.Host, CertificateAuthority: c.CAFile, CertificateAuthorityData: c.CAData}},
		AuthInfos:      map[string]*clientcmdapi.AuthInfo{"load": {Token: c.BearerToken}},
		Contexts:       map[string]*clientcmdapi.Context{"load": {Cluster: "load", AuthInfo: "load"}},
		CurrentContext: "load",
	}, file)
	return file, err
}
