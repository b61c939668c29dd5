package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/mount"
)

// bareNode does what has to be done for each pod that it sees, without any logic: it
// reads what the volumes name, makes files and mounts, and writes one condition; and
// takes it all away, and deletes the pod. It checks and remembers nothing.
type bareNode struct {
	client client.Client
	root   string
	// begun are pods that are worked on, or were.
	begun map[types.UID]bool
}

func runBareNode(ctx context.Context, kubeconfig string, arguments []string) error {
	return runBare(ctx, kubeconfig, []client.Object{&corev1.Pod{}}, func(ctx context.Context, client bare) error {
		b := &bareNode{client: client, root: arguments[0], begun: map[types.UID]bool{}}
		if err := os.MkdirAll(b.root, 0o750); err != nil {
			return err
		}
		failed := make(chan error, 1)
		follow := func(seen any) {
			if pod, is := seen.(*corev1.Pod); is {
				b.follow(ctx, pod.DeepCopy(), failed)
			}
		}
		pods, err := client.watched.GetInformer(ctx, &corev1.Pod{})
		if err != nil {
			return fmt.Errorf("watching pods: %w", err)
		}
		if _, err := pods.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: follow, UpdateFunc: func(_, now any) { follow(now) }}); err != nil {
			return fmt.Errorf("watching pods: %w", err)
		}
		select {
		case <-ctx.Done():
			return nil
		case err := <-failed:
			return err
		}
	})
}

// follow begins what a pod needs, which is done beside what others need.
func (b *bareNode) follow(ctx context.Context, pod *corev1.Pod, failed chan<- error) {
	act, key := b.publish, pod.UID
	if pod.DeletionTimestamp != nil {
		act, key = b.unpublish, key+"/leaving"
	}
	if b.begun[key] {
		return
	}
	b.begun[key] = true
	go func() {
		if err := act(ctx, pod); err != nil {
			select {
			case failed <- err:
			default:
			}
		}
	}()
}

func (b *bareNode) publish(ctx context.Context, pod *corev1.Pod) error {
	err := inParallel(ctx, len(pod.Spec.Volumes), func(i int) error { return b.publishVolume(ctx, pod, &pod.Spec.Volumes[i]) })
	if err != nil {
		return err
	}
	return b.client.Status().Patch(ctx, pod, strategic{"status": object{"conditions": []object{{
		"type": stowagev1alpha1.VolumesReadyCondition, "status": "True", "reason": stowagev1alpha1.ReasonReady,
		"message": "all volumes are mounted", "lastTransitionTime": pod.CreationTimestamp,
	}}}})
}

func (b *bareNode) dir(pod *corev1.Pod, volume *corev1.Volume) string {
	return filepath.Join(b.root, string(pod.UID), volume.Name)
}

func (b *bareNode) publishVolume(ctx context.Context, pod *corev1.Pod, volume *corev1.Volume) error {
	dir := b.dir(pod, volume)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	key := client.ObjectKey{Namespace: pod.Namespace}
	switch {
	case volume.ConfigMap != nil:
		shown := &corev1.ConfigMap{}
		key.Name = volume.ConfigMap.Name
		if err := b.client.Get(ctx, key, shown); err != nil {
			return err
		}
		return bareFiles(dir, shown.Data)
	case volume.Secret != nil:
		shown := &corev1.Secret{}
		key.Name = volume.Secret.SecretName
		if err := b.client.Get(ctx, key, shown); err != nil {
			return err
		}
		if err := (mount.Kernel{}).Tmpfs(dir, mount.TmpfsOptions{Mode: 0o755}); err != nil {
			return err
		}
		return bareFiles(dir, shown.Data)
	case volume.PersistentVolumeClaim != nil:
		key.Name = volume.PersistentVolumeClaim.ClaimName
		return b.publishClaim(ctx, key, dir)
	}
	return nil
}

func (b *bareNode) publishClaim(ctx context.Context, key client.ObjectKey, dir string) error {
	claim, pv := &corev1.PersistentVolumeClaim{}, &corev1.PersistentVolume{}
	if err := b.client.Get(ctx, key, claim); err != nil {
		return err
	}
	if err := b.client.Get(ctx, client.ObjectKey{Name: claim.Spec.VolumeName}, pv); err != nil {
		return err
	}
	source, err := os.OpenFile(pv.Spec.Local.Path, unix.O_PATH|unix.O_DIRECTORY, 0)
	if err != nil {
		return err
	}
	defer source.Close()
	return (mount.Kernel{}).Bind(source, dir, mount.ReadWrite)
}

// bareFiles writes files as the kubelet does, so that all of them can be replaced at once.
func bareFiles[Data string | []byte](dir string, files map[string]Data) error {
	version := filepath.Join(dir, "..version")
	if err := os.Mkdir(version, 0o755); err != nil {
		return err
	}
	for name, data := range files {
		if err := os.WriteFile(filepath.Join(version, name), []byte(data), 0o644); err != nil {
			return err
		}
		if err := os.Symlink(filepath.Join("..data", name), filepath.Join(dir, name)); err != nil {
			return err
		}
	}
	if err := os.Symlink("..version", filepath.Join(dir, "..data_new")); err != nil {
		return err
	}
	return os.Rename(filepath.Join(dir, "..data_new"), filepath.Join(dir, "..data"))
}

// unpublish removes what lies in no mount with its directory, and of the others nothing
// but the directory.
func (b *bareNode) unpublish(ctx context.Context, pod *corev1.Pod) error {
	err := inParallel(ctx, len(pod.Spec.Volumes), func(i int) error {
		volume := &pod.Spec.Volumes[i]
		dir := b.dir(pod, volume)
		if volume.Secret == nil && volume.PersistentVolumeClaim == nil {
			return os.RemoveAll(dir)
		}
		return errors.Join(unix.Unmount(dir, 0), os.Remove(dir))
	})
	if err == nil {
		err = os.Remove(filepath.Join(b.root, string(pod.UID)))
	}
	if err != nil {
		return err
	}
	return client.IgnoreNotFound(b.client.Delete(ctx, pod, client.GracePeriodSeconds(0), client.Preconditions{UID: &pod.UID}))
}
