package binder_test

import (
	"cmp"
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/component-helpers/storage/volume"
	"pgregory.net/rapid"

	"github.com/stowage-dev/stowage/internal/binder"
	. "github.com/stowage-dev/stowage/test/fixture"
)

// The index must answer as a scan over all volumes does, whatever happened before.
func TestTheIndexAnswersAsAScanOverAllVolumes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		index, naive := binder.NewIndex(), scan{volumes: map[string]*corev1.PersistentVolume{}, taken: map[string]types.UID{}, versions: map[string]string{}}
		t.Repeat(map[string]func(*rapid.T){
			"put": func(t *rapid.T) {
				pv := drawVolume(t)
				index.Put(pv)
				naive.put(pv)
			},
			"remove": func(t *rapid.T) {
				name := drawName(t, "volume")
				index.Remove(name)
				naive.remove(name)
			},
			"take": func(t *rapid.T) {
				wish := drawWish(t)
				got, want := index.Take(wish), naive.take(wish)
				if nameOf(got) != nameOf(want) {
					t.Fatalf("the index takes %q, the scan %q, for %+v", nameOf(got), nameOf(want), wish.Claim.Spec)
				}
			},
			"give back": func(t *rapid.T) {
				name, claim := drawName(t, "volume"), drawClaim(t)
				index.GiveBack(name, claim.UID)
				naive.giveBack(name, claim.UID)
			},
		})
	})
}

// scan is the index without an index: it looks at every volume every time.
type scan struct {
	volumes map[string]*corev1.PersistentVolume
	taken   map[string]types.UID
	// versions are those in which volumes were taken.
	versions map[string]string
}

func (s scan) put(pv *corev1.PersistentVolume) {
	s.volumes[pv.Name] = pv
	if s.versions[pv.Name] != pv.ResourceVersion {
		delete(s.taken, pv.Name)
	}
}

func (s scan) remove(name string) {
	delete(s.volumes, name)
	delete(s.taken, name)
}

func (s scan) giveBack(name string, claim types.UID) {
	if s.taken[name] == claim {
		delete(s.taken, name)
	}
}

func (s scan) take(wish binder.Wish) *corev1.PersistentVolume {
	var tied, reserved, free []*corev1.PersistentVolume
	for _, pv := range s.volumes {
		by, taken := s.taken[pv.Name]
		fits := binder.Fit(pv, wish) == binder.Fits && (!taken || by == wish.Claim.UID)
		switch {
		case binder.TiedTo(pv, wish.Claim) && pv.Annotations[volume.AnnBoundByController] != "" && pv.DeletionTimestamp == nil:
			tied = append(tied, pv)
		case fits && pv.Spec.ClaimRef != nil:
			reserved = append(reserved, pv)
		case fits && !wish.Delayed:
			free = append(free, pv)
		}
	}
	for _, group := range [][]*corev1.PersistentVolume{tied, reserved, free} {
		if len(group) > 0 {
			best := slices.MinFunc(group, smallerOlderFirst)
			if !binder.TiedTo(best, wish.Claim) {
				s.taken[best.Name], s.versions[best.Name] = wish.Claim.UID, best.ResourceVersion
			}
			return best
		}
	}
	return nil
}

func smallerOlderFirst(a, b *corev1.PersistentVolume) int {
	return cmp.Or(
		a.Spec.Capacity.Storage().Cmp(*b.Spec.Capacity.Storage()),
		a.CreationTimestamp.Compare(b.CreationTimestamp.Time),
		cmp.Compare(a.Name, b.Name),
	)
}

func drawVolume(t *rapid.T) *corev1.PersistentVolume {
	pv := Volume(drawName(t, "volume"),
		Holding(drawSize(t)), OfClass(drawClass(t)), WithModes(drawModes(t)...), Labelled("disk", drawOne(t, "label", "ssd", "hdd")))
	pv.ResourceVersion = drawOne(t, "version", "1", "2", "3")
	pv.CreationTimestamp = metav1.NewTime(time.Unix(int64(rapid.IntRange(0, 2).Draw(t, "age")), 0))
	switch rapid.IntRange(0, 9).Draw(t, "reference") {
	case 0:
		ReservedTo(drawName(t, "claim"))(pv)
	case 1:
		binder.BindVolume(pv, drawClaim(t))
	case 2:
		pv.Status.Phase = corev1.VolumeFailed
	case 3:
		pv.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)}
	case 4:
		OnNode("node-1")(pv)
	}
	return pv
}

func drawWish(t *rapid.T) binder.Wish {
	wish := binder.Wish{Claim: drawClaim(t), Delayed: rapid.IntRange(0, 5).Draw(t, "delayed") == 0}
	if rapid.Bool().Draw(t, "placed") {
		wish.Node = Node(drawOne(t, "node", "node-1", "node-2"))
	}
	return wish
}

// drawClaim draws one of a few claims; the same name is always the same claim.
func drawClaim(t *rapid.T) *corev1.PersistentVolumeClaim {
	name := drawName(t, "claim")
	claim := Claim(ClaimNamed(name), ClaimUID("uid-of-"+name), Asking(drawSize(t)), InClass(drawClass(t)), AskingModes(drawModes(t)...))
	if rapid.IntRange(0, 3).Draw(t, "selecting") == 0 {
		Selecting("disk", "ssd")(claim)
	}
	return claim
}

func drawName(t *rapid.T, kind string) string {
	return fmt.Sprintf("%s-%d", kind, rapid.IntRange(0, 9).Draw(t, kind))
}

func drawSize(t *rapid.T) string { return drawOne(t, "size", "1Gi", "2Gi", "1.5Gi", "2048Mi", "1Ti") }

func drawClass(t *rapid.T) string { return drawOne(t, "class", "", "fast") }

func drawModes(t *rapid.T) []corev1.PersistentVolumeAccessMode {
	return rapid.SampledFrom([][]corev1.PersistentVolumeAccessMode{
		{corev1.ReadWriteOnce}, {corev1.ReadOnlyMany}, {corev1.ReadWriteOnce, corev1.ReadOnlyMany},
	}).Draw(t, "modes")
}

func drawOne(t *rapid.T, what string, values ...string) string {
	return rapid.SampledFrom(values).Draw(t, what)
}
