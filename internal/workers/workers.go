// Package workers is how many objects are reconciled at once, as the flag --workers says it.
//
// Programs put the flag's value into their controller manager. Reconcilers ask for it when they are
// set up, and have a usual number of their own. It decides nothing while they run.
package workers

import (
	"cmp"

	"sigs.k8s.io/controller-runtime/pkg/manager"
)

// Resources for which programs take a number.
const (
	Claims      = "persistentvolumeclaims"
	Volumes     = "persistentvolumes"
	Attachments = "volumeattachments"
	Nodes       = "nodes"
	Pods        = "pods"
	NodeVolumes = "nodevolumes"
)

// Of returns how many objects of a resource are reconciled at once: the usual number, unless
// the manager's GroupKindConcurrency has another.
func Of(mgr manager.Manager, resource string, usual int) int {
	return cmp.Or(mgr.GetControllerOptions().GroupKindConcurrency[resource], usual)
}
