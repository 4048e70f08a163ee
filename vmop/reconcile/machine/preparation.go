package machine

import (
	"fmt"
	"strings"

	"github.com/vmop/sdk/vmop/names"
)

// Kinds of objects that a namespace may lack.
const (
	kindServiceAccount = "ServiceAccount"
	kindRoleBinding    = "RoleBinding"
)

// The commands that docs/install.md has for a namespace.
func createAccount(namespace string) string {
	return "kubectl create serviceaccount " + names.ServiceAccount + " -n " + namespace
}

func bindRunner(namespace string) string {
	return fmt.Sprintf("kubectl create rolebinding vmop-machines-runner -n %[1]s --clusterrole=vmop-runner --serviceaccount=%[1]s:%[2]s", namespace, names.ServiceAccount)
}

func bindOperator(namespace, user string) string {
	return "kubectl create rolebinding " + names.OperatorBinding + " -n " + namespace + " --clusterrole=vmop-operator-machines " + asSubject(user)
}

func asSubject(user string) string {
	if account, is := strings.CutPrefix(user, "system:serviceaccount:"); is {
		return "--serviceaccount=" + account
	}
	return "--user=" + user
}

func createRepository(namespace string) string {
	return "kubectl apply -n " + namespace + " -k github.com/vmop/sdk/deploy/image-repository"
}

func bindCleaner(namespace, user string) string {
	return "kubectl create rolebinding " + names.ClaimsBinding + " -n " + namespace + " --clusterrole=vmop-operator-claims " + asSubject(user)
}
