// Package tags reads which tags of Google's Resource Manager a StorageClass gives its disks. It calls no API: the Compute
// API alone knows which tags exist, and which accounts may bind them.
package tags

import (
	"regexp"
	"strings"

	"google.golang.org/api/compute/v1"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/backend"
)

// Parameter is the parameter of StorageClasses that names tags.
const Parameter = stowagev1alpha1.GCETagsParameter

// maxTags is how many tags Google binds to one disk.
const maxTags = 50

// What Google allows. A value with a comma can't be written in a list.
var (
	validParent = regexp.MustCompile(`^([1-9][0-9]{0,31}|([a-z0-9.-]{1,63}:)?[a-z][a-z0-9-]{4,28}[a-z0-9])$`)
	validKey    = regexp.MustCompile(`^[a-zA-Z0-9]([a-zA-Z0-9_.-]{0,61}[a-zA-Z0-9])?$`)
	validValue  = regexp.MustCompile(`^[a-zA-Z0-9]([a-zA-Z0-9_.@%=+:*#&()\[\]{} -]{0,61}[a-zA-Z0-9])?$`)
)

// Of reads a list of tags PARENT/KEY/VALUE with commas between, by PARENT/KEY. Its errors are of kind Invalid.
func Of(list string) (map[string]string, error) {
	read := map[string]string{}
	for tag := range strings.SplitSeq(list, ",") {
		parts := strings.Split(strings.TrimSpace(tag), "/")
		if len(parts) != 3 || !validParent.MatchString(parts[0]) || !validKey.MatchString(parts[1]) || !validValue.MatchString(parts[2]) {
			return nil, backend.Invalid.Errorf("the parameter %s of the StorageClass has %.100q: write PARENT/KEY/VALUE, with commas between. PARENT is the id of an "+
				"organization or a project. KEY and VALUE have 63 characters at most, a letter or digit first and last", Parameter, tag)
		}
		key := parts[0] + "/" + parts[1]
		if _, twice := read[key]; twice {
			return nil, backend.Invalid.Errorf("the parameter %s of the StorageClass has the key %s twice: name it once", Parameter, key)
		}
		read[key] = parts[2]
		if len(read) > maxTags {
			return nil, backend.Invalid.Errorf("the parameter %s of the StorageClass has more than %d tags: name fewer", Parameter, maxTags)
		}
	}
	return read, nil
}

// Set has tags bound to a new disk. Google never answers them with it.
func Set(disk *compute.Disk, wanted map[string]string) {
	if len(wanted) > 0 {
		disk.Params = &compute.DiskParams{ResourceManagerTags: wanted}
	}
}

// WhyRefused explains that a disk with tags wasn't allowed to be made.
func WhyRefused(disk *compute.Disk, refusal error) error {
	return backend.Unavailable.Errorf("the manager's account may not make disk %s with its tags: grant it the role resourcemanager.tagUser, on the tags of the "+
		"StorageClass's parameter %s and on the project, beside compute.instanceAdmin.v1 and iam.serviceAccountUser: %w", disk.Name, Parameter, refusal)
}
