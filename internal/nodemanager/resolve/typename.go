package resolve

import (
	"reflect"
	"strings"

	"github.com/stowage-dev/stowage/internal/nodemanager/volumes"
)

// typeOf is the name of a volume's type in the API, such as secret. It has the driver's name for
// CSI, and the mode for block volumes.
func typeOf(spec volumes.Spec) string {
	name := sourceName(spec)
	if driver := driverOf(spec); driver != "" {
		name += " with driver " + driver
	}
	if spec.IsBlock() {
		name += " and volumeMode Block"
	}
	return name
}

// sourceName is the JSON name of a volume's source.
func sourceName(spec volumes.Spec) string {
	if spec.PersistentVolume != nil {
		return SetField(spec.PersistentVolume.Spec.PersistentVolumeSource)
	}
	return SetField(spec.Volume.VolumeSource)
}

// driverOf is the CSI driver of a volume; "" if it has none.
func driverOf(spec volumes.Spec) string {
	switch {
	case spec.PersistentVolume != nil && spec.PersistentVolume.Spec.CSI != nil:
		return spec.PersistentVolume.Spec.CSI.Driver
	case spec.PersistentVolume == nil && spec.Volume.CSI != nil:
		return spec.Volume.CSI.Driver
	default:
		return ""
	}
}

// SetField is the JSON name of the one pointer that is set in a union of the Kubernetes API. By
// reflection, so that it names newer types, too.
func SetField(union any) string {
	value := reflect.ValueOf(union)
	for i := range value.NumField() {
		if !value.Field(i).IsNil() {
			name, _, _ := strings.Cut(value.Type().Field(i).Tag.Get("json"), ",")
			return name
		}
	}
	return "unknown"
}
