package volume

import (
	"fmt"
	"strings"
)

// handleSeparator stands between a driver and a handle. A driver's name doesn't contain it;
// a handle may.
const handleSeparator = "^"

// diskPrefix is what the path of a disk begins with. The id of a volume that Stowage made
// never does.
const diskPrefix = "projects/"

// Key is the driver and the handle of a volume: two PersistentVolumes with the same key are
// the same storage.
func Key(driver, handle string) string { return driver + handleSeparator + handle }

// IsDiskPath reports whether a handle is the path of a disk that Stowage didn't make, such
// as projects/demo/zones/europe-west3-a/disks/data.
func IsDiskPath(handle string) bool { return strings.HasPrefix(handle, diskPrefix) }

// DiskPath is the handle of a disk that Stowage didn't make.
func DiskPath(project, zone, name string) string {
	return fmt.Sprintf("%s%s/zones/%s/disks/%s", diskPrefix, project, zone, name)
}
