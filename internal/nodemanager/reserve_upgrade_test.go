package nodemanager

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/stowage-dev/stowage/internal/nodemanager/nodetest"
	"github.com/stowage-dev/stowage/internal/nodemanager/poddir"
	"github.com/stowage-dev/stowage/internal/nodemanager/reservation"
	"github.com/stowage-dev/stowage/internal/nodemanager/resolve"
	"github.com/stowage-dev/stowage/internal/nodemanager/volumes"
	"github.com/stowage-dev/stowage/internal/nodemanager/volumes/csi"
	"github.com/stowage-dev/stowage/internal/nodemanager/volumes/csi/csitest"
)

//proves:csi/upgrade
func TestAShareForOnePodIsReservedByThePodOfTheLayoutBefore(t *testing.T) {
	n := &killedNode{Dir: t.TempDir(), Volume: killedShare}
	tree, err := poddir.NewTree(n.root())
	mustDo(t, err)
	_, shares, err := n.shares()
	mustDo(t, err)
	caller, err := csitest.NewCaller(n.root(), n.path("base"), shares)
	mustDo(t, err)
	first, second := nodetest.PodOnNode("first"), nodetest.PodOnNode("second")
	had := tree.VolumeDir(first.UID, poddir.Location{Plugin: "kubernetes.io/nfs", Name: "pv"})
	mustDo(t, os.MkdirAll(filepath.Join(had, "staged-key"), 0o750))
	volume := &corev1.PersistentVolume{}
	volume.Name, volume.Spec.PersistentVolumeSource = "pv", n.shareSource()
	volume.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOncePod}
	resolved := &resolve.ResolvedVolume{Spec: volumes.Spec{PersistentVolume: volume}, Plugin: csi.New(caller)}
	all := reservation.New(tree, clientWith(interceptor.Funcs{}, first))

	if err := all.Ensure(t.Context(), second, resolved); err == nil || !strings.Contains(err.Error(), "ReadWriteOncePod") {
		t.Errorf("for a second pod: got %v", err)
	}
	mustDo(t, all.Ensure(t.Context(), first, resolved))
	mustDo(t, os.RemoveAll(tree.PodDir(first.UID)))
	mustDo(t, all.Ensure(t.Context(), second, resolved))
}
