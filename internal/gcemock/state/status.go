package state

// Statuses of disks and snapshots.
const (
	StatusCreating  = "CREATING"
	StatusReady     = "READY"
	StatusDeleting  = "DELETING"
	StatusUploading = "UPLOADING"
)

// Statuses of instances.
const (
	StatusProvisioning    = "PROVISIONING"
	StatusStaging         = "STAGING"
	StatusInstanceRunning = "RUNNING"
	StatusStopping        = "STOPPING"
	StatusTerminated      = "TERMINATED"
)

// Statuses of operations.
const (
	StatusPending = "PENDING"
	StatusRunning = "RUNNING"
	StatusDone    = "DONE"
)
