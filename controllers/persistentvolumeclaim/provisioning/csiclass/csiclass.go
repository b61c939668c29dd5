// Package csiclass reads what a StorageClass of a CSI driver asks for, and makes the volume object that
// external-provisioner would have made. It refuses what a class must not choose. It reads nothing
// else, and writes nothing.
package csiclass

import (
	"maps"
	"regexp"
	"slices"
	"strings"

	storagev1 "k8s.io/api/storage/v1"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/storageclass"
)

const (
	// formerSecretPrefix is that of the parameters for Secrets before Kubernetes 1.15.
	formerSecretPrefix = "csi"
	// maxParameters and maxParameterBytes bound what a class makes a driver's call carry.
	maxParameters, maxParameterBytes = 256, 32 << 10
	// maxMountOptions and maxMountOptionBytes bound the same for its mountOptions.
	maxMountOptions, maxMountOptionBytes = 64, 4 << 10
)

// fsTypeForm is that of names of file systems, as in a StorageBackend.
var fsTypeForm = regexp.MustCompile(`^[a-z0-9._-]{0,63}$`)

// Fill adds to a request what a class of a CSI driver asks for that isn't one of
// Stowage's. The driver gets all parameters but those of external-provisioner.
func Fill(request *backend.Request, class *storagev1.StorageClass, object *stowagev1alpha1.StorageBackend, namespace string) error {
	if err := checkBounds(class); err != nil {
		return err
	}
	request.MountOptions = class.MountOptions
	for _, key := range slices.Sorted(maps.Keys(class.Parameters)) {
		value := class.Parameters[key]
		switch {
		case key == stowagev1alpha1.BackendParameter && value == object.Name:
			// The provisioner says the same.
		case key == stowagev1alpha1.BackendParameter:
			return backend.Invalid.Errorf("parameter %q is %.200q, and the StorageBackend of provisioner %s is %s: use a class without the parameter",
				key, value, class.Provisioner, object.Name)
		case key == stowagev1alpha1.FSTypeParameter || key == storageclass.FormerFSType:
			if err := setFSType(request, key, value); err != nil {
				return err
			}
		case strings.HasPrefix(key, storageclass.SidecarPrefix):
			if err := checkSecret(key, value, object, namespace); err != nil {
				return err
			}
		case namesFormerSecret(key):
			return backend.Invalid.Errorf("parameter %.200q is not supported: set spec.csi.secrets of StorageBackend %s, and use a class without it", key, object.Name)
		default:
			if err := setParameter(request, key, value, object); err != nil {
				return err
			}
		}
	}
	return nil
}

// namesFormerSecret reports whether a parameter names a Secret in the way before Kubernetes 1.15.
func namesFormerSecret(key string) bool {
	return strings.HasPrefix(key, formerSecretPrefix) && (strings.HasSuffix(key, "SecretName") || strings.HasSuffix(key, "SecretNamespace"))
}

func setFSType(request *backend.Request, key, value string) error {
	if request.FSType != "" && request.FSType != value {
		return backend.Invalid.Errorf("parameters %q and %q differ: use a class with one of them", stowagev1alpha1.FSTypeParameter, storageclass.FormerFSType)
	}
	if !fsTypeForm.MatchString(value) {
		return backend.Invalid.Errorf("parameter %q: %.200q is no name of a file system", key, value)
	}
	request.FSType = value
	return nil
}

// setParameter adds a parameter for the driver. That of the StorageBackend is an administrator's:
// no class replaces it.
func setParameter(request *backend.Request, key, value string, object *stowagev1alpha1.StorageBackend) error {
	if set, has := object.Spec.CSI.Parameters[key]; has && string(set) != value {
		return backend.Invalid.Errorf("parameter %.200q is set by StorageBackend %s already: use a class without it", key, object.Name)
	}
	if request.Parameters == nil {
		request.Parameters = map[string]string{}
	}
	request.Parameters[key] = value
	return nil
}

func checkBounds(class *storagev1.StorageClass) error {
	size := 0
	for key, value := range class.Parameters {
		size += len(key) + len(value)
	}
	if len(class.Parameters) > maxParameters || size > maxParameterBytes {
		return backend.Invalid.Errorf("it has %d parameters of %d bytes: use a class with at most %d parameters and %d bytes",
			len(class.Parameters), size, maxParameters, maxParameterBytes)
	}
	size = len(strings.Join(class.MountOptions, ""))
	if len(class.MountOptions) > maxMountOptions || size > maxMountOptionBytes {
		return backend.Invalid.Errorf("it has %d mountOptions of %d bytes: use a class with at most %d options and %d bytes",
			len(class.MountOptions), size, maxMountOptions, maxMountOptionBytes)
	}
	return nil
}

// secretsOf returns the Secrets of a StorageBackend, by the part of external-provisioner's
// parameters that names the call.
func secretsOf(object *stowagev1alpha1.StorageBackend) map[string]*stowagev1alpha1.SecretReference {
	of := object.Spec.CSI.Secrets
	return map[string]*stowagev1alpha1.SecretReference{
		"provisioner-secret": of.Provision, "controller-publish-secret": of.ControllerPublish, "controller-expand-secret": of.ControllerExpand, "controller-modify-secret": of.ControllerModify,
		"node-stage-secret": of.NodeStage, "node-publish-secret": of.NodePublish, "node-expand-secret": of.NodeExpand,
	}
}

// checkSecret refuses a parameter that names another Secret than the StorageBackend does: a class
// must not choose which Secrets the manager reads.
func checkSecret(key, value string, object *stowagev1alpha1.StorageBackend, namespace string) error {
	call, isNamespace := strings.CutSuffix(strings.TrimPrefix(key, storageclass.SidecarPrefix), "-namespace")
	if !isNamespace {
		call = strings.TrimSuffix(call, "-name")
	}
	secret, known := secretsOf(object)[call]
	if !known || call == strings.TrimPrefix(key, storageclass.SidecarPrefix) {
		return backend.Invalid.Errorf("parameter %.200q is not supported: there are %q, and those of Secrets", key, stowagev1alpha1.FSTypeParameter)
	}
	if secret == nil {
		return backend.Invalid.Errorf("parameter %q is %.200q, and StorageBackend %s names no such Secret: set its spec.csi.secrets, or use a class without the parameter",
			key, value, object.Name)
	}
	want := secret.Name
	if isNamespace {
		want = namespace
	}
	if value != want {
		return backend.Invalid.Errorf("parameter %q is %.200q, and spec.csi.secrets of StorageBackend %s says %q: use a class without the parameter",
			key, value, object.Name, want)
	}
	return nil
}
