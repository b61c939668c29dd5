package main

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/stowage-dev/stowage/internal/backend"
)

func TestKeysAreReadFromTheManagersOwnNamespace(t *testing.T) {
	elsewhere := secretWith("gce-key", keyName, "theirs")
	elsewhere.Namespace = "team-a"
	cluster := fake.NewClientBuilder().WithObjects(secretWith("gce-key", keyName, "ours"), elsewhere).Build()
	var reads atomic.Int32
	counted := interceptor.NewClient(cluster, interceptor.Funcs{
		Get: func(ctx context.Context, cluster client.WithWatch, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
			reads.Add(1)
			return cluster.Get(ctx, key, object, options...)
		},
	})
	own := newKeys(t.Context(), counted, "stowage-system")
	key, version, err := own.Key(t.Context(), "gce-key")
	if err != nil || string(key) != "ours" || version == "" {
		t.Fatalf("it read %q, version %q: %v", key, version, err)
	}
	for range 3 {
		if _, again, err := own.Key(t.Context(), "gce-key"); err != nil || again != version {
			t.Errorf("it read version %q: %v", again, err)
		}
	}
	if reads.Load() != 1 {
		t.Errorf("the API server was asked %d times for a Secret that stays as it is", reads.Load())
	}
	changed := &corev1.Secret{}
	if err := cluster.Get(t.Context(), client.ObjectKey{Namespace: "stowage-system", Name: "gce-key"}, changed); err != nil {
		t.Fatal(err)
	}
	changed.Data[keyName] = []byte("newer")
	if err := cluster.Update(t.Context(), changed); err != nil {
		t.Fatal(err)
	}
	eventually(t, "a new key", func() bool {
		key, now, err := own.Key(t.Context(), "gce-key")
		return err == nil && string(key) == "newer" && now != version
	})
	if err := cluster.Delete(t.Context(), changed); err != nil {
		t.Fatal(err)
	}
	eventually(t, "no key", func() bool {
		_, _, err := own.Key(t.Context(), "gce-key")
		return errors.Is(err, backend.Unavailable) && strings.Contains(err.Error(), "there is no Secret gce-key")
	})
}

func TestAKeyIsReadEachTimeWhereItCannotBeWatchedAndAtTimesWhereItCan(t *testing.T) {
	cluster := fake.NewClientBuilder().WithObjects(secretWith("gce-key", keyName, "ours")).Build()
	var reads int
	refuse := true
	counted := interceptor.NewClient(cluster, interceptor.Funcs{
		Get: func(ctx context.Context, cluster client.WithWatch, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
			reads++
			return cluster.Get(ctx, key, object, options...)
		},
		Watch: func(ctx context.Context, cluster client.WithWatch, list client.ObjectList, options ...client.ListOption) (watch.Interface, error) {
			if refuse {
				return nil, apierrors.NewForbidden(schema.GroupResource{Resource: "secrets"}, "", nil)
			}
			return cluster.Watch(ctx, list, options...)
		},
	})
	now := time.Now()
	own := newKeys(t.Context(), counted, "stowage-system")
	own.now = func() time.Time { return now }
	for call, want := range []int{1, 2, 3, 3, 4} {
		refuse = call < 2
		if call == 4 {
			now = now.Add(keyTrusted)
		}
		if _, _, err := own.Key(t.Context(), "gce-key"); err != nil || reads != want {
			t.Errorf("call %d: %d reads, %v", call, reads, err)
		}
	}
}

// eventually waits for what the watch reports.
func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	tick, deadline := time.NewTicker(time.Millisecond), time.After(30*time.Second)
	defer tick.Stop()
	for !is() {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("there is still not %s", what)
		}
	}
}

func TestAMissingKeyIsAnErrorThatSaysWhatToDo(t *testing.T) {
	cluster := fake.NewClientBuilder().WithObjects(secretWith("other", "key", "x"), secretWith("empty", keyName, "")).Build()
	refusing := func(err error) client.WithWatch {
		return interceptor.NewClient(cluster, interceptor.Funcs{
			Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
				return err
			},
		})
	}
	forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "secrets"}, "gce-key", nil)
	for name, test := range map[string]struct {
		keys   *keys
		secret string
		says   string
	}{
		"no Secret":        {newKeys(t.Context(), cluster, "stowage-system"), "gce-key", "kubectl create secret generic gce-key -n stowage-system --from-file=key.json=FILE"},
		"no key in it":     {newKeys(t.Context(), cluster, "stowage-system"), "other", "has no key.json"},
		"an empty key":     {newKeys(t.Context(), cluster, "stowage-system"), "empty", "has no key.json"},
		"no namespace":     {newKeys(t.Context(), cluster, ""), "gce-key", "--leader-election-namespace"},
		"no permission":    {newKeys(t.Context(), refusing(forbidden), "stowage-system"), "gce-key", "config/rbac"},
		"a quiet API":      {newKeys(t.Context(), refusing(errors.New("timeout")), "stowage-system"), "gce-key", "reading Secret gce-key in namespace stowage-system: timeout"},
		"another's Secret": {newKeys(t.Context(), cluster, "team-a"), "other", "there is no Secret other in namespace team-a"},
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
