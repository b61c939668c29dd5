package stock_test

import (
	"context"
	"os"
	"path/filepath"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// tokenLife is longer than any test takes.
const tokenLife = 12 * time.Hour

// accountKubeconfig writes a kubeconfig of one of Stowage's service accounts, and returns its
// path: for programs that run beside the cluster with the rights of their pods. Where a node is
// given, the token says so, as that of a pod on that node does.
func (s *stowage) accountKubeconfig(ctx context.Context, account string, node *corev1.Node) string {
	GinkgoHelper()
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{
		ExpirationSeconds: new(int64(tokenLife / time.Second)),
	}}
	path := filepath.Join(s.dir, "kubeconfigs", account)
	if node != nil {
		path += "-" + node.Name
		request.Spec.BoundObjectRef = &authenticationv1.BoundObjectReference{Kind: "Node", APIVersion: "v1", Name: node.Name, UID: node.UID}
	}
	cluster, err := kubernetes.NewForConfig(plane.Config)
	Expect(err).NotTo(HaveOccurred())
	request, err = cluster.CoreV1().ServiceAccounts(namespace).CreateToken(ctx, account, request, metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
	config := clientcmdapi.NewConfig()
	config.Clusters["stock"] = &clientcmdapi.Cluster{Server: plane.Config.Host, CertificateAuthorityData: plane.Config.CAData}
	config.AuthInfos[account] = &clientcmdapi.AuthInfo{Token: request.Status.Token}
	config.Contexts["stock"] = &clientcmdapi.Context{Cluster: "stock", AuthInfo: account}
	config.CurrentContext = "stock"
	content, err := clientcmd.Write(*config)
	Expect(err).NotTo(HaveOccurred())
	Expect(os.WriteFile(path, content, 0o600)).To(Succeed())
	return path
}
