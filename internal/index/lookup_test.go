package index

import (
	"context"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/stowage-dev/stowage/internal/program"
	"github.com/stowage-dev/stowage/internal/volume"
	"github.com/stowage-dev/stowage/test/harness/fixture"
)

func TestALookupReturnsNoOtherObjectOfItsBucket(t *testing.T) {
	cache := cacheOf(t)
	for what, lookup := range map[string]struct {
		add  func(text string) client.Object
		find func(text string) (found int, err error)
	}{
		"volumes of a handle": {
			func(text string) client.Object {
				pv := fixture.Volume("handle-" + text)
				pv.Spec.PersistentVolumeSource = corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{Driver: "d", VolumeHandle: text}}
				return pv
			},
			func(text string) (int, error) {
				volumes, err := VolumesOf(t.Context(), cache, volume.Key("d", text))
				return len(volumes), err
			},
		},
		"volumes for a claim": {
			func(text string) client.Object {
				pv := fixture.Volume("claimed-" + text)
				pv.Spec.ClaimRef = &corev1.ObjectReference{Namespace: "default", Name: text}
				return pv
			},
			func(text string) (int, error) {
				volumes, err := VolumesFor(t.Context(), cache, types.NamespacedName{Namespace: "default", Name: text})
				return len(volumes), err
			},
		},
		"claims naming a volume": {
			func(text string) client.Object {
				claim := fixture.Claim(fixture.ClaimNamed("names-" + text))
				claim.Spec.VolumeName = text
				return claim
			},
			func(text string) (int, error) {
				claims, err := ClaimsNaming(t.Context(), cache, text)
				return len(claims), err
			},
		},
	} {
		one, other := sharing(map[string]func(string) string{
			"volumes of a handle":    func(text string) string { return volume.Key("d", text) },
			"volumes for a claim":    func(text string) string { return "default/" + text },
			"claims naming a volume": func(text string) string { return text },
		}[what])
		for _, text := range []string{one, other} {
			if err := cache.Create(t.Context(), lookup.add(text)); err != nil {
				t.Fatal(err)
			}
		}
		if found, err := lookup.find(one); err != nil || found != 1 {
			t.Errorf("%s: %d are found, %v", what, found, err)
		}
		if found, err := lookup.find("no-such"); err != nil || found != 0 {
			t.Errorf("%s that isn't there: %d are found, %v", what, found, err)
		}
	}
}

// sharing returns two texts with values of one bucket.
func sharing(value func(text string) string) (one, other string) {
	seen := map[string]string{}
	for i := 0; ; i++ {
		text := fmt.Sprintf("text-%d", i)
		if before, found := seen[bucket(value(text))]; found {
			return before, text
		}
		seen[bucket(value(text))] = text
	}
}

func cacheOf(t *testing.T) client.Client {
	t.Helper()
	scheme, err := program.Scheme()
	if err != nil {
		t.Fatal(err)
	}
	cache := indexed{fake.NewClientBuilder().WithScheme(scheme)}
	if err := Add(t.Context(), cache); err != nil {
		t.Fatal(err)
	}
	return cache.Build()
}

// indexed is a cluster in memory with the field indexes.
type indexed struct{ *fake.ClientBuilder }

func (c indexed) IndexField(_ context.Context, object client.Object, field string, values client.IndexerFunc) error {
	c.WithIndex(object, field, values)
	return nil
}
