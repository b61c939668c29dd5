package upgrade_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/nodemanager/container"
	"github.com/stowage-dev/stowage/test/harness/fixture"
	"github.com/stowage-dev/stowage/test/harness/guest"
	"github.com/stowage-dev/stowage/test/harness/scenario"
)

// Classes, each of a backend of its name.
const (
	directories = "directories"
	images      = "images"
	disks       = "disks"
	shares      = "shares"
)

// kind is one of the volumes that pods have.
type kind struct {
	name string
	// class of the claim. Empty: the pod needs none.
	class, size string
	block       bool
}

var kinds = []kind{
	{name: "directory", class: directories, size: "64Mi"},
	{name: "image", class: images, size: "64Mi"},
	{name: "raw", class: images, size: "32Mi", block: true},
	{name: "disk", class: disks, size: "10Gi"},
	{name: "rawdisk", class: disks, size: "10Gi", block: true},
	{name: "share", class: shares, size: "1Gi"},
	{name: legacy},
	{name: scratch},
}

// Volumes without a claim: a directory on a server, and a pod's own folder on a backend's share.
const (
	legacy  = "legacy"
	scratch = "scratch"
)

// podGroup is the fsGroup of pods.
const podGroup = 4711

// pod is one with a container, which runs.
type pod struct {
	*corev1.Pod
	kinds []kind
	// container is the name of the present one.
	container string
}

// claimOf is the claim of a kind of volume, for the pods of an owner.
func claimOf(owner string, of kind) *corev1.PersistentVolumeClaim {
	claim := fixture.Claim(fixture.ClaimNamed(owner+"-"+of.name), fixture.InClass(of.class), fixture.Asking(of.size))
	if of.block {
		claim.Spec.VolumeMode = ptr.To(corev1.PersistentVolumeBlock)
	}
	if of.class == shares {
		claim.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteMany}
	}
	return claim
}

// newPod is a pod with volumes of these kinds, whose claims are an owner's. Its container has each
// file system twice: all of it, and a part.
func (s *spec) newPod(name, owner string, has ...kind) *pod {
	made := fixture.Pod(name, s.node.Name)
	made.Spec.SecurityContext = &corev1.PodSecurityContext{FSGroup: ptr.To[int64](podGroup)}
	main := &made.Spec.Containers[0]
	for _, each := range has {
		made.Spec.Volumes = append(made.Spec.Volumes, corev1.Volume{Name: each.name, VolumeSource: s.source(owner, each)})
		if each.block {
			main.VolumeDevices = append(main.VolumeDevices, corev1.VolumeDevice{Name: each.name, DevicePath: "/dev/" + each.name})
			continue
		}
		main.VolumeMounts = append(main.VolumeMounts, corev1.VolumeMount{Name: each.name, MountPath: "/" + each.name},
			corev1.VolumeMount{Name: each.name, MountPath: "/" + each.name + "-part", SubPath: "part"})
	}
	return &pod{Pod: made, kinds: has}
}

func (s *spec) source(owner string, of kind) corev1.VolumeSource {
	switch of.name {
	case legacy:
		return corev1.VolumeSource{NFS: &corev1.NFSVolumeSource{Server: guest.Address, Path: s.legacyDir()}}
	case scratch:
		return corev1.VolumeSource{CSI: &corev1.CSIVolumeSource{
			Driver: stowagev1alpha1.NFSDriver, VolumeAttributes: map[string]string{stowagev1alpha1.BackendAttribute: shares},
		}}
	default:
		return corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claimOf(owner, of).Name}}
	}
}

// run creates pods, waits until their volumes are mounted, and starts their containers.
func (s *spec) run(pods ...*pod) error {
	for _, each := range pods {
		if err := s.stowage.Create(s.ctx, each.Pod); err != nil {
			return err
		}
	}
	for _, each := range pods {
		if err := errors.Join(s.stowage.AwaitMounted(s.ctx, each.Pod), s.start(each, each.Name), s.reports(each)); err != nil {
			return err
		}
	}
	return nil
}

// start starts a container of a pod.
func (s *spec) start(of *pod, named string) error {
	of.container = named
	request := Container{PodDir: podDir(of), Container: of.Spec.Containers[0].Name, Name: named}
	if err := s.node.Call(s.ctx, "Containers.Start", request, &guest.Nothing{}); err != nil {
		return err
	}
	return s.worksOn(of)
}

func podDir(of *pod) string { return filepath.Join(guest.AgentRoot, "pods", string(of.UID)) }

// reports writes to the status of a pod that its container runs, as a runtime does.
func (s *spec) reports(of *pod) error {
	return s.reportsState(of, corev1.ContainerState{Running: &corev1.ContainerStateRunning{}})
}

func (s *spec) reportsState(of *pod, state corev1.ContainerState) error {
	before := of.DeepCopy()
	of.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: of.Spec.Containers[0].Name, Image: of.Spec.Containers[0].Image, State: state}}
	return s.stowage.Client.Status().Patch(s.ctx, of.Pod, client.MergeFrom(before))
}

// stop ends the container of a pod, and reports that.
func (s *spec) stop(of *pod) error {
	if err := s.node.Call(s.ctx, "Containers.Stop", of.container, &guest.Nothing{}); err != nil {
		return err
	}
	return s.reportsState(of, corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{}})
}

// worksOn waits until the containers of pods have worked in all their volumes more often than
// before. One that met an error has ended.
func (s *spec) worksOn(pods ...*pod) error {
	for _, each := range pods {
		var before, now int64
		if err := s.node.Call(s.ctx, "Containers.Rounds", each.container, &before); err != nil {
			return err
		}
		err := scenario.Eventually(s.ctx, func() error {
			err := s.node.Call(s.ctx, "Containers.Rounds", each.container, &now)
			if err == nil && now < before+3 {
				err = fmt.Errorf("container %s worked %d times, after %d before", each.container, now, before)
			}
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// described is what a new container of a pod is to see.
func (s *spec) described(of *pod) (described container.Description, err error) {
	var content string
	path := filepath.Join(podDir(of), "containers", of.Spec.Containers[0].Name, "mounts.json")
	if err = s.node.Call(s.ctx, "Files.Read", path, &content); err == nil {
		err = json.Unmarshal([]byte(content), &described)
	}
	return described, err
}

// places are where on the node the volumes of a pod are for a new container: a file in each file
// system, or the device, by kind.
func (s *spec) places(of *pod) (map[string]string, error) {
	described, err := s.described(of)
	places := map[string]string{}
	for _, each := range described.Mounts {
		places[filepath.Base(each.Destination)] = filepath.Join(each.Source, "kept")
	}
	for _, each := range described.Devices {
		places[filepath.Base(each.Path)] = each.Source
	}
	return places, err
}

// writes has a pod write to each of its volumes what it keeps.
func (s *spec) writes(of *pod) error {
	places, err := s.places(of)
	for _, each := range of.kinds {
		err = errors.Join(err, s.node.Write(s.ctx, places[each.name], kept(each)))
	}
	return err
}

// finds reports whether a pod finds in each of its volumes what was kept there.
func (s *spec) finds(of *pod, has ...kind) error {
	places, err := s.places(of)
	if err != nil {
		return err
	}
	for _, each := range has {
		var got string
		if err := s.node.Call(s.ctx, "Machine.Begins", guest.File{Path: places[each.name], Content: kept(each)}, &got); err != nil {
			return err
		}
		if got != kept(each) {
			return fmt.Errorf("pod %s reads %q from its volume %s, not %q", of.Name, got, each.name, kept(each))
		}
	}
	return nil
}

func kept(in kind) string { return "kept in " + in.name }
