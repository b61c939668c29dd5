package upgrade_test

import (
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"strings"

	corev1 "k8s.io/api/core/v1"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/test/harness/fixture"
	"github.com/stowage-dev/stowage/test/harness/guest"
	"github.com/stowage-dev/stowage/test/harness/scenario"
)

// installed: the earlier Stowage, with a backend of each kind.
func installed(s *spec) {
	scenario.Step("etcd, kube-apiserver, and manager and agent of the earlier commit start", s.startStowage)
	for _, backend := range s.backends() {
		scenario.Step("an administrator creates backend "+backend.Name, func() error { return s.stowage.Create(s.ctx, backend) })
	}
	for _, backend := range s.backends() {
		scenario.Soon(s.ctx, "backend "+backend.Name+" is Ready", func() error { return s.stowage.BackendIsReady(s.ctx, backend.Name) })
	}
}

func (s *spec) backends() []*stowagev1alpha1.StorageBackend {
	local := func(name string, layout stowagev1alpha1.LocalLayout) *stowagev1alpha1.StorageBackend {
		return fixture.LocalBackend(name, func(backend *stowagev1alpha1.StorageBackend) {
			backend.Spec.Local.Layout = layout
			backend.Spec.Local.Path = stowagev1alpha1.AbsolutePath(filepath.Join(s.stowage.Folder.Disks(), name))
		})
	}
	cloud := fixture.LocalBackend(disks, func(backend *stowagev1alpha1.StorageBackend) {
		backend.Spec.Local = nil
		backend.Spec.GCE = &stowagev1alpha1.GCEBackend{Project: project, Zones: []string{zone}, Endpoint: endpoint}
	})
	share := fixture.LocalBackend(shares, func(backend *stowagev1alpha1.StorageBackend) {
		backend.Spec.Local = nil
		backend.Spec.NFS = &stowagev1alpha1.NFSBackend{
			Server: guest.Address, Path: stowagev1alpha1.AbsolutePath(s.volumesDir()), NFSVersion: "4.1", AllowInline: true,
			MountOptions: []stowagev1alpha1.MountOption{stowagev1alpha1.MountOption(s.server.PortOption()), stowagev1alpha1.MountOption(s.server.MountdOption())},
		}
	})
	return []*stowagev1alpha1.StorageBackend{
		local(directories, stowagev1alpha1.LayoutDirectory), local(images, stowagev1alpha1.LayoutImage), cloud, share,
	}
}

// mountedEarlier: pods with each kind of volume, on the node of the earlier agent.
func mountedEarlier(s *spec) {
	for _, owner := range []string{"staying", "leaving"} {
		scenario.Step("claims of pods "+owner+" are bound", func() (err error) {
			for _, each := range kinds {
				if each.class != "" {
					err = errors.Join(err, s.stowage.CreateBound(s.ctx, claimOf(owner, each)))
				}
			}
			return err
		})
	}
	for _, each := range kinds {
		s.staying = append(s.staying, s.newPod(each.name, "staying", each))
	}
	s.leaving = s.newPod("leaving", "leaving", kinds...)
	scenario.Step("a pod with each kind of volume runs, and one with all kinds", func() error {
		return s.run(append(s.staying, s.leaving)...)
	})
	scenario.Step("the pods write files, one of which only its owner may read", func() (err error) {
		for _, each := range s.staying {
			err = errors.Join(err, s.writes(each))
		}
		return errors.Join(err, s.makesPrivate())
	})
	scenario.Step("what is mounted is the earlier layout: no volume is staged at a kubelet's path", func() error {
		staged, err := s.staged()
		if err == nil && len(staged) > 0 {
			err = fmt.Errorf("staged are %q", staged)
		}
		var earlier []string
		for _, folder := range earlierFolders {
			var mounts []string
			err = errors.Join(err, s.node.Call(s.ctx, "Files.Mounts", filepath.Join(guest.AgentRoot, folder), &mounts))
			earlier = append(earlier, mounts...)
		}
		if err == nil && len(earlier) == 0 {
			err = errors.New("the folders of the earlier layout have no mounts")
		}
		return err
	})
}

// earlierFolders are those in which only agents of the earlier layout mount volumes of claims.
var earlierFolders = []string{"images", "disks"}

// staged is the records of volumes that are staged as a kubelet does.
func (s *spec) staged() (records []string, err error) {
	var files []string
	err = s.node.Call(s.ctx, "Machine.Files", guest.AgentRoot, &files)
	for _, file := range files {
		if in, _ := filepath.Rel(filepath.Join(guest.AgentRoot, "plugins"), file); filepath.IsLocal(in) && filepath.Base(file) == "vol_data.json" {
			records = append(records, file)
		}
	}
	return records, err
}

// ofDisk is the pod with a cloud's disk.
func (s *spec) ofDisk() *pod {
	for _, each := range s.staying {
		if each.Name == "disk" {
			return each
		}
	}
	return nil
}

func (s *spec) makesPrivate() error {
	places, err := s.places(s.ofDisk())
	return errors.Join(err, s.node.Call(s.ctx, "Machine.Private", places["disk"], &guest.Nothing{}))
}

// ownersStay reports whether the fsGroup is where the earlier agent applied it, and nowhere else.
func (s *spec) ownersStay() error {
	places, err := s.places(s.ofDisk())
	if err != nil {
		return err
	}
	for path, want := range map[string]string{places["disk"]: "group 0, mode 100600", filepath.Dir(places["disk"]): fmt.Sprintf("group %d, mode 42775", podGroup)} {
		var got string
		if err := s.node.Call(s.ctx, "Machine.Owner", path, &got); err != nil {
			return err
		}
		if got != want {
			return fmt.Errorf("%s has %s, not %s", path, got, want)
		}
	}
	return nil
}

// betweenAgents: manager and objects are replaced first, as by kubectl apply, and then the agent.
func betweenAgents(s *spec) {
	var err error
	s.mounted, err = s.mountsOfPods()
	scenario.Step("the pods have their mounts", func() error { return err })
	scenario.Step("CRDs, roles and the manager are replaced", func() error { return s.stowage.Upgrade(s.ctx) })
	scenario.Step("the pods' containers work on beside the earlier agent", func() error { return s.worksOn(append(s.staying, s.leaving)...) })
	scenario.Step("the earlier agent is stopped, and the containers work on", func() error {
		return errors.Join(s.stowage.StopAgent(s.ctx, s.node.Name), s.worksOn(append(s.staying, s.leaving)...))
	})
	scenario.Step("one pod's container ends, and the pod is deleted", func() error {
		return errors.Join(s.stop(s.leaving), s.stowage.Client.Delete(s.ctx, s.leaving.Pod))
	})
}

// mountsOfPods is the mounts of the pods that stay.
func (s *spec) mountsOfPods() (map[string]int, error) {
	all := map[string]int{}
	for _, each := range s.staying {
		var mounts Mounts
		if err := s.node.Call(s.ctx, "Machine.Mounts", podDir(each), &mounts); err != nil {
			return nil, err
		}
		if len(mounts.IDs) == 0 {
			return nil, fmt.Errorf("pod %s has no mount", each.Name)
		}
		maps.Copy(all, mounts.IDs)
	}
	return all, nil
}

// takenOver: the new agent starts where the earlier one was.
func takenOver(s *spec) {
	scenario.Step("the new agent starts", func() error { return s.stowage.StartAgent(s.ctx, s.node.Name) })
	scenario.Step("the pod that was deleted in between goes, with its mounts", func() error {
		if err := s.stowage.AwaitGone(s.ctx, s.leaving.Pod); err != nil {
			return err
		}
		return errors.Join(s.node.Mounts(s.ctx, podDir(s.leaving), 0), s.worksOn(s.staying...))
	})
	scenario.Soon(s.ctx, "every volume of a claim is staged as a kubelet does, and the earlier folders are gone", s.isTakenOver)
	scenario.Step("the pods' containers have worked all the time", func() error { return s.worksOn(s.staying...) })
	scenario.Step("no mount of a pod was made again", s.keptMounts)
	scenario.Step("the volumes are ready, and their pods find what they kept", func() (err error) {
		for _, each := range s.staying {
			err = errors.Join(err, s.stowage.AwaitMounted(s.ctx, each.Pod), s.finds(each, each.kinds...))
		}
		return err
	})
	scenario.Step("the fsGroup isn't applied again", s.ownersStay)
	scenario.Step("the agent is killed and starts again, and nothing changes", func() error {
		return errors.Join(s.stowage.KillAgent(s.ctx, s.node.Name), s.stowage.StartAgent(s.ctx, s.node.Name),
			s.worksOn(s.staying...), s.isTakenOver(), s.keptMounts())
	})
}

func (s *spec) isTakenOver() error {
	staged, err := s.staged()
	if want := len(claimed()); err == nil && len(staged) != want {
		err = fmt.Errorf("%d volumes are staged, not %d: %q", len(staged), want, staged)
	}
	for _, folder := range earlierFolders {
		err = errors.Join(err, s.node.Mounts(s.ctx, filepath.Join(guest.AgentRoot, folder), 0), s.node.IsEmpty(s.ctx, filepath.Join(guest.AgentRoot, folder)))
	}
	// A volume of source nfs is still mounted there, and so is a pod's own folder, until its pod
	// goes.
	return errors.Join(err, s.node.Mounts(s.ctx, filepath.Join(guest.AgentRoot, "nfs"), 2))
}

// claimed is the kinds that have a claim.
func claimed() (has []kind) {
	for _, each := range kinds {
		if each.class != "" {
			has = append(has, each)
		}
	}
	return has
}

// keptMounts reports whether all mounts of the time before the upgrade are the same.
func (s *spec) keptMounts() error {
	now, err := s.mountsOfPods()
	if err != nil {
		return err
	}
	for path, id := range s.mounted {
		if now[path] != id {
			err = errors.Join(err, fmt.Errorf("%s was mount %d, and is %d", path, id, now[path]))
		}
	}
	return err
}

// usedOn: what was taken over serves pods and containers as what the new agent mounts.
func usedOn(s *spec) {
	s.joining = s.newPod("joining", "staying", kinds...)
	scenario.Step("a new pod with all these volumes runs", func() error { return s.run(s.joining) })
	scenario.Step("it finds what the others kept", func() error {
		// The folder on a share is each pod's own.
		return s.finds(s.joining, kinds[:len(kinds)-1]...)
	})
	scenario.Step("what it writes, the others find", func() (err error) {
		err = s.writes(s.joining)
		for _, each := range s.staying {
			err = errors.Join(err, s.finds(each, each.kinds...))
		}
		return err
	})
	scenario.Step("each container ends, and starts again from what the new agent described", func() (err error) {
		for _, each := range s.staying {
			err = errors.Join(err, s.node.Call(s.ctx, "Containers.Stop", each.container, &guest.Nothing{}), s.start(each, each.Name+"-again"))
		}
		return err
	})
}

// renamed: local volumes, whose objects' kind is another one since.
func renamed(s *spec) {
	scenario.Soon(s.ctx, "every local volume has a NodeVolume, which is there and healthy", s.haveNodeVolumes)
	scenario.Step("no claim lost its volume", func() error {
		claims := &corev1.PersistentVolumeClaimList{}
		err := s.stowage.Client.List(s.ctx, claims)
		for _, claim := range claims.Items {
			if claim.Status.Phase != corev1.ClaimBound {
				err = errors.Join(err, fmt.Errorf("claim %s is %s", claim.Name, claim.Status.Phase))
			}
		}
		return err
	})
	scenario.Step("an administrator removes the earlier kinds with all their objects", s.removeEarlierKinds)
	scenario.Step("the pods' containers work on, and the volumes stay", func() error {
		return errors.Join(s.worksOn(append(s.staying, s.joining)...), s.haveNodeVolumes())
	})
}

func (s *spec) haveNodeVolumes() error {
	volumes, there := &stowagev1alpha1.NodeVolumeList{}, map[string]stowagev1alpha1.NodeVolume{}
	if err := s.stowage.Client.List(s.ctx, volumes); err != nil {
		return err
	}
	for _, each := range volumes.Items {
		there[each.Name] = each
	}
	pvs := &corev1.PersistentVolumeList{}
	if err := s.stowage.Client.List(s.ctx, pvs); err != nil {
		return err
	}
	found := 0
	for _, pv := range pvs.Items {
		if pv.Spec.CSI == nil || pv.Spec.CSI.Driver != stowagev1alpha1.LocalDriver {
			continue
		}
		found++
		if err := isProvisioned(there[pv.Spec.CSI.VolumeHandle]); err != nil {
			return fmt.Errorf("volume %s of claim %s: %w; %s", pv.Name, pv.Spec.ClaimRef.Name, err, s.stowage.EventsOf(s.ctx, pv.Name))
		}
	}
	if found == 0 {
		return errors.New("there is no local volume")
	}
	return nil
}

func isProvisioned(volume stowagev1alpha1.NodeVolume) error {
	for _, condition := range volume.Status.Conditions {
		if condition.Type == stowagev1alpha1.ProvisionedCondition && condition.Status == "True" {
			return nil
		}
	}
	return fmt.Errorf("its NodeVolume says %+v", volume.Status.Conditions)
}

// removeEarlierKinds takes the finalizers off first, which nothing else does any more.
func (s *spec) removeEarlierKinds() error {
	for _, kind := range []string{"localvolumes", "localdisks", "localrecyclings"} {
		kubectl, err := s.stowage.Kubectl(s.ctx, "get", kind, "--output=name")
		if err != nil {
			return err
		}
		objects, err := kubectl.Output()
		if err != nil {
			return fmt.Errorf("listing %s: %w", kind, err)
		}
		for _, object := range strings.Fields(string(objects)) {
			if err := s.stowage.Run(s.ctx, "patch", object, "--type=merge", `--patch={"metadata":{"finalizers":null}}`); err != nil {
				return err
			}
		}
		if err := s.stowage.Run(s.ctx, "delete", "crd", kind+".stowage.dev", "--timeout=30s"); err != nil {
			return err
		}
	}
	return nil
}
