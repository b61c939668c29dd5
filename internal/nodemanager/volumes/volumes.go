// Package volumes is what the node manager asks of a volume type, and what
// volume types have in common. Each type is a package below this one; the list
// of those that the node agent serves is a value made in cmd/node-agent.
//
// A plug-in makes one volume visible in one directory and takes it away again.
// It never decides when: that is the node manager's. It never reads pods or
// claims from the API server: it is given what it needs.
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

// ErrNotSupported says that this version of Stowage can't mount such a volume.
// Nothing but another volume cures it.
var ErrNotSupported = content.ErrNotSupported

// ErrGone says that the disk which a volume was mounted from is gone from the node.
var ErrGone = errors.New("the volume's disk is gone from this node")

// ErrOtherVolume says that something else than what was asked for is mounted where it
// was to be: another volume, or the same one with another access.
var ErrOtherVolume = errors.New("another volume, or the same one with another access, is mounted there")

// ErrNotStaged says that a volume isn't there for all pods of the node, and so can't be
// for one.
var ErrNotStaged = errors.New("the volume isn't staged on this node")

// ErrInUse says that pods of the node have a volume still.
var ErrInUse = errors.New("pods of this node use the volume still")

// ErrNotFound says that there is no such volume, or that it isn't where it was said to be.
var ErrNotFound = errors.New("there is no such volume")

// ErrInvalid says that what is asked for makes no sense, whatever the state of the node.
var ErrInvalid = errors.New("invalid volume")

// Spec is one volume of one pod, with all that is known of it.
type Spec struct {
	// Pod that uses the volume.
	Pod *corev1.Pod
	// Volume is how the pod asks for it.
	Volume corev1.Volume
	// PersistentVolume that the pod's claim is bound to; nil if the pod asks for
	// the volume itself, without a claim.
	PersistentVolume *corev1.PersistentVolume
	// Access is what the pod may do with it.
	Access mount.Access
	// Attachment is how its disk is found; nil if it has none, or isn't attached yet.
	Attachment *Attachment
	// Backend is the one that lets the pod have a volume of its own there, for volumes of
	// Stowage's drivers that pods name themselves; nil if none does, or not any more.
	Backend *stowagev1alpha1.StorageBackend
	// Files are what the volume shows; nil for volumes that aren't made of objects of
	// the API server.
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

// IsBlock says whether the pod sees the volume as a device.
func (s Spec) IsBlock() bool {
	if s.PersistentVolume == nil || s.PersistentVolume.Spec.VolumeMode == nil {
		return false
	}
	return *s.PersistentVolume.Spec.VolumeMode == corev1.PersistentVolumeBlock
}

// Plugin is a volume type. Where its volumes are devices, what is called dir is the
// path at which the pod sees the device. Its methods may be called for different volumes at
// once, but only one at a time for one directory.
type Plugin interface {
	// Name of the type, such as kubernetes.io/csi. The directories of all its
	// volumes lie in a folder of that name.
	Name() string
	// CanHandle says whether a volume is of this type. It looks at the spec only.
	CanHandle(spec Spec) bool
	// Path is where, in or at the volume's directory, the pod sees the volume.
	Path(dir string) string
	// IsPublished says whether the volume is wholly there, as the mount table
	// and the directory tell it. It must be right after any crash.
	IsPublished(table mount.Table, spec Spec, dir string) (bool, error)
	// Publish makes the volume visible. The parent of dir exists, dir may. It is
	// called until it succeeds, and may find what an earlier call, cut off at any
	// point, left. Errors that wrap ErrNotSupported are final; what they say is
	// shown to the user.
	Publish(ctx context.Context, spec Spec, dir string) error
	// Unpublish takes the volume away and removes dir. It is all that is known:
	// the pod, the claim and the volume object may be gone. It is called until it
	// succeeds; a dir that doesn't exist is a success. It never removes data that
	// outlives the pod.
	Unpublish(ctx context.Context, dir string) error
}

// Refresher is a Plugin whose volumes follow what they show while their pods run.
type Refresher interface {
	Plugin
	// Refresh makes a published volume show spec.Files, all of them at once for whoever
	// looks; nothing happens if it does already. It may find what an earlier call, cut
	// off at any point, left.
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
