package demo_test

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"google.golang.org/api/compute/v1"
	"google.golang.org/api/option"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/mount"
	"github.com/stowage-dev/stowage/test/harness/cluster"
)

// disks: a disk of a cloud is attached to the node of its pod, and moves with it.
func disks(s *scenario) {
	if cluster.InsideNamespace() {
		s.notShown("attaching a disk makes a loop device, and only root may do that.")
	}
	s.say("A cloud runs beside the cluster: gce-mock, which Google's own client takes for Google.\n"+
		"A second node joins, %s. It has an agent of its own, on this machine as well.", cluster.SecondNode)
	s.do(func() error { return s.cluster.StartSecond(s.ctx) })
	s.apply("cloud.yaml", values{
		"PROJECT": cluster.CloudProject, "ZONE": cluster.CloudZone, "ENDPOINT": s.cluster.CloudEndpoint,
	})
	s.check("the StorageBackend is Ready", "storagebackend/cloud", s.backendIs("cloud", metav1.ConditionTrue, ""))
	volume := s.attachDisk()
	s.quickenDisk(volume)
	s.moveDisk(volume)
	s.kubectl("delete", "pod/after", "pvc/records", "--wait=false")
	s.check("the disk is detached, and gone", "pv/"+volume, s.isGone(volume, &corev1.PersistentVolume{}))
	s.check("no attachment is left", "pv/"+volume, s.attachedTo(volume))
	s.kubectl("delete", "storagebackend/cloud", "--wait=false")
	s.check("the StorageBackend can be deleted", "storagebackend/cloud", s.isGone("cloud", &stowagev1alpha1.StorageBackend{}))
}

// attachDisk: a disk is made for a pod's claim, attached, given a file system, mounted.
func (s *scenario) attachDisk() (volume string) {
	var point mount.Point
	s.apply("claim.yaml", values{"NAME": "records", "CLASS": "cloud", "SIZE": "10Gi"})
	s.apply("pod.yaml", values{"NAME": "before", "CLAIM": "records"})
	volume = "pvc-" + string(s.claim("records").UID)
	s.check("the claim is Bound to a new disk", "pvc/records", s.claimIsBound("records", volume))
	s.check("it is attached to the pod's node", "pod/before", s.attachedTo(volume, cluster.NodeName))
	s.check("it is mounted in the pod's directory", "pod/before", s.mounted("before", volume, &point))
	s.check("the node says that it uses it", "node/"+cluster.NodeName, s.inUse(cluster.NodeName, volume, true))
	s.check("the node knows the disk by its name", "pod/before", s.exists(s.deviceOn(cluster.NodeName, volume), true))
	s.write(point.Path)
	return volume
}

// quickenDisk: the disk gets other IOPS while the pod uses it.
func (s *scenario) quickenDisk(volume string) {
	s.say("The user asks for a quicker disk, by a VolumeAttributesClass. The pod goes on:")
	s.apply("attributes.yaml", nil)
	s.kubectl("patch", "pvc/records", "--type=merge", "-p", `{"spec":{"volumeAttributesClassName":"quick"}}`)
	s.check("the claim says that it has the class", "pvc/records", s.hasAttributes("records", "quick"))
	s.check("the disk has its IOPS and its throughput", "pvc/records", s.performs(volume, 4000, 200))
	s.check("it stayed where it is", "pod/before", s.attachedTo(volume, cluster.NodeName))
}

// hasAttributes holds once a claim's volume has the attributes of a class.
func (s *scenario) hasAttributes(claim, class string) condition {
	return func() error {
		status := s.claim(claim).Status
		if has := ptr.Deref(status.CurrentVolumeAttributesClassName, ""); has != class || status.ModifyVolumeStatus != nil {
			return fmt.Errorf("it has %q, and %+v; its conditions: %+v", has, status.ModifyVolumeStatus, status.Conditions)
		}
		return nil
	}
}

// performs holds if the cloud provisions a disk with these IOPS and MiB/s.
func (s *scenario) performs(disk string, iops, throughput int64) condition {
	return func() error {
		cloud, err := compute.NewService(s.ctx, option.WithEndpoint(s.cluster.CloudEndpoint), option.WithoutAuthentication())
		if err != nil {
			return err
		}
		found, err := cloud.Disks.Get(cluster.CloudProject, cluster.CloudZone, disk).Do()
		if err == nil && (found.ProvisionedIops != iops || found.ProvisionedThroughput != throughput) {
			err = fmt.Errorf("it has %d IOPS and %d MiB/s", found.ProvisionedIops, found.ProvisionedThroughput)
		}
		return err
	}
}

// moveDisk: another pod asks for the disk on another node, and gets it once the first
// one let go of it.
func (s *scenario) moveDisk(volume string) {
	var point mount.Point
	s.say("A pod on the other node asks for the same disk, which can be on one node at a time:")
	s.apply("pod.yaml", values{"NAME": "after", "CLAIM": "records", "NODE": cluster.SecondNode})
	s.check("it waits, with an event that names the other pod", "pod/after", s.podHasEvent("after", "FailedAttachVolume", "before"))
	s.check("the disk stays where it is", "pod/after", s.attachedTo(volume, cluster.NodeName))
	s.say("The first pod goes:")
	s.kubectl("delete", "pod/before", "--wait=false")
	s.check("the disk is attached to the other node alone", "pod/after", s.attachedTo(volume, cluster.SecondNode))
	s.check("it is mounted there", "pod/after", s.mounted("after", volume, &point))
	s.check("what was written on the first node is there", "pod/after", s.greets(point.Path))
	s.check("the first node doesn't use it any more", "node/"+cluster.NodeName, s.inUse(cluster.NodeName, volume, false))
	s.check("nor has it the device", "pod/after", s.exists(s.deviceOn(cluster.NodeName, volume), false))
}

func (s *scenario) deviceOn(node, volume string) string {
	return filepath.Join(s.cluster.Folder.Devices(node), "google-"+volume)
}

// attachedTo holds if a volume is attached to these nodes and to no others.
func (s *scenario) attachedTo(volume string, nodes ...string) condition {
	return func() error {
		list := &storagev1.VolumeAttachmentList{}
		if err := s.cluster.Client.List(s.ctx, list); err != nil {
			return err
		}
		wanted := map[string]bool{}
		for _, node := range nodes {
			wanted[node] = true
		}
		for _, attachment := range list.Items {
			spec := attachment.Spec
			if name := spec.Source.PersistentVolumeName; name == nil || *name != volume {
				continue
			}
			if !wanted[spec.NodeName] || !attachment.Status.Attached {
				return fmt.Errorf("%s to node %s: attached %t, error %v", attachment.Name, spec.NodeName, attachment.Status.Attached, attachment.Status.AttachError)
			}
			delete(wanted, spec.NodeName)
		}
		if len(wanted) > 0 {
			return fmt.Errorf("it isn't attached to %v", wanted)
		}
		return nil
	}
}

// inUse holds if a node says that it uses a volume, or that it doesn't.
func (s *scenario) inUse(node, volume string, want bool) condition {
	return func() error {
		object := &corev1.Node{}
		if err := s.get(node, object); err != nil {
			return err
		}
		uses := slices.ContainsFunc(object.Status.VolumesInUse, func(name corev1.UniqueVolumeName) bool {
			return strings.HasSuffix(string(name), "^"+volume)
		})
		if uses == want {
			return nil
		}
		return fmt.Errorf("node %s uses %v", node, object.Status.VolumesInUse)
	}
}

// podHasEvent holds once a pod has an event of a reason whose message contains a part.
func (s *scenario) podHasEvent(pod, reason, part string) condition {
	return func() error {
		events := &corev1.EventList{}
		if err := s.cluster.Client.List(s.ctx, events, client.InNamespace(corev1.NamespaceDefault)); err != nil {
			return err
		}
		var reported []string
		for _, event := range events.Items {
			if event.InvolvedObject.Kind != "Pod" || event.InvolvedObject.Name != pod {
				continue
			}
			if event.Reason == reason && strings.Contains(event.Message, part) {
				return nil
			}
			reported = append(reported, event.Reason+" "+event.Message)
		}
		return fmt.Errorf("pod %s has events: %s", pod, strings.Join(reported, "; "))
	}
}
