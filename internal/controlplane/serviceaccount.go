package controlplane

import (
	"context"
	"fmt"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// tokenSeconds is the validity of service accounts' tokens, in seconds.
const tokenSeconds = 24 * 60 * 60

// ServiceAccount creates a service account with a cluster role in the namespace default, and
// returns its configuration and a kubeconfig file with it.
//
// Programs in a cluster are service accounts. An API server that has just started must first learn
// their rights, and it caches their tokens, while it verifies a client certificate, such as that of
// [ControlPlane.Config], with each request.
func (c *ControlPlane) ServiceAccount(ctx context.Context, name, clusterRole string) (config *rest.Config, kubeconfig string, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("control plane: service account %s: %w", name, err)
		}
	}()
	kube, err := kubernetes.NewForConfig(c.config)
	if err != nil {
		return nil, "", err
	}
	meta, accounts := metav1.ObjectMeta{Name: name}, kube.CoreV1().ServiceAccounts(metav1.NamespaceDefault)
	if _, err := accounts.Create(ctx, &corev1.ServiceAccount{ObjectMeta: meta}, metav1.CreateOptions{}); err != nil {
		return nil, "", err
	}
	if _, err := kube.RbacV1().ClusterRoleBindings().Create(ctx, &rbacv1.ClusterRoleBinding{
		ObjectMeta: meta,
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Name: name, Namespace: metav1.NamespaceDefault}},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: clusterRole},
	}, metav1.CreateOptions{}); err != nil {
		return nil, "", err
	}
	answer, err := accounts.CreateToken(ctx, name, &authenticationv1.TokenRequest{
		Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: new(int64(tokenSeconds))},
	}, metav1.CreateOptions{})
	if err != nil {
		return nil, "", fmt.Errorf("token: %w", err)
	}
	config = rest.AnonymousClientConfig(c.config)
	config.QPS, config.Burst, config.BearerToken = c.config.QPS, c.config.Burst, answer.Status.Token
	kubeconfig = c.kubeconfig("serviceaccount-" + name)
	return config, kubeconfig, clientcmd.WriteToFile(clientcmdapi.Config{
		Clusters:       map[string]*clientcmdapi.Cluster{name: {Server: config.Host, CertificateAuthority: config.CAFile, CertificateAuthorityData: config.CAData}},
		AuthInfos:      map[string]*clientcmdapi.AuthInfo{name: {Token: config.BearerToken}},
		Contexts:       map[string]*clientcmdapi.Context{name: {Cluster: name, AuthInfo: name}},
		CurrentContext: name,
	}, kubeconfig)
}
