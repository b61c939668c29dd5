package recycle

import (
	"cmp"
	"path"
	"strings"

	corev1 "k8s.io/api/core/v1"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
)

// directory is one of a server, or of nodes. Two names of one server aren't known to be
// one.
type directory struct {
	server string
	// onNode: it is a node's own. Node is which, if that is known.
	onNode bool
	node   nodeLabel
	path   string
}

// directoryOf is where a volume lies, if it lies in a directory: of those made by
// drivers, where the attributes of the usual ones say so.
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

// directoryOfBackend is where the volumes of a StorageBackend lie: of a local one, on
// whichever nodes.
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

// meets tells whether one of two directories is, or is in, the other.
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
