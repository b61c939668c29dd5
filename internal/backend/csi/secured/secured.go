// Package secured makes the credentials of a TLS connection to a driver from a Secret.
package secured

import (
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"net"
	"strings"

	"google.golang.org/grpc/credentials"

	"github.com/stowage-dev/stowage/internal/backend"
)

// TCPScheme begins the endpoints that a certificate can be for.
const TCPScheme = "tcp://"

// From returns how a connection to an endpoint is secured by the certificates in a Secret of this name, and what
// distinguishes them from others. An error is of kind Invalid.
func From(data map[string][]byte, name, endpoint string) (credentials.TransportCredentials, string, error) {
	certificate, err := tls.X509KeyPair(data["tls.crt"], data["tls.key"])
	if err != nil {
		return nil, "", backend.Invalid.Errorf("Secret %s has no certificate that can be used in tls.crt and tls.key: %w", name, err)
	}
	authorities := x509.NewCertPool()
	if !authorities.AppendCertsFromPEM(data["ca.crt"]) {
		return nil, "", backend.Invalid.Errorf("Secret %s has no certificate of the driver's authority in ca.crt", name)
	}
	host, _, err := net.SplitHostPort(strings.TrimPrefix(endpoint, TCPScheme))
	if err != nil {
		return nil, "", backend.Invalid.Errorf("csi.endpoint %s has no port: %w", endpoint, err)
	}
	sum := sha256.New()
	for _, key := range []string{"tls.crt", "tls.key", "ca.crt"} {
		sum.Write(data[key])
		sum.Write([]byte{0})
	}
	return credentials.NewTLS(&tls.Config{
		MinVersion: tls.VersionTLS12, ServerName: host, Certificates: []tls.Certificate{certificate}, RootCAs: authorities,
	}), string(sum.Sum(nil)), nil
}
