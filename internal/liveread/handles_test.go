package liveread

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	ctrlcache "sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stowage-dev/stowage/internal/index"
	. "github.com/stowage-dev/stowage/test/harness/fixture"
)

// listing is an API server with volumes. A list of all takes a second.
type listing struct {
	client.Reader
	volumes []corev1.PersistentVolume
	err     error
	// whole and short are the numbers of lists of all volumes, and of one.
	whole, short int
}

// versionNow is that of all volumes that there are.
const versionNow = "1000"

func (l *listing) List(_ context.Context, list client.ObjectList, options ...client.ListOption) error {
	volumes := list.(*corev1.PersistentVolumeList)
	volumes.ResourceVersion = versionNow
	if (&client.ListOptions{}).ApplyOptions(options).Limit == 1 {
		l.short++
		return l.err
	}
	l.whole++
	volumes.Items = l.volumes
	<-time.After(time.Second)
	return l.err
}

// cachedVolumes is a cache of volumes, which has seen all up to a version.
type cachedVolumes struct {
	client.Reader
	ctrlcache.Informer
	volumes []corev1.PersistentVolume
	seen    seenVersion
}

type seenVersion struct {
	toolscache.Store
	version string
	// current is when it sees all that there is, and one thing more. Zero: never.
	current time.Time
}

func (s *seenVersion) LastStoreSyncResourceVersion() string {
	if !s.current.IsZero() && time.Now().After(s.current) {
		return "1001"
	}
	return s.version
}

func (c *cachedVolumes) List(_ context.Context, list client.ObjectList, _ ...client.ListOption) error {
	list.(*corev1.PersistentVolumeList).Items = c.volumes
	return nil
}

func (c *cachedVolumes) GetInformer(context.Context, client.Object, ...ctrlcache.InformerGetOption) (ctrlcache.Informer, error) {
	return c, nil
}

func (c *cachedVolumes) GetStore() toolscache.Store { return &c.seen }

// twins are two volumes that refer to the same storage. A cache that is behind has the first one.
func twins() []corev1.PersistentVolume {
	same := func(pv *corev1.PersistentVolume) {
		pv.UID, pv.ResourceVersion = types.UID("uid of "+pv.Name), "7"
		pv.Spec.CSI = &corev1.CSIPersistentVolumeSource{Driver: "example.com", VolumeHandle: "disk"}
	}
	return []corev1.PersistentVolume{*Volume("one", same), *Volume("other", same)}
}

// followed has handles whose cache has seen a version, and whose last list took long.
func followed(t *testing.T, server *listing, cached *cachedVolumes) *Handles {
	t.Helper()
	handles := newHandles(server)
	if err := handles.follow(t.Context(), cached); err != nil {
		t.Fatal(err)
	}
	mustFindTwin(t, handles)
	server.whole = 0
	return handles
}

func mustFindTwin(t *testing.T, handles *Handles) {
	t.Helper()
	one := twins()[0]
	found, err := handles.Get(t.Context(), index.HandleOf(&one)[0])
	if got := found.Beside(&one); got != "other" || err != nil {
		t.Errorf("beside the volume is %q (%v), wanted the other", got, err)
	}
}

func TestACacheThatShowsAllOfNowIsAskedForTheVolumesOfAHandle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := &listing{volumes: twins()}
		handles := followed(t, server, &cachedVolumes{volumes: twins(), seen: seenVersion{version: versionNow}})
		mustFindTwin(t, handles)
		if server.whole != 0 || server.short != 1 {
			t.Errorf("%d lists of all volumes, and %d of one", server.whole, server.short)
		}
	})
}

// A store that is ahead of the API server is one from before etcd was restored from a backup.
func TestACacheThatIsBehindOrAheadIsNotAskedForTheVolumesOfAHandle(t *testing.T) {
	for _, seen := range []string{"999", "99", "", "0", "v1", "1001", "20000"} {
		synctest.Test(t, func(t *testing.T) {
			server := &listing{volumes: twins()}
			handles := followed(t, server, &cachedVolumes{volumes: twins()[:1], seen: seenVersion{version: seen}})
			mustFindTwin(t, handles)
			if server.whole != 1 {
				t.Errorf("a cache that has seen %q: %d lists of all volumes", seen, server.whole)
			}
		})
	}
}

func TestAVolumeThatChangedIsNotThereAsItIsAtHand(t *testing.T) {
	volumes := twins()
	found := GroupByHandle(volumes)
	changed, again := volumes[0].DeepCopy(), volumes[0].DeepCopy()
	changed.ResourceVersion, again.UID = "8", "uid of a new one"
	for pv, want := range map[*corev1.PersistentVolume]bool{&volumes[0]: true, changed: false, again: false} {
		if got := found.Has(pv); got != want {
			t.Errorf("volume of version %s and uid %s is there: %v", pv.ResourceVersion, pv.UID, got)
		}
	}
}

func TestACacheThatIsLateIsWaitedForAsLongAsAListTakes(t *testing.T) {
	for late, lists := range map[time.Duration]int{900 * time.Millisecond: 0, 1100 * time.Millisecond: 1} {
		synctest.Test(t, func(t *testing.T) {
			server := &listing{volumes: twins()}
			cached := &cachedVolumes{volumes: twins(), seen: seenVersion{version: "1"}}
			handles := followed(t, server, cached)
			cached.seen.current = time.Now().Add(late)
			mustFindTwin(t, handles)
			if server.whole != lists {
				t.Errorf("a cache that is late by %s: %d lists of all volumes, wanted %d", late, server.whole, lists)
			}
		})
	}
}

func TestWithoutACacheAllVolumesAreListed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := &listing{volumes: twins()}
		handles := newHandles(server)
		mustFindTwin(t, handles)
		mustFindTwin(t, handles)
		if server.whole != 2 || server.short != 0 {
			t.Errorf("%d lists of all volumes, and %d of one", server.whole, server.short)
		}
	})
}

func TestAnAPIServerThatFailsHasNoVolumesOfAHandle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := &listing{volumes: twins()}
		handles := followed(t, server, &cachedVolumes{volumes: twins()[:1], seen: seenVersion{version: versionNow}})
		server.err = errors.New("no connection")
		if _, err := handles.Get(t.Context(), "disk"); !errors.Is(err, server.err) {
			t.Errorf("the error is %v", err)
		}
	})
}
