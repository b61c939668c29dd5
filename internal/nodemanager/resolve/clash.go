package resolve

import (
	"fmt"

	"github.com/stowage-dev/stowage/internal/nodemanager/podclaims"
	"github.com/stowage-dev/stowage/internal/nodemanager/volumes"
)

// checkName refuses a claim's volume object that has the name of a volume which the pod
// names itself, if both are of one type: they would have one directory in the pod's, and
// the pod would see one of them in both places.
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
