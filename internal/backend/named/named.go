// Package named has the UIDs that stand for names of CSI calls, in place of UIDs of objects. By them the manager
// distinguishes what a call made from what it made itself.
package named

import (
	"regexp"
	"strings"

	"github.com/google/uuid"
	"k8s.io/apimachinery/pkg/types"
)

// UID returns the one that a name of a CSI call stands for, in place of a claim's or a VolumeSnapshot's.
// It is a UUID of version 5, and API servers make those of version 4: it is never that of an object. The
// same name has another UID in another cluster, backend, or kind of storage.
func UID(cluster types.UID, backend, kind, name string) types.UID {
	text := strings.Join([]string{string(cluster), backend, kind, name}, "/")
	return types.UID(uuid.NewSHA1(uuid.NameSpaceURL, []byte(text)).String())
}

const uid = `[0-9a-f]{8}-[0-9a-f]{4}-5[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`

// Forms of the id of a volume, and the handle of a snapshot, with such a UID. Some handles are paths.
var (
	volumeForm   = regexp.MustCompile(`^pvc-` + uid)
	snapshotForm = regexp.MustCompile(`(^|/)snapshot-` + uid)
)

// IsVolume reports whether the id of a volume has a UID that stands for a name: then a CSI call made it, and
// no object of the cluster has to refer to it.
func IsVolume(id string) bool { return volumeForm.MatchString(id) }

// IsSnapshot reports the same of the handle of a snapshot.
func IsSnapshot(handle string) bool { return snapshotForm.MatchString(handle) }
