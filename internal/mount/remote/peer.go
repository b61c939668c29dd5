package remote

import (
	"strings"

	"github.com/stowage-dev/stowage/internal/mount"
)

// peer is the server that a call waits for. A path on a local file system has its source as
// peer.
func (r request) peer(table mount.Table) peer {
	if r.Mount != nil {
		return peer{r.Mount.Address.String(), r.Mount.Server}
	}
	path := r.Target
	if r.Bind != "" {
		path = r.Bind
	}
	point, _ := table.Around(path)
	name, _, _ := strings.Cut(point.Source, ":/")
	if point.Address == "" {
		return peer{point.Source, name}
	}
	return peer{point.Address, name}
}

// limits are how many calls may run when this one begins.
func (r request) limits() limits {
	switch {
	case r.Unmount && r.Flags != 0:
		return toDetach
	case r.Unmount, r.Ask:
		return toAsk
	default:
		return toMount
	}
}
