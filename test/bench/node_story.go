package main

import (
	"fmt"
	"os"
	"path/filepath"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stowage-dev/stowage/test/fixture"
)

const (
	mounting   = "mount"
	unmounting = "unmount"
	// shownObjects is how many ConfigMaps, and how many Secrets, there are.
	shownObjects = 17
	// shownLabel marks them.
	shownLabel = "bench.stowage.dev/shown"
)

// nodeStory is pods on a node, and the volumes of each.
type nodeStory struct {
	name    string
	pods    int
	volumes func(pod int) []corev1.Volume
	// claims: each pod has one.
	claims bool
}

// nodeStories are one pod with many volumes, and many pods with a claim each.
var nodeStories = []nodeStory{
	{name: "one-pod", pods: 1, volumes: func(int) []corev1.Volume { return manyVolumes(50) }},
	{name: "many-pods", pods: 100, claims: true, volumes: func(pod int) []corev1.Volume {
		return fixture.Pod("", "", claimName(pod)).Spec.Volumes
	}},
}

// crowdedNode is as many pods as a kubelet takes, with a few volumes each.
var crowdedNode = nodeStory{name: "idle", pods: 110, volumes: func(int) []corev1.Volume { return manyVolumes(5) }}

// pod is the story's number i.
func (s nodeStory) pod(i int) *corev1.Pod {
	pod := fixture.Pod(fmt.Sprintf("%s-%05d", s.name, i), mounterNode)
	pod.Spec.Volumes = s.volumes(i)
	return pod
}

// manyVolumes are volumes of API objects, and empty ones, in turn.
func manyVolumes(n int) []corev1.Volume {
	volumes := make([]corev1.Volume, n)
	for i := range volumes {
		name := fmt.Sprintf("volume-%02d", i)
		shown := shownName(i / 3)
		switch i % 3 {
		case 0:
			volumes[i] = corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{
				LocalObjectReference: corev1.LocalObjectReference{Name: shown},
			}}}
		case 1:
			volumes[i] = corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: shown}}}
		default:
			volumes[i] = emptyVolume(name)
		}
	}
	return volumes
}

func emptyVolume(name string) corev1.Volume {
	return corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}
}

func shownName(i int) string { return fmt.Sprintf("shown-%02d", i) }

// prepareStory makes what the story's pods ask for.
func (b *testbed) prepareStory(story nodeStory) error {
	if !story.claims {
		return b.createShown()
	}
	if err := os.MkdirAll(b.dataFolder(), 0o755); err != nil {
		return err
	}
	return inParallel(b.ctx, story.pods, b.boundFolder)
}

// createShown creates ConfigMaps and Secrets, unless they are there.
func (b *testbed) createShown() error {
	return inParallel(b.ctx, shownObjects, func(i int) error {
		meta := metav1.ObjectMeta{Namespace: fixture.Namespace, Name: shownName(i), Labels: map[string]string{shownLabel: "yes"}}
		for _, object := range []client.Object{
			&corev1.ConfigMap{ObjectMeta: meta, Data: map[string]string{"settings": "as they are"}},
			&corev1.Secret{ObjectMeta: meta, Data: map[string][]byte{"password": []byte("example")}},
		} {
			if err := b.client.Create(b.ctx, object); client.IgnoreAlreadyExists(err) != nil {
				return fmt.Errorf("creating what volumes show: %w", err)
			}
		}
		return nil
	})
}

func (b *testbed) clearShown() error {
	for _, kind := range []client.Object{&corev1.ConfigMap{}, &corev1.Secret{}} {
		if err := b.client.DeleteAllOf(b.ctx, kind, client.InNamespace(fixture.Namespace), client.HasLabels{shownLabel}); err != nil {
			return fmt.Errorf("removing what volumes showed: %w", err)
		}
	}
	return nil
}

func (b *testbed) dataFolder() string { return filepath.Join(b.dir, "data") }

// boundFolder makes a folder of this machine, and a claim that is bound to it.
func (b *testbed) boundFolder(i int) error {
	folder := filepath.Join(b.dataFolder(), volumeName(i))
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	claim := fixture.Claim(fixture.ClaimNamed(claimName(i)), fixture.InClass(class))
	claim.Annotations = map[string]string{annBound: "yes", annBindCompleted: "yes"}
	claim.Spec.VolumeName = volumeName(i)
	if err := b.client.Create(b.ctx, claim); err != nil {
		return fmt.Errorf("creating a claim: %w", err)
	}
	pv := fixture.Volume(volumeName(i), fixture.OfClass(class), fixture.OnNode(mounterNode), fixture.ReservedTo(claim.Name))
	pv.Spec.ClaimRef.UID = claim.UID
	pv.Spec.PersistentVolumeSource = corev1.PersistentVolumeSource{Local: &corev1.LocalVolumeSource{Path: folder}}
	if err := b.client.Create(b.ctx, pv); err != nil {
		return fmt.Errorf("creating a volume: %w", err)
	}
	if err := barePhase(b.ctx, b.client, pv); err != nil {
		return fmt.Errorf("binding a volume: %w", err)
	}
	if err := bareStatus(b.ctx, b.client, claim, pv); err != nil {
		return fmt.Errorf("binding a claim: %w", err)
	}
	return nil
}
