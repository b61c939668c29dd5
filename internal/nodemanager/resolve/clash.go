package resolve

import (
	"fmt"

	"github.com/stowage-dev/stowage/internal/nodemanager/podclaims"
	"github.com/stowage-dev/stowage/internal/nodemanager/volumes"
)

// checkName refuses a volume object with the name and type of a volume without a claim in the same
// pod. Both would have the same directory.
func checkName(resolved *ResolvedVolume) error {
	if resolved.PersistentVolume == nil || resolved.IsBlock() {
		return nil
	}
	for _, own := range resolved.Pod.Spec.Volumes {
		isOwn := podclaims.ClaimNameOf(resolved.Pod, own) == ""
		if isOwn && own.Name == resolved.Name() && resolved.Plugin.CanHandle(volumes.Spec{Pod: resolved.Pod, Volume: own}) {
			return fmt.Errorf("volume object %s and another volume of the pod have the same name and type, and would have the same directory: "+
				"give the pod's volume another name", own.Name)
		}
	}
	return nil
}
