package apiserver

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"
)

// validity is how long certificates are good for: longer than any test, and than
// most clusters of `make run`.
const validity = 30 * 24 * time.Hour

// authority signs certificates that are all of one folder.
type authority struct {
	folder      string
	key         *ecdsa.PrivateKey
	certificate *x509.Certificate
	serial      int64
}

// newAuthority makes one, and writes its certificate to the folder's AuthorityFile.
func newAuthority(folder string) (*authority, error) {
	a := &authority{folder: folder}
	template := &x509.Certificate{
		Subject: pkix.Name{CommonName: "stowage-test"}, IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
	}
	var err error
	if a.key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader); err != nil {
		return nil, fmt.Errorf("making the key of an authority: %w", err)
	}
	if a.certificate, err = a.sign(template, a.key); err != nil {
		return nil, err
	}
	if err := a.write(AuthorityFile, "CERTIFICATE", a.certificate.Raw); err != nil {
		return nil, err
	}
	return a, nil
}

// issue writes a certificate and its key to NAME.crt and NAME.key.
func (a *authority) issue(name string, template *x509.Certificate) error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return fmt.Errorf("making the key of %s: %w", name, err)
	}
	certificate, err := a.sign(template, key)
	if err != nil {
		return err
	}
	if err := a.write(name+".crt", "CERTIFICATE", certificate.Raw); err != nil {
		return err
	}
	private, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return fmt.Errorf("encoding the key of %s: %w", name, err)
	}
	return a.write(name+".key", "EC PRIVATE KEY", private)
}

// serving is a certificate for a server of these names and addresses.
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

// clientOf is a certificate for a user in a group.
func clientOf(user, group string) *x509.Certificate {
	return &x509.Certificate{
		Subject: pkix.Name{CommonName: user, Organization: []string{group}}, KeyUsage: x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
}

func (a *authority) sign(template *x509.Certificate, key *ecdsa.PrivateKey) (*x509.Certificate, error) {
	a.serial++
	template.SerialNumber = big.NewInt(a.serial)
	template.NotBefore, template.NotAfter = time.Now().Add(-time.Hour), time.Now().Add(validity)
	parent := a.certificate
	if parent == nil {
		parent = template
	}
	signed, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, a.key)
	if err != nil {
		return nil, fmt.Errorf("signing the certificate of %s: %w", template.Subject.CommonName, err)
	}
	return x509.ParseCertificate(signed)
}

func (a *authority) write(name, kind string, content []byte) error {
	encoded := pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: content})
	if err := os.WriteFile(filepath.Join(a.folder, name), encoded, 0o600); err != nil {
		return fmt.Errorf("writing a certificate: %w", err)
	}
	return nil
}
