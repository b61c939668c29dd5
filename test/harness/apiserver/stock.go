package apiserver

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"sigs.k8s.io/controller-runtime/pkg/envtest"
)

const (
	// ServiceRange is where the Services of a stock cluster have their addresses.
	ServiceRange = "10.96.0.0/16"
	// ServiceAddress is the one at which pods look for the API server.
	ServiceAddress = "10.96.0.1"

	// AuthorityFile is, in the folder of certificates of a stock server, the authority that
	// signed the API server's certificate, and that with which it calls kubelets.
	AuthorityFile = "ca.crt"
	// AccountKeyFile is, there, the key of the tokens of service accounts.
	AccountKeyFile = "sa-signer.key"

	kubeletClient = "kubelet-client"
)

// configureStock has the server do what a whole Kubernetes needs: pods are service
// accounts, find the server as the Service kubernetes, and kubelets are called as the
// server's own user, which ca.crt proves to them.
func configureStock(server *envtest.APIServer, options Options) error {
	if options.CertDir == "" {
		return errors.New("a stock server keeps its certificates: name the folder")
	}
	authority, err := newAuthority(options.CertDir)
	if err != nil {
		return err
	}
	address := cmp.Or(options.Address, "127.0.0.1")
	err = errors.Join(
		authority.issue("apiserver", serving("kubernetes", "kubernetes.default", "kubernetes.default.svc",
			"kubernetes.default.svc.cluster.local", "localhost", "127.0.0.1", ServiceAddress, address)),
		authority.issue(kubeletClient, clientOf(kubeletClient, "system:masters")),
		// The server reads the public half of it from the certificate.
		authority.issue("sa-signer", clientOf("service-accounts", "")),
	)
	if err != nil {
		return err
	}
	if server.CA, err = os.ReadFile(filepath.Join(options.CertDir, AuthorityFile)); err != nil {
		return fmt.Errorf("reading the authority's certificate: %w", err)
	}
	server.Configure().
		Disable("disable-admission-plugins").
		Set("service-cluster-ip-range", ServiceRange).
		Set("service-account-issuer", "https://kubernetes.default.svc.cluster.local").
		Set("kubelet-client-certificate", filepath.Join(options.CertDir, kubeletClient+".crt")).
		Set("kubelet-client-key", filepath.Join(options.CertDir, kubeletClient+".key")).
		Set("kubelet-preferred-address-types", "InternalIP,Hostname")
	if options.Address != "" {
		// Of loopback no Service may have an endpoint. There is no kube-proxy: what calls the
		// address of the Service kubernetes gets the server itself.
		server.Configure().Set("advertise-address", address).Set("bind-address", "0.0.0.0")
	}
	return nil
}
