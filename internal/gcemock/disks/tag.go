package disks

import (
	"fmt"
	"regexp"

	"google.golang.org/api/compute/v1"

	"github.com/stowage-dev/stowage/internal/gcemock/engine"
	"github.com/stowage-dev/stowage/internal/gcemock/wire"
)

// maxTags is how many tags Google binds to one resource.
const maxTags = 50

// Tags are named by numbers, or by the namespace of an organization or a project. Google documents both.
var (
	numberedKey   = regexp.MustCompile(`^tagKeys/[1-9]\d{0,31}$`)
	numberedValue = regexp.MustCompile(`^tagValues/[1-9]\d{0,31}$`)
	namedKey      = regexp.MustCompile(`^([1-9][0-9]{0,31}|([a-z0-9.-]{1,63}:)?[a-z][a-z0-9-]{4,28}[a-z0-9])/[a-zA-Z0-9]([a-zA-Z0-9_.-]{0,61}[a-zA-Z0-9])?$`)
	namedValue    = regexp.MustCompile(`^[a-zA-Z0-9]([a-zA-Z0-9_.@%=+:,*#&()\[\]{} -]{0,61}[a-zA-Z0-9])?$`)
)

// checkTags checks the tags of a new disk. Each tag that can be named exists.
func checkTags(disk compute.Disk) error {
	const field = "resource.params.resourceManagerTags"
	if disk.Params == nil {
		return nil
	}
	if len(disk.Params.ResourceManagerTags) > maxTags {
		return wire.Invalid(field, "", fmt.Sprintf("At most %d tags are allowed.", maxTags))
	}
	for key, value := range disk.Params.ResourceManagerTags {
		isNumbered := numberedKey.MatchString(key) && numberedValue.MatchString(value)
		if !isNumbered && (!namedKey.MatchString(key) || !namedValue.MatchString(value)) {
			return wire.Invalid(field, key+"="+value, "It is no tag: neither tagKeys/ID with tagValues/ID, nor PARENT/KEY with VALUE.")
		}
	}
	return nil
}

// Tags are the tags of each disk that has any, by its path. Google never answers them with a disk.
func Tags(s *engine.Engine) map[string]map[string]string {
	s.Lock()
	defer s.Unlock()
	all := map[string]map[string]string{}
	for path, row := range s.Disks.Rows {
		if row.Params != nil && len(row.Params.ResourceManagerTags) > 0 {
			all[path] = row.Params.ResourceManagerTags
		}
	}
	return all
}
