package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"time"
)

// certificateLife is how long a certificate of our own is valid: longer than any test.
const certificateLife = 30 * 24 * time.Hour

// tlsConfig is how HTTPS is served; nil: it is not.
func (o options) tlsConfig() (*tls.Config, error) {
	var certificate tls.Certificate
	var err error
	switch {
	case o.tlsSelfSigned != "":
		certificate, err = selfSigned(o.tlsSelfSigned, time.Now())
	case o.tlsCertificate != "":
		certificate, err = tls.LoadX509KeyPair(o.tlsCertificate, o.tlsKey)
	default:
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return &tls.Config{Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS12}, nil
}

// selfSigned makes a certificate for loopback and this machine's name, and writes it to
// a file, for clients to trust. Its key stays in this process.
func selfSigned(file string, now time.Time) (tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, err
	}
	host, err := os.Hostname()
	if err != nil {
		return tls.Certificate{}, err
	}
	form := &x509.Certificate{
		SerialNumber: big.NewInt(now.UnixNano()), NotBefore: now.Add(-time.Hour), NotAfter: now.Add(certificateLife),
		DNSNames: []string{"localhost", host}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback},
		// Clients take it for the authority that signed it.
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
	}
	signed, err := x509.CreateCertificate(rand.Reader, form, form, key.Public(), key)
	if err != nil {
		return tls.Certificate{}, err
	}
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: signed})
	if err := os.WriteFile(file, text, 0o600); err != nil {
		return tls.Certificate{}, fmt.Errorf("writing the certificate: %w", err)
	}
	return tls.Certificate{Certificate: [][]byte{signed}, PrivateKey: key}, nil
}
