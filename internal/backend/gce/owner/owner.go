// Package owner says which disks and snapshots of the cloud belong to a StorageBackend of a cluster. A description, which
// can't be changed, proves it. Labels only help to find them.
package owner

import (
	"fmt"
	"maps"

	"github.com/stowage-dev/stowage/internal/backend/gce/labels"
)

// creator is in the description of each disk and snapshot of Stowage.
const creator = "stowage.dev"

// Owner is a StorageBackend of a cluster.
type Owner struct{ Cluster, Backend string }

// Label adds to labels those by which Stowage finds what it made. Of maps with the same key the later counts.
func (o Owner) Label(wanted ...map[string]string) map[string]string {
	all := map[string]string{}
	for _, one := range wanted {
		maps.Copy(all, one)
	}
	all[labels.Cluster] = labels.ValueOf(o.Cluster)
	all[labels.Backend] = labels.ValueOf(o.Backend)
	return all
}

// Filter finds what has the owner's labels.
func (o Owner) Filter() string {
	return fmt.Sprintf("(labels.%s = %q) AND (labels.%s = %q)", labels.Cluster, labels.ValueOf(o.Cluster), labels.Backend, labels.ValueOf(o.Backend))
}
