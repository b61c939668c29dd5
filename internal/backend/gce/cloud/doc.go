// Package cloud is Google's Compute API as the gce backend uses it. It signs in, reads disks and
// instances, makes changes of them, and waits for operations.
//
// A change is requested with a computed request id, so a repeat joins the operation in progress:
// after a crash, and from a second leader. The Reason of an error is found in one place. The
// package knows no StorageBackend and no owner of a disk: its caller, internal/backend/gce,
// decides whether a disk may be changed.
package cloud
