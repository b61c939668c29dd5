// Package volume is the vocabulary of volumes that the manager and the node agent share. It has
// handles, what access modes allow, whether a volume is read-only, its undelete window, and the
// names of claims and VolumeAttachments.
//
// All of it is pure. It has no client, reads no file, and knows neither backends nor
// mounts. Whether a volume is attached, bound or removed is decided elsewhere: see
// internal/attach and internal/binder.
package volume
