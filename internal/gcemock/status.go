package gcemock

// Statuses of disks and snapshots.
const (
	statusCreating  = "CREATING"
	statusReady     = "READY"
	statusDeleting  = "DELETING"
	statusUploading = "UPLOADING"
)

// Statuses of instances.
const (
	statusProvisioning    = "PROVISIONING"
	statusStaging         = "STAGING"
	statusInstanceRunning = "RUNNING"
	statusStopping        = "STOPPING"
	statusTerminated      = "TERMINATED"
)

// Statuses of operations.
const (
	statusPending = "PENDING"
	statusRunning = "RUNNING"
	statusDone    = "DONE"
)
