package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/test/apiserver"
	"github.com/stowage-dev/stowage/test/controlplane"
)

// uninstalled: who removes Stowage keeps the volumes, with their data, and the pods that
// use them; installed again, it goes on with them.
func uninstalled(s *scene) {
	leaving, coming := s.writers("leaves", node1, directories, images, shared), s.writers("comes", node1, everyKind...)
	s.Do("pods come that are to leave", leaving.createAll)
	watched := s.watched(everyKind...)
	s.Do("those that are to leave write, too", leaving.begun)
	s.Do("Stowage is removed, with make undeploy", s.undeploy)
	s.Soon("no program, role or driver of it is left", s.isRemoved)
	s.Do("StorageBackends, and what knows the volumes, are there", s.storageStays)
	s.Do("the pods write on", watched.goOn)
	s.Do("some of them are deleted, and some are created", func() error { return s.changeMeanwhile(leaving, coming) })
	s.Do("it is installed again", s.bed.apply)
	s.Soon("managers and agents are Ready", func() error {
		return errors.Join(s.bed.managersAreReady(), s.bed.agentsAreReady(), s.bed.Each(s.bed.hasDrivers), s.bed.backendsAreReady())
	})
	s.Do("the new pods run, with new volumes", coming.begun)
	s.Do("those that were deleted are gone, and their volumes are nowhere on the node", leaving.end)
	s.Do("the others write on", watched.goOn)
	watched.unchanged()
	s.Do("all pods go", func() error { return errors.Join(coming.end(), watched.end()) })
	again := s.pod("again", on(node1), with(watched.writers[0].claims[3].Name))
	s.Do("a new one finds what was written before", func() error {
		return errors.Join(s.launch(again), s.says(again.Name, "head -n 1 /data/lines", "1"))
	})
}

// undeploy removes Stowage as users do.
func (s *scene) undeploy() error {
	kubectl, err := controlplane.Binary("kubectl")
	if err == nil {
		_, err = run(s.Ctx, "", "make", "--directory="+apiserver.Repository(), "undeploy",
			"OVERLAY="+s.bed.overlayFolder(), "KUBECTL="+kubectl+" --kubeconfig="+s.bed.kubeconfig())
	}
	return err
}

// removedKinds are those of which nothing of Stowage's is to be left.
const removedKinds = "namespaces,clusterroles,clusterrolebindings,validatingadmissionpolicies,validatingadmissionpolicybindings,csidrivers"

func (s *scene) isRemoved() error {
	left, err := s.bed.kubectl(s.Ctx, "", "get", removedKinds, "--output=name")
	if err != nil {
		return err
	}
	var ours []string
	for _, name := range strings.Fields(left) {
		if strings.Contains(name, "stowage") {
			ours = append(ours, name)
		}
	}
	if len(ours) > 0 {
		return fmt.Errorf("left is %q", ours)
	}
	return nil
}

// storageStays checks that what users and administrators made is there. Claims and
// volumes are the witness's.
func (s *scene) storageStays() error {
	problems := []error{}
	for _, backend := range s.bed.backends() {
		problems = append(problems, s.get(backend))
	}
	volumes, err := s.volumes()
	if err != nil {
		return err
	}
	for _, volume := range volumes {
		if volume.Spec.CSI.Driver != stowagev1alpha1.LocalDriver {
			continue
		}
		local := &stowagev1alpha1.LocalVolume{}
		local.Name = volume.Spec.CSI.VolumeHandle
		problems = append(problems, s.get(local))
		if local.DeletionTimestamp != nil {
			problems = append(problems, fmt.Errorf("LocalVolume %s is being deleted", local.Name))
		}
	}
	return errors.Join(problems...)
}

// changeMeanwhile deletes pods and creates others while nobody looks after volumes.
func (s *scene) changeMeanwhile(leaving, coming *writers) error {
	var problems []error
	for _, pod := range leaving.pods {
		problems = append(problems, s.bed.Client.Delete(s.Ctx, pod))
	}
	return errors.Join(append(problems, coming.createAll())...)
}

// volumes are those of all claims of the story.
func (s *scene) volumes() ([]corev1.PersistentVolume, error) {
	all := &corev1.PersistentVolumeList{}
	if err := s.bed.Client.List(s.Ctx, all); err != nil {
		return nil, err
	}
	mine := slices.DeleteFunc(all.Items, func(volume corev1.PersistentVolume) bool {
		return volume.Spec.CSI == nil || volume.Spec.ClaimRef == nil || volume.Spec.ClaimRef.Namespace != s.namespace
	})
	return mine, nil
}
