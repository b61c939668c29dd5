package nodemanager

import (
	"reflect"
	"strings"

	"github.com/stowage-dev/stowage/internal/nodemanager/volumes"
)

// typeOf is the name of a volume's type as its author wrote it, such as secret;
// for those of a CSI driver with the driver's name, and for devices with the mode.
func typeOf(spec volumes.Spec) string {
	if spec.PersistentVolume == nil {
		return setField(spec.Volume.VolumeSource)
	}
	name := setField(spec.PersistentVolume.Spec.PersistentVolumeSource)
	if spec.PersistentVolume.Spec.CSI != nil {
		name += " with driver " + spec.PersistentVolume.Spec.CSI.Driver
	}
	if spec.IsBlock() {
		name += " and volumeMode Block"
	}
	return name
}

// setField is the JSON name of the one pointer that is set in a union of the
// Kubernetes API. Reflection, so that types which this version has never heard
// of are named too.
func setField(union any) string {
	value := reflect.ValueOf(union)
	for i := range value.NumField() {
		if !value.Field(i).IsNil() {
			name, _, _ := strings.Cut(value.Type().Field(i).Tag.Get("json"), ",")
			return name
		}
	}
	return "unknown"
}
