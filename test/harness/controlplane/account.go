package controlplane

import (
	"context"
	"fmt"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// tokenLife is longer than any test takes.
const tokenLife = 12 * time.Hour

// AccountKubeconfig writes a kubeconfig of a service account, and returns its path: for
// programs that run beside the cluster with the rights of their pods. Where a node is
// given, the token says so, as that of a pod on that node does.
func (c *ControlPlane) AccountKubeconfig(ctx context.Context, namespace, account string, node *corev1.Node) (string, error) {
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{
		ExpirationSeconds: new(int64(tokenLife / time.Second)),
	}}
	file := account
	if node != nil {
		file += "-" + node.Name
		request.Spec.BoundObjectRef = &authenticationv1.BoundObjectReference{Kind: "Node", APIVersion: "v1", Name: node.Name, UID: node.UID}
	}
	cluster, err := kubernetes.NewForConfig(c.Config)
	if err != nil {
		return "", err
	}
	request, err = cluster.CoreV1().ServiceAccounts(namespace).CreateToken(ctx, account, request, metav1.CreateOptions{})
	if err != nil {
		return "", fmt.Errorf("asking for a token of service account %s/%s: %w", namespace, account, err)
	}
	config := clientcmdapi.NewConfig()
	config.Clusters["stock"] = &clientcmdapi.Cluster{Server: c.Config.Host, CertificateAuthorityData: c.Config.CAData}
	config.AuthInfos[account] = &clientcmdapi.AuthInfo{Token: request.Status.Token}
	config.Contexts["stock"] = &clientcmdapi.Context{Cluster: "stock", AuthInfo: account}
	config.CurrentContext = "stock"
	content, err := clientcmd.Write(*config)
	if err != nil {
		return "", fmt.Errorf("writing the kubeconfig of service account %s/%s: %w", namespace, account, err)
	}
	return c.writeKubeconfig(file, content)
}
