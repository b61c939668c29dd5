// Package doctor is the verb doctor of kubectl stowage. It checks an installation by the objects of
// the API, and says what these objects can't tell.
//
// cmd/kubectl-stowage calls it. It writes nothing but access reviews, which the API server
// answers and doesn't store. read.go reads the objects; the files named after their subjects
// judge them without a client; report.go lists all checks.
package doctor

import (
	"time"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
)

// Result of a check.
type Result string

// Results. Unknown: the objects of the API don't tell.
const (
	OK      Result = "OK"
	Warning Result = "Warning"
	Failed  Result = "Failed"
	Unknown Result = "Unknown"
)

// Check is one thing that was checked.
type Check struct {
	Subject string `json:"subject"`
	Result  Result `json:"result"`
	Says    string `json:"says"`
	// Do is what to do about a result that isn't OK.
	Do string `json:"do,omitempty"`
}

// Report is all checks.
type Report struct {
	Checks []Check `json:"checks"`
	// Failed is how many checks failed.
	Failed int `json:"failed"`
}

// objects are what the checks look at.
type objects struct {
	server, client string
	managers       []appsv1.Deployment
	agents         []appsv1.DaemonSet
	pods           []corev1.Pod
	nodes          []corev1.Node
	csiNodes       []storagev1.CSINode
	drivers        []storagev1.CSIDriver
	classes        []storagev1.StorageClass
	backends       []stowagev1alpha1.StorageBackend
	// leases are those of nodes, lead those in the manager's namespace.
	leases, lead []coordinationv1.Lease
	// served are the resources of Stowage's API group that the API server serves.
	served []string
	// denied are rights that a program lacks, asked how many were asked; unasked is why none
	// could be asked.
	denied  []string
	asked   int
	unasked string
	// controllers are the --controllers flags of kube-controller-managers that can be seen.
	controllers []string
	now         time.Time
}
