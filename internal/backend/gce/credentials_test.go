package gce

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"net/http"
	"strings"
	"sync"
	"testing"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/backend/gce/transport"
	"github.com/stowage-dev/stowage/internal/gcemock"
)

func withSecret(spec *stowagev1alpha1.GCEBackend) {
	spec.CredentialsSecret = &stowagev1alpha1.SecretReference{Name: "gce-key"}
}

// keyFor makes a service account key with its token endpoint. The key has no rights.
func keyFor(t *testing.T, tokens, keyType string) []byte {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	encoded, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(map[string]string{
		"type": keyType, "project_id": project, "client_email": "test@" + project + ".iam.gserviceaccount.com",
		"private_key_id": "1", "token_uri": tokens,
		"private_key": string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: encoded})),
	})
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// tokens is where the world's keys are exchanged for tokens.
func (w *world) tokens() string { return strings.TrimSuffix(w.url, transport.BasePath) + "/token" }

// signatures collects what calls of the API were signed with.
func (w *world) signatures() func() map[string]int {
	var mu sync.Mutex
	signed := map[string]int{}
	w.plans(func(request *http.Request) fate {
		mu.Lock()
		defer mu.Unlock()
		if strings.HasPrefix(request.URL.Path, transport.BasePath) {
			signed[request.Header.Get("Authorization")]++
		} else {
			signed[request.URL.Path]++
		}
		return served
	})
	return func() map[string]int {
		mu.Lock()
		defer mu.Unlock()
		before := signed
		signed = map[string]int{}
		return before
	}
}

func TestCallsAreSignedWithTheKeyInTheSecret(t *testing.T) {
	w := newWorld(t)
	w.keys.set(keyFor(t, w.tokens(), "service_account"), "1", nil)
	signatures := w.signatures()
	w.must(w.open(withSecret).Probe(t.Context()))
	if signed := signatures(); signed["/token"] != 1 || signed["Bearer any"] < 2 || len(signed) != 2 {
		t.Errorf("it signatures %v", signed)
	}
	// The token is kept for as long as the Secret stays the same.
	w.must(w.open(withSecret).Probe(t.Context()))
	if signed := signatures(); signed["/token"] != 0 || len(signed) != 1 {
		t.Errorf("then it signatures %v", signed)
	}
	w.keys.set(keyFor(t, w.tokens(), "service_account"), "2", nil)
	w.must(w.open(withSecret).Probe(t.Context()))
	if signed := signatures(); signed["/token"] != 1 {
		t.Errorf("with a new key it signatures %v", signed)
	}
	if w.keys.reads != 3 {
		t.Errorf("the Secret was read %d times", w.keys.reads)
	}
}

func TestWithoutASecretAMockIsCalledUnsigned(t *testing.T) {
	w := newWorld(t)
	signatures := w.signatures()
	w.must(w.open().Probe(t.Context()))
	if signed := signatures(); signed[""] < 2 || len(signed) != 1 || w.keys.reads > 0 {
		t.Errorf("it signatures %v, after %d reads of Secrets", signed, w.keys.reads)
	}
}

func TestASecretThatIsTakenAwayEndsAllCalls(t *testing.T) {
	w := newWorld(t)
	w.keys.set(keyFor(t, w.tokens(), "service_account"), "1", nil)
	on := w.open(withSecret)
	w.must(on.Probe(t.Context()))
	w.keys.set(nil, "", backend.Unavailable.Errorf("there is no Secret gce-key: create it"))
	signatures := w.signatures()
	w.mustBe(on.Probe(t.Context()), backend.Unavailable, "there is no Secret gce-key")
	if signed := signatures(); len(signed) > 0 {
		t.Errorf("it signatures %v", signed)
	}
}

func TestInvalidKeysAreReported(t *testing.T) {
	w := newWorld(t)
	for name, test := range map[string]struct {
		key  []byte
		says string
	}{
		"no JSON":                    {[]byte("hunter2"), "is no service account key"},
		"nothing":                    {nil, "is no service account key"},
		"a key of another type":      {keyFor(t, w.tokens(), "authorized_user"), "is no service account key"},
		"one that runs programs":     {[]byte(`{"type":"external_account","audience":"x","credential_source":{"executable":{"command":"/bin/true"}}}`), "is no service account key"},
		"one whose token is refused": {keyFor(t, strings.TrimSuffix(w.url, transport.BasePath)+"/none", "service_account"), "signing in with the key in Secret gce-key goes wrong"},
		"one whose host is down":     {keyFor(t, "http://127.0.0.1:9/token", "service_account"), "signing in with the key in Secret gce-key goes wrong"},
	} {
		t.Run(name, func(t *testing.T) {
			w.keys.set(test.key, name, nil)
			for _, err := range []error{
				w.open(withSecret).Probe(t.Context()),
				func() error { return w.open(withSecret).Delete(t.Context(), "pvc-1") }(),
			} {
				w.mustBe(err, backend.Unavailable, test.says)
				if strings.Contains(err.Error(), "hunter2") || strings.Contains(err.Error(), "PRIVATE KEY") {
					t.Errorf("the error contains the key: %v", err)
				}
			}
		})
	}
}

func TestATokenThatIsNotAcceptedIsReported(t *testing.T) {
	w := newWorld(t, func(options *gcemock.Options) { options.Token = "secret" })
	w.mustBe(w.open().Probe(t.Context()), backend.Unavailable, "a call without credentials isn't accepted: renew it, or set gce.credentialsSecret")
}
