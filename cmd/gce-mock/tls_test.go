package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/api/compute/v1"
)

func TestItServesHTTPSWithACertificateOfItsOwn(t *testing.T) {
	certificate, key, pool := newCertificate(t)
	_, service := start(t, "--folder", t.TempDir(), "--tls-cert", certificate, "--tls-key", key)
	linksAreSecure(t, pool, service)
}

// linksAreSecure checks that a client that trusts the pool gets links with https.
func linksAreSecure(t *testing.T, pool *x509.CertPool, service *compute.Service) {
	t.Helper()
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}}}
	answer, err := client.Get(service.BasePath + "projects/demo/zones")
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	text := new(strings.Builder)
	if err := answer.Write(text); err != nil || !strings.Contains(text.String(), `"https://127.0.0.1:`) {
		t.Errorf("it answers %s %v", text, err)
	}
}

func TestItServesHTTPSWithACertificateThatItMakes(t *testing.T) {
	file := filepath.Join(t.TempDir(), "cloud.crt")
	_, service := start(t, "--folder", t.TempDir(), "--tls-self-signed", file)
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(text)
	linksAreSecure(t, pool, service)
}

// newCertificate makes files with a certificate for this machine and its key.
func newCertificate(t *testing.T) (certificate, key string, pool *x509.CertPool) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	form := &x509.Certificate{
		SerialNumber: big.NewInt(1), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, NotAfter: time.Now().Add(time.Hour),
	}
	signed, err := x509.CreateCertificate(rand.Reader, form, form, private.Public(), private)
	if err != nil {
		t.Fatal(err)
	}
	encoded, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: signed})
	pool = x509.NewCertPool()
	pool.AppendCertsFromPEM(text)
	return write(t, "tls.crt", text), write(t, "tls.key", pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: encoded})), pool
}

func write(t *testing.T, name string, text []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}
