package csi_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"strings"
	"testing"
	"time"

	csispec "github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/status"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/backend/backendtest"
)

func typeName(of any) string { return fmt.Sprintf("%T", of) }

func (w *world) probe(ctx context.Context) error { return w.Backend.(backend.Prober).Probe(ctx) }

func TestADriverIsReadyIfItIsTheOneAndCanMakeVolumes(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*world)
		kind   backend.ErrorKind
		says   string
	}{
		"another driver":       {func(w *world) { w.name = "other.example.com" }, backend.Invalid, `"other.example.com" and not ` + driverName},
		"one without volumes":  {func(w *world) { w.abilities = nil }, backend.Invalid, "CREATE_DELETE_VOLUME"},
		"one that isn't ready": {func(w *world) { w.unready = true }, backend.Unavailable, "isn't ready"},
		"one that is away":     {func(w *world) { w.server.Stop() }, backend.Unavailable, "csi.sock"},
		"one without its secret": {func(w *world) {
			w.object.Spec.CSI.Secrets.ControllerExpand = &stowagev1alpha1.SecretReference{Name: "absent"}
		}, backend.Unavailable, "no Secret absent"},
		"one as it must be": {func(*world) {}, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			test.change(w)
			w.open(t)
			err := w.probe(t.Context())
			if test.says == "" && err == nil {
				return
			}
			if err == nil || backend.KindOf(err) != test.kind || !strings.Contains(err.Error(), test.says) {
				t.Errorf("it has %v", err)
			}
		})
	}
}

func TestNoCallReachesADriverWithAnotherName(t *testing.T) {
	w := newWorld(t)
	if err := w.probe(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.server.Stop()
	w.mu.Lock()
	w.name = "other.example.com"
	w.mu.Unlock()
	w.start(t)
	err := until(t, func() error {
		_, err := w.Provision(t.Context(), backendtest.Request("1"))
		return err
	}, func(err error) bool { return errors.Is(err, backend.Invalid) })
	if !errors.Is(err, backend.Invalid) || len(did[*csispec.CreateVolumeRequest](w.driver)) > 0 {
		t.Errorf("it has %v", err)
	}
}

func TestADriverThatRestartsHasItsNewAbilities(t *testing.T) {
	w := newWorld(t)
	w.abilities = w.abilities[:2]
	if _, err := w.Provision(t.Context(), backendtest.Request("1")); err != nil {
		t.Fatal(err)
	}
	if _, err := w.expand(t.Context()); !errors.Is(err, backend.Invalid) {
		t.Fatalf("without the ability to grow it has %v", err)
	}
	w.server.Stop()
	w.mu.Lock()
	w.abilities = append(w.abilities, csispec.ControllerServiceCapability_RPC_EXPAND_VOLUME)
	w.mu.Unlock()
	w.start(t)
	err := until(t, func() error {
		_, err := w.expand(t.Context())
		return err
	}, succeeded)
	if err != nil {
		t.Errorf("after the restart it has %v", err)
	}
}

// until repeats a call until its answer is good. A client notices only after a while that its driver
// restarted.
func until(t *testing.T, call func() error, good func(error) bool) (err error) {
	t.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for range 3000 {
		if err = call(); good(err) {
			return err
		}
		<-tick.C
	}
	return err
}

func succeeded(err error) bool { return err == nil }

func (w *world) expand(ctx context.Context) (backend.Expansion, error) {
	return backend.Expand(ctx, w.Backend, backend.ExpandRequest{ID: backendtest.Request("1").ID, Capacity: resource.MustParse("5Mi")})
}

func TestAVolumeThatGrowsOnItsNodeAloneNeedsNoCall(t *testing.T) {
	w := newWorld(t)
	w.abilities, w.grows = w.abilities[:2], true
	expanded, err := w.expand(t.Context())
	if err != nil || !expanded.OnNode || expanded.Capacity.String() != "5Mi" {
		t.Errorf("it has %+v, %v", expanded, err)
	}
}

func TestASlowDriverHoldsACallNoLongerThanItsTimeout(t *testing.T) {
	w := newWorld(t)
	w.object.Spec.CSI.Timeout = metav1.Duration{Duration: 50 * time.Millisecond}
	w.open(t)
	if err := until(t, func() error { return w.probe(t.Context()) }, succeeded); err != nil {
		t.Fatal(err)
	}
	release := make(chan struct{})
	defer close(release)
	w.mu.Lock()
	w.before = func(any) error { <-release; return nil }
	w.mu.Unlock()
	// On a busy machine even the probe before it can take longer, and is repeated.
	err := until(t, func() error {
		_, err := w.Provision(t.Context(), backendtest.Request("1"))
		return err
	}, func(err error) bool { return err == nil || !strings.Contains(err.Error(), "Probe") })
	if !errors.Is(err, backend.InProgress) || !strings.Contains(err.Error(), "50ms") {
		t.Errorf("it has %v", err)
	}
}

func TestAVolumeThatIsUsedIsDeletedLater(t *testing.T) {
	w := newWorld(t)
	w.answersTo("DeleteVolume", status.Error(codes.FailedPrecondition, "it is used"))
	if err := w.Delete(t.Context(), "a"); !errors.Is(err, backend.InProgress) {
		t.Errorf("it has %v", err)
	}
}

func TestAVolumeIsAttachedAsItsObjectSays(t *testing.T) {
	w := newWorld(t)
	w.secrets["publisher"] = map[string][]byte{"key": []byte("hush")}
	w.object.Spec.CSI.Secrets.ControllerPublish = &stowagev1alpha1.SecretReference{Name: "publisher"}
	w.open(t)
	made, err := w.Provision(t.Context(), backendtest.Request("1"))
	if err != nil {
		t.Fatal(err)
	}
	attacher, node := w.Backend.(backend.Attacher), backend.NodeIdentity{Name: "a", DriverID: "id-a"}
	got, err := attacher.Attach(t.Context(), backend.AttachRequest{ID: made.Handle, Volume: volumeWith(made.Handle), Node: node})
	if err != nil || got.Metadata[backend.DeviceMetadata] == "" {
		t.Fatalf("it has %v, %v", got, err)
	}
	asked := did[*csispec.ControllerPublishVolumeRequest](w.driver)[0]
	if asked.GetNodeId() != "id-a" || asked.GetSecrets()["key"] != "hush" || asked.GetVolumeContext()["array"] != "a" ||
		asked.GetVolumeCapability().GetMount().GetFsType() != "ext4" {
		t.Errorf("requested is %v", asked)
	}
	if err := attacher.Detach(t.Context(), made.Handle, backend.NodeIdentity{Name: "a"}); !errors.Is(err, backend.NotReady) {
		t.Errorf("of a node without an id the detach has %v", err)
	}
	if err := attacher.Detach(t.Context(), made.Handle, node); err != nil || did[*csispec.ControllerUnpublishVolumeRequest](w.driver)[0].GetSecrets()["key"] != "hush" {
		t.Errorf("the detach has %v", err)
	}
}

func TestADriverThatAttachesNothingNeedsNoCall(t *testing.T) {
	w := newWorld(t)
	w.abilities = w.abilities[:1]
	attacher, node := w.Backend.(backend.Attacher), backend.NodeIdentity{Name: "a"}
	got, err := attacher.Attach(t.Context(), backend.AttachRequest{ID: "a", Node: node})
	if err != nil || len(got.Metadata) > 0 {
		t.Errorf("the attach has %v, %v", got, err)
	}
	if err := attacher.Detach(t.Context(), "a", node); err != nil {
		t.Errorf("the detach has %v", err)
	}
	if is, err := attacher.IsAttached(t.Context(), "a", node); is || err != nil {
		t.Errorf("it is attached: %t, %v", is, err)
	}
}

func TestAVolumeMayBeAttachedIfTheDriverListsNone(t *testing.T) {
	w := newWorld(t)
	w.abilities = w.abilities[:2]
	if is, err := w.Backend.(backend.Attacher).IsAttached(t.Context(), "a", backend.NodeIdentity{Name: "a", DriverID: "id-a"}); !is || err != nil {
		t.Errorf("it is attached: %t, %v", is, err)
	}
}

func TestADriverElsewhereIsReachedWithCertificatesOnBothSides(t *testing.T) {
	w := newWorld(t)
	w.server.Stop()
	authority, key := certificate(t, nil, nil, "authority")
	pool := x509.NewCertPool()
	pool.AddCert(authority)
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ofDriver, driverKey := certificate(t, authority, key, "driver")
	w.serve(listener, grpc.Creds(credentials.NewTLS(&tls.Config{
		MinVersion: tls.VersionTLS12, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: pool,
		Certificates: []tls.Certificate{{Certificate: [][]byte{ofDriver.Raw}, PrivateKey: driverKey}},
	})))
	ofManager, managerKey := certificate(t, authority, key, "manager")
	encoded, err := x509.MarshalECPrivateKey(managerKey)
	if err != nil {
		t.Fatal(err)
	}
	w.secrets["tls"] = map[string][]byte{
		"tls.crt": inPEM("CERTIFICATE", ofManager.Raw), "tls.key": inPEM("EC PRIVATE KEY", encoded), "ca.crt": inPEM("CERTIFICATE", authority.Raw),
	}
	w.object.Spec.CSI.Endpoint, w.object.Spec.CSI.TLSSecret = "tcp://"+listener.Addr().String(), &stowagev1alpha1.SecretReference{Name: "tls"}
	w.open(t)
	if err := w.probe(t.Context()); err != nil {
		t.Errorf("it has %v", err)
	}
	strange, _ := certificate(t, nil, nil, "another authority")
	w.secrets["tls"] = map[string][]byte{
		"tls.crt": w.secrets["tls"]["tls.crt"], "tls.key": w.secrets["tls"]["tls.key"], "ca.crt": inPEM("CERTIFICATE", strange.Raw),
	}
	if err := w.probe(t.Context()); !errors.Is(err, backend.Unavailable) {
		t.Errorf("with another authority it has %v", err)
	}
	w.secrets["tls"] = map[string][]byte{}
	if err := w.probe(t.Context()); !errors.Is(err, backend.Invalid) {
		t.Errorf("without certificates it has %v", err)
	}
}

// certificate makes a certificate for the loopback address, signed by an authority or by itself.
func certificate(t *testing.T, by *x509.Certificate, byKey *ecdsa.PrivateKey, name string) (*x509.Certificate, *ecdsa.PrivateKey) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, NotAfter: time.Now().Add(time.Hour), IsCA: by == nil,
		BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	if by == nil {
		by, byKey = template, key
	}
	raw, err := x509.CreateCertificate(rand.Reader, template, by, &key.PublicKey, byKey)
	if err != nil {
		t.Fatal(err)
	}
	made, err := x509.ParseCertificate(raw)
	if err != nil {
		t.Fatal(err)
	}
	return made, key
}

func inPEM(kind string, content []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: content})
}

func TestTheIDOfAVolumeMayLookLikeThePathOfADisk(t *testing.T) {
	w := newWorld(t)
	const id = "projects/demo/zones/europe-west3-a/disks/data"
	w.volumes[id] = &disk{made: &csispec.Volume{VolumeId: id}, published: map[string]bool{}}
	attacher, node := w.Backend.(backend.Attacher), backend.NodeIdentity{Name: "a", DriverID: "id-a"}
	if _, err := attacher.Attach(t.Context(), backend.AttachRequest{ID: id, Volume: volumeWith(id), Node: node}); err != nil || len(w.volumes[id].published) != 1 {
		t.Errorf("the attach has %v", err)
	}
	if err := attacher.Detach(t.Context(), id, node); err != nil || len(w.volumes[id].published) > 0 {
		t.Errorf("the detach has %v", err)
	}
}
