// Package volumes is the interface of volume types, and what they have in common. Each type is a
// package below this one; cmd/node-agent makes the list of those that the node agent serves.
//
// A plug-in publishes one volume in one directory and unpublishes it. The node manager decides when.
// A plug-in never reads pods or claims from the API server: its arguments have all that it needs.
package volumes

import (
	"context"
	"errors"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/mount"
	"github.com/stowage-dev/stowage/internal/nodemanager/content"
)

// ErrNotSupported means: this version of Stowage can't mount such a volume. Only another volume cures it.
var ErrNotSupported = content.ErrNotSupported

// ErrGone means: the disk of a mounted volume is gone from the node.
var ErrGone = errors.New("the volume's disk is gone from this node")

// ErrOtherVolume means: another volume, or the same one with another access, is mounted at the path.
var ErrOtherVolume = errors.New("another volume, or the same one with another access, is mounted there")

// ErrNotStaged means: a volume isn't staged on the node, and so can't be published.
var ErrNotStaged = errors.New("the volume isn't staged on this node")

// ErrInUse means: pods of the node still have a volume.
var ErrInUse = errors.New("pods of this node use the volume still")

// ErrNotFound means: there is no such volume, or it isn't at the path of the call.
var ErrNotFound = errors.New("there is no such volume")

// ErrInvalid means: the request is invalid, whatever the state of the node.
var ErrInvalid = errors.New("invalid volume")

// Spec is one volume of one pod, with all that is known of it.
type Spec struct {
	// Pod that uses the volume.
	Pod *corev1.Pod
	// Volume is its entry in the pod's spec.
	Volume corev1.Volume
	// PersistentVolume that the pod's claim is bound to; nil if the pod asks for
	// the volume itself, without a claim.
	PersistentVolume *corev1.PersistentVolume
	// Access is what the pod may do with it.
	Access mount.Access
	// Attachment identifies its disk; nil if it has none, or isn't attached yet.
	Attachment *Attachment
	// Backend is the StorageBackend of an inline volume; nil if none allows it, or not any more.
	Backend *stowagev1alpha1.StorageBackend
	// Files are the content of a projected volume; nil for other types.
	Files content.Files
}

// Name of the volume's directory: that of the volume object, or of the pod's
// volume where there is no volume object.
func (s Spec) Name() string {
	if s.PersistentVolume != nil {
		return s.PersistentVolume.Name
	}
	return s.Volume.Name
}

// IsBlock reports whether the volume's mode is Block.
func (s Spec) IsBlock() bool {
	if s.PersistentVolume == nil || s.PersistentVolume.Spec.VolumeMode == nil {
		return false
	}
	return *s.PersistentVolume.Spec.VolumeMode == corev1.PersistentVolumeBlock
}

// Plugin is a volume type. For block volumes, dir is the path of the pod's device file. Its methods
// may be called for different volumes at once, but only one at a time for one directory.
type Plugin interface {
	// Name of the type, such as kubernetes.io/csi. The directories of all its
	// volumes lie in a folder of that name.
	Name() string
	// CanHandle reports whether a volume is of this type, by its spec alone.
	CanHandle(spec Spec) bool
	// Path is the published path, in or at the volume's directory.
	Path(dir string) string
	// IsPublished reports whether the volume is completely published, by the mount table and the
	// directory. It must be right after any crash.
	IsPublished(table mount.Table, spec Spec, dir string) (bool, error)
	// Publish mounts the volume. The parent of dir exists, dir may. It is called until it
	// succeeds, also after a call that was interrupted at any point. Errors that wrap
	// ErrNotSupported are final. Error texts are shown to the user.
	Publish(ctx context.Context, spec Spec, dir string) error
	// Unpublish unmounts the volume and removes dir, with dir as its only input: the pod, the claim
	// and the volume object may be gone. It is called until it succeeds; a missing dir is a
	// success. It never removes data that outlives the pod.
	Unpublish(ctx context.Context, dir string) error
}

// Refresher is a Plugin that updates the content of its volumes while their pods run.
type Refresher interface {
	Plugin
	// Refresh replaces the content of a published volume by spec.Files. Readers see all files
	// change at once. Unchanged files aren't written. It can be repeated after a call that was
	// interrupted at any point.
	Refresh(ctx context.Context, spec Spec, dir string) error
}

// Registry is the volume types that the node agent serves.
type Registry []Plugin

// For finds the type of a volume.
func (r Registry) For(spec Spec) (Plugin, bool) {
	return r.find(func(plugin Plugin) bool { return plugin.CanHandle(spec) })
}

// Named finds a type by its name.
func (r Registry) Named(name string) (Plugin, bool) {
	return r.find(func(plugin Plugin) bool { return plugin.Name() == name })
}

func (r Registry) find(wanted func(Plugin) bool) (Plugin, bool) {
	i := slices.IndexFunc(r, wanted)
	if i < 0 {
		return nil, false
	}
	return r[i], true
}

// DirName is the folder of a volume type in a pod's directory: its name with
// "~" for "/", as the kubelet does it.
func DirName(pluginName string) string {
	return strings.ReplaceAll(pluginName, "/", "~")
}

// PluginName is the volume type of a folder in a pod's directory.
func PluginName(dirName string) string {
	return strings.ReplaceAll(dirName, "~", "/")
}
