package main

import (
	"context"
	"errors"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/stowage-dev/stowage/internal/backend"
)

func TestKeysAreReadFromTheManagersOwnNamespace(t *testing.T) {
	elsewhere := secretWith("gce-key", keyName, "theirs")
	elsewhere.Namespace = "team-a"
	cluster := fake.NewClientBuilder().WithObjects(secretWith("gce-key", keyName, "ours"), elsewhere).Build()
	own := keys{live: cluster, namespace: "stowage-system"}
	key, version, err := own.Key(t.Context(), "gce-key")
	if err != nil || string(key) != "ours" || version == "" {
		t.Fatalf("it read %q, version %q: %v", key, version, err)
	}
	changed := &corev1.Secret{}
	if err := cluster.Get(t.Context(), client.ObjectKey{Namespace: "stowage-system", Name: "gce-key"}, changed); err != nil {
		t.Fatal(err)
	}
	changed.Data[keyName] = []byte("newer")
	if err := cluster.Update(t.Context(), changed); err != nil {
		t.Fatal(err)
	}
	if key, now, err := own.Key(t.Context(), "gce-key"); err != nil || string(key) != "newer" || now == version {
		t.Errorf("then it read %q, version %q: %v", key, now, err)
	}
}

func TestKeysThatAreNotThereAreToldSo(t *testing.T) {
	cluster := fake.NewClientBuilder().WithObjects(secretWith("other", "key", "x"), secretWith("empty", keyName, "")).Build()
	refusing := func(err error) client.Reader {
		return interceptor.NewClient(cluster, interceptor.Funcs{
			Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
				return err
			},
		})
	}
	forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "secrets"}, "gce-key", nil)
	for name, test := range map[string]struct {
		keys   keys
		secret string
		says   string
	}{
		"no Secret":        {keys{cluster, "stowage-system"}, "gce-key", "kubectl create secret generic gce-key -n stowage-system --from-file=key.json=FILE"},
		"no key in it":     {keys{cluster, "stowage-system"}, "other", "has no key.json"},
		"an empty key":     {keys{cluster, "stowage-system"}, "empty", "has no key.json"},
		"no namespace":     {keys{cluster, ""}, "gce-key", "--leader-election-namespace"},
		"no permission":    {keys{refusing(forbidden), "stowage-system"}, "gce-key", "config/rbac"},
		"a quiet API":      {keys{refusing(errors.New("timeout")), "stowage-system"}, "gce-key", "reading Secret gce-key in namespace stowage-system: timeout"},
		"another's Secret": {keys{cluster, "team-a"}, "other", "there is no Secret other in namespace team-a"},
	} {
		_, _, err := test.keys.Key(t.Context(), test.secret)
		if !errors.Is(err, backend.Unavailable) || !strings.Contains(err.Error(), test.says) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func secretWith(name, key, value string) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "stowage-system", Name: name, UID: "1"},
		Data:       map[string][]byte{key: []byte(value)},
	}
}
