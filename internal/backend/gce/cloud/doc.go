// Package cloud is Google's Compute API as the gce backend uses it: it signs in, reads disks
// and instances, makes changes of them, and waits for operations.
//
// A change is asked for with a computed request id, so a repeat takes part in the operation
// that there is: after a crash, and by a second leader. What an error of the API means is a
// Reason, found in one place. The package knows no StorageBackend and no owner of a disk:
// whether a disk may be changed is decided by its caller, internal/backend/gce.
package cloud
