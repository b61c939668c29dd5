package apiserver

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"time"

	"k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/keyutil"
)

// validity is how long certificates are good for: longer than any test, and than
// most clusters of `make run`.
const validity = 30 * 24 * time.Hour

type authority struct {
	folder      string
	key         *ecdsa.PrivateKey
	certificate *x509.Certificate
}

func newAuthority(folder string) (a *authority, err error) {
	a = &authority{folder: folder}
	if a.key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader); err != nil {
		return nil, fmt.Errorf("making the key of an authority: %w", err)
	}
	if a.certificate, err = cert.NewSelfSignedCACert(cert.Config{CommonName: "stowage-test"}, a.key); err != nil {
		return nil, fmt.Errorf("making an authority: %w", err)
	}
	err = a.write(AuthorityFile, a.certificate.Raw)
	return a, err
}

func (a *authority) issue(name string, template *x509.Certificate) error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return fmt.Errorf("making the key of %s: %w", name, err)
	}
	private, err := keyutil.MarshalPrivateKeyToPEM(key)
	if err != nil {
		return fmt.Errorf("encoding the key of %s: %w", name, err)
	}
	template.NotBefore, template.NotAfter = a.certificate.NotBefore, time.Now().Add(validity)
	signed, err := x509.CreateCertificate(rand.Reader, template, a.certificate, &key.PublicKey, a.key)
	if err != nil {
		return fmt.Errorf("signing the certificate of %s: %w", name, err)
	}
	return errors.Join(a.write(name+".crt", signed), keyutil.WriteKey(filepath.Join(a.folder, name+".key"), private))
}

func (a *authority) write(name string, certificate []byte) error {
	encoded := pem.EncodeToMemory(&pem.Block{Type: cert.CertificateBlockType, Bytes: certificate})
	return cert.WriteCert(filepath.Join(a.folder, name), encoded)
}

func serving(hosts ...string) *x509.Certificate {
	template := &x509.Certificate{
		Subject: pkix.Name{CommonName: hosts[0]}, KeyUsage: x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	for _, host := range hosts {
		if address := net.ParseIP(host); address != nil {
			template.IPAddresses = append(template.IPAddresses, address)
		} else {
			template.DNSNames = append(template.DNSNames, host)
		}
	}
	return template
}

func clientOf(user, group string) *x509.Certificate {
	return &x509.Certificate{
		Subject: pkix.Name{CommonName: user, Organization: []string{group}}, KeyUsage: x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
}
