package recycle

import (
	"cmp"
	"path"
	"strings"

	corev1 "k8s.io/api/core/v1"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
)

// directory is a directory of a server, or of nodes. Two names of one server are not
// recognised as one.
type directory struct {
	server string
	// onNode is true if it is a node's own. Node is that node, if known.
	onNode bool
	node   nodeLabel
	path   string
}

// directoryOf returns the directory of a volume, if it has one. For CSI volumes it reads the
// attributes of common drivers.
func directoryOf(pv *corev1.PersistentVolume) directory {
	switch {
	case pv.Spec.NFS != nil:
		return directory{server: pv.Spec.NFS.Server, path: pv.Spec.NFS.Path}
	case pathOnNode(pv) != "":
		return directory{onNode: true, node: labelOfNode(pv), path: pathOnNode(pv)}
	case pv.Spec.CSI != nil && pv.Spec.CSI.Driver == stowagev1alpha1.LocalDriver:
		return directory{onNode: true, node: labelOfNode(pv), path: pv.Spec.CSI.VolumeAttributes[stowagev1alpha1.PathAttribute]}
	case pv.Spec.CSI != nil:
		attributes := pv.Spec.CSI.VolumeAttributes
		return directory{
			server: attributes[stowagev1alpha1.ServerAttribute],
			path:   cmp.Or(attributes[stowagev1alpha1.PathAttribute], attributes["share"]),
		}
	default:
		return directory{}
	}
}

// directoryOfBackend returns the directory that has the volumes of a StorageBackend. That of a
// local backend may be on any node.
func directoryOfBackend(object *stowagev1alpha1.StorageBackend) directory {
	switch {
	case object.Spec.NFS != nil:
		return directory{server: object.Spec.NFS.Server, path: string(object.Spec.NFS.Path)}
	case object.Spec.Local != nil:
		return directory{onNode: true, path: string(object.Spec.Local.Path)}
	default:
		return directory{}
	}
}

// meets reports whether one of two directories is, or is in, the other.
func (d directory) meets(other directory) bool {
	if d.onNode {
		return other.onNode && !d.node.isOther(other.node) && (d.isIn(other) || other.isIn(d))
	}
	return other.server != "" && strings.EqualFold(d.server, other.server) && (d.isIn(other) || other.isIn(d))
}

func (d directory) isIn(other directory) bool {
	around := path.Clean("/" + other.path)
	return around == "/" || strings.HasPrefix(path.Clean("/"+d.path)+"/", around+"/")
}
