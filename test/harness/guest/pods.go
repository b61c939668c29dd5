package guest

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/nodemanager/volumes"
)

// CreateBound creates a claim, and waits until it is bound.
func (s *Stowage) CreateBound(ctx context.Context, claim *corev1.PersistentVolumeClaim) error {
	if err := s.Create(ctx, claim); err != nil {
		return err
	}
	return s.AwaitBound(ctx, claim)
}

// RunPods creates pods, and waits until their volumes are mounted.
func (s *Stowage) RunPods(ctx context.Context, pods ...*corev1.Pod) error {
	for _, pod := range pods {
		if err := s.Create(ctx, pod); err != nil {
			return err
		}
	}
	return s.AwaitMounted(ctx, pods...)
}

// EndPods deletes pods, and waits until they are gone.
func (s *Stowage) EndPods(ctx context.Context, pods ...*corev1.Pod) error {
	var objects []client.Object
	for _, pod := range pods {
		objects = append(objects, pod)
	}
	return s.Delete(ctx, objects...)
}

// Change patches an object, as edit does it in memory.
func (s *Stowage) Change(ctx context.Context, object client.Object, edit func()) error {
	if err := s.Client.Get(ctx, client.ObjectKeyFromObject(object), object); err != nil {
		return err
	}
	before := object.DeepCopyObject().(client.Object)
	edit()
	return s.Client.Patch(ctx, object, client.MergeFrom(before))
}

// BackendIsReady reports whether a backend's present spec is served.
func (s *Stowage) BackendIsReady(ctx context.Context, name string) error {
	backend := &stowagev1alpha1.StorageBackend{}
	if err := s.Client.Get(ctx, client.ObjectKey{Name: name}, backend); err != nil {
		return err
	}
	ready := meta.FindStatusCondition(backend.Status.Conditions, stowagev1alpha1.ReadyCondition)
	if ready == nil || ready.Status != "True" || ready.ObservedGeneration != backend.Generation {
		return fmt.Errorf("backend %s has generation %d and says %+v", name, backend.Generation, ready)
	}
	return nil
}

// Write has a pod's process write a file of its node.
func (n *Node) Write(ctx context.Context, path, content string) error {
	return n.Call(ctx, "Files.Write", File{Path: path, Content: content}, &Nothing{})
}

// Reads reports whether a file of a node says what was written.
func (n *Node) Reads(ctx context.Context, path, want string) error {
	var got string
	if err := n.Call(ctx, "Files.Read", path, &got); err != nil {
		return err
	}
	if got != want {
		return fmt.Errorf("it reads %q, not %q", got, want)
	}
	return nil
}

// Mounts reports whether a node has so many mounts in a folder.
func (n *Node) Mounts(ctx context.Context, folder string, want int) error {
	var got []string
	if err := n.Call(ctx, "Files.Mounts", folder, &got); err != nil {
		return err
	}
	if len(got) != want {
		return fmt.Errorf("%d mounts, not %d: %s", len(got), want, strings.Join(got, "; "))
	}
	return nil
}

// IsEmpty reports whether a directory of a node has nothing in it, or isn't there.
func (n *Node) IsEmpty(ctx context.Context, dir string) error {
	var names []string
	if err := n.Call(ctx, "Files.List", dir, &names); err != nil {
		return err
	}
	if len(names) > 0 {
		return fmt.Errorf("%s has %q", dir, names)
	}
	return nil
}

// HasNoVolumes is an error if a node's agent has anything mounted, or directories of pods.
func (n *Node) HasNoVolumes(ctx context.Context) error {
	return errors.Join(n.Mounts(ctx, AgentRoot, 0), n.IsEmpty(ctx, filepath.Join(AgentRoot, "pods")))
}

// DevicePath is the device on its node of a pod's volume of a type.
func DevicePath(pod *corev1.Pod, volumeType, name string) string {
	return filepath.Join(AgentRoot, "pods", string(pod.UID), "volumeDevices", volumes.DirName(volumeType), name)
}
