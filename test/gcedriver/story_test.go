package gcedriver_test

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"testing"
	"time"

	csispec "github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/attach"
	"github.com/stowage-dev/stowage/internal/provisioned"
	"github.com/stowage-dev/stowage/test/harness/cluster"
	. "github.com/stowage-dev/stowage/test/harness/fixture"
)

const (
	// patience is how long anything may take, with its repeats.
	patience = 2 * time.Minute
	// callTimeout is that of calls of the driver: shorter than the slow operations of the cloud.
	callTimeout = 4 * time.Second
)

// story is a cluster with Stowage's manager, the driver and its cloud: all that a claim needs, but
// for kubelets.
type story struct {
	*testbed
	stowage *cluster.Cluster
}

func newStory(t *testing.T) *story {
	t.Helper()
	b := newTestbed(t, "story-"+t.Name(), subjects[0])
	started, err := cluster.Start(t.Context(), cluster.Options{
		Dir: b.path("stowage"), Nodes: []string{node, otherNode}, Step: func(string) func(error) { return func(error) {} },
		Register: func(node *corev1.Node) {
			metav1.SetMetaDataLabel(&node.ObjectMeta, zoneKey, zone)
			metav1.SetMetaDataAnnotation(&node.ObjectMeta, attach.ManagedAnnotation, "true")
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	s := &story{b, started}
	t.Cleanup(func() {
		if err := started.Stop(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
	s.register()
	s.create(&storagev1.CSIDriver{ObjectMeta: metav1.ObjectMeta{Name: driverName}, Spec: storagev1.CSIDriverSpec{AttachRequired: ptr.To(true)}}, s.object())
	s.eventually("the StorageBackend is Ready", func() error {
		object := s.object()
		err := s.get(object)
		if ready := meta.FindStatusCondition(object.Status.Conditions, stowagev1alpha1.ReadyCondition); err == nil && (ready == nil || ready.Status != metav1.ConditionTrue) {
			err = fmt.Errorf("its conditions are %+v", object.Status.Conditions)
		}
		return err
	})
	return s
}

// object is the StorageBackend, which keeps a class of the driver's name.
func (s *story) object() *stowagev1alpha1.StorageBackend {
	object := LocalBackend(driverName)
	object.Spec.Local, object.Spec.StorageClass.AllowVolumeExpansion = nil, true
	object.Spec.CSI = &stowagev1alpha1.CSIBackend{
		Driver: driverName, Endpoint: "unix://" + s.path("csi.sock"), Timeout: metav1.Duration{Duration: callTimeout},
		Parameters: map[string]stowagev1alpha1.CSIParameter{"type": "pd-balanced"},
	}
	return object
}

// register does what the kubelets do with the answer of the driver's node service.
func (s *story) register() {
	s.Helper()
	conn, err := grpc.NewClient(s.endpoint(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		s.Fatal(err)
	}
	defer conn.Close()
	info, err := csispec.NewNodeClient(conn).NodeGetInfo(s.Context(), &csispec.NodeGetInfoRequest{})
	if err != nil || info.GetNodeId() != instanceID(node) || info.GetAccessibleTopology().GetSegments()[zoneKey] != zone {
		s.Fatalf("the driver says that its node is %v: %v", info, err)
	}
	for _, name := range []string{node, otherNode} {
		s.create(&storagev1.CSINode{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: storagev1.CSINodeSpec{
			Drivers: []storagev1.CSINodeDriver{{Name: driverName, NodeID: instanceID(name), TopologyKeys: []string{zoneKey}}},
		}})
	}
}

func (s *story) create(objects ...client.Object) {
	s.Helper()
	for _, object := range objects {
		if err := s.stowage.Client.Create(s.Context(), object); err != nil {
			s.Fatal(err)
		}
	}
}

// delete deletes objects, pods at once: no kubelet ends them.
func (s *story) delete(objects ...client.Object) {
	s.Helper()
	for _, object := range objects {
		if err := s.stowage.Client.Delete(s.Context(), object, client.GracePeriodSeconds(0)); err != nil {
			s.Fatal(err)
		}
	}
}

func (s *story) get(object client.Object) error {
	return s.stowage.Client.Get(s.Context(), client.ObjectKeyFromObject(object), object)
}

// eventually tries until there is no error.
func (b *testbed) eventually(what string, try func() error) {
	b.Helper()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	begun := time.Now()
	for err := try(); err != nil; err = try() {
		if time.Since(begun) > patience {
			b.Fatalf("it doesn't hold that %s: %v", what, err)
		}
		<-tick.C
	}
	b.Logf("%4.1f s: %s", time.Since(begun).Seconds(), what)
}

func (s *story) isBound(claim *corev1.PersistentVolumeClaim) error {
	err := s.get(claim)
	if err == nil && claim.Status.Phase != corev1.ClaimBound {
		err = fmt.Errorf("claim %s is %s: %+v", claim.Name, claim.Status.Phase, claim.Status.Conditions)
	}
	return err
}

func (s *story) isGone(object client.Object) error {
	if err := s.get(object); err != nil {
		return client.IgnoreNotFound(err)
	}
	return fmt.Errorf("%T %s is there", object, object.GetName())
}

// hasDisks checks that the cloud has the disks of these claims, and no other.
func (s *story) hasDisks(claims ...*corev1.PersistentVolumeClaim) error {
	var want, got []string
	for _, claim := range claims {
		want = append(want, provisioned.VolumeID(claim))
	}
	for _, disk := range s.disks() {
		got = append(got, disk.Name)
	}
	slices.Sort(want)
	slices.Sort(got)
	if !slices.Equal(want, got) {
		return fmt.Errorf("the cloud has the disks %q, not %q", got, want)
	}
	return nil
}

// isAttachedTo checks which nodes have the disk of a claim, in the cloud and in the API.
func (s *story) isAttachedTo(claim *corev1.PersistentVolumeClaim, nodes ...string) error {
	var inCloud, inCluster []string
	for _, disk := range s.disks() {
		for _, user := range disk.Users {
			if disk.Name == provisioned.VolumeID(claim) {
				inCloud = append(inCloud, path.Base(user))
			}
		}
	}
	attachments := &storagev1.VolumeAttachmentList{}
	if err := s.stowage.Client.List(s.Context(), attachments); err != nil {
		return err
	}
	for _, one := range attachments.Items {
		if one.Status.Attached && ptr.Deref(one.Spec.Source.PersistentVolumeName, "") == claim.Spec.VolumeName {
			inCluster = append(inCluster, one.Spec.NodeName)
		}
	}
	if !slices.Equal(inCloud, nodes) || !slices.Equal(inCluster, nodes) {
		return fmt.Errorf("it is attached to %q, and by the VolumeAttachments %+v to %q, not to %q", inCloud, attachments.Items, inCluster, nodes)
	}
	return nil
}

// asks has a claim ask for more.
func (s *story) asks(claim *corev1.PersistentVolumeClaim, size string) {
	s.Helper()
	before := claim.DeepCopy()
	claim.Spec.Resources.Requests[corev1.ResourceStorage] = resource.MustParse(size)
	if err := s.stowage.Client.Patch(s.Context(), claim, client.MergeFrom(before)); err != nil {
		s.Fatal(err)
	}
}

// hasGrown checks that a disk and its volume have a size, and that the node alone has still to grow
// the file system.
func (s *story) hasGrown(claim *corev1.PersistentVolumeClaim, gibibytes int64) error {
	pv := Volume(claim.Spec.VolumeName)
	if err := errors.Join(s.get(pv), s.get(claim)); err != nil {
		return err
	}
	disks := s.disks()
	if len(disks) != 1 || disks[0].SizeGb != gibibytes || pv.Spec.Capacity.Storage().Value() != gibibytes*gibibyte ||
		claim.Status.AllocatedResourceStatuses[corev1.ResourceStorage] != corev1.PersistentVolumeClaimNodeResizePending {
		return fmt.Errorf("the disks are %+v, the volume has %s, and the claim's status is %+v", disks, pv.Spec.Capacity.Storage(), claim.Status)
	}
	return nil
}

func TestAVolumeOfTheDriverLivesThroughTheFailuresOfItsCloud(t *testing.T) {
	t.Parallel()
	s := newStory(t)
	claim := Claim(InClass(driverName), Asking("10Gi"))
	s.create(claim)
	s.eventually("the claim is bound", func() error { return s.isBound(claim) })
	pv := Volume(claim.Spec.VolumeName)
	s.eventually("its volume has the driver's handle, and the zone of its disk", func() error {
		err := s.get(pv)
		if err == nil && (pv.Spec.CSI.VolumeHandle != handleOf(pv.Name) || pv.Spec.NodeAffinity.Required.NodeSelectorTerms[0].MatchExpressions[0].Key != zoneKey) {
			err = fmt.Errorf("it is %+v", pv.Spec)
		}
		return errors.Join(err, s.hasDisks(claim))
	})

	s.arm(`{"method":"instances.attachDisk","count":2,"status":503}`)
	one, two := Pod("one", node, claim.Name), Pod("two", otherNode, claim.Name)
	s.create(one)
	s.eventually("the disk is attached to the pod's node, though the cloud was unavailable", func() error { return s.isAttachedTo(claim, node) })
	s.delete(one)
	s.eventually("it is detached", func() error { return s.isAttachedTo(claim) })

	s.calm()
	s.arm(`{"method":"instances.attachDisk","count":1,"delay":"8s"}`)
	s.create(two)
	s.eventually("the cloud begins to attach it", func() error { return s.began("attachDisk") })
	s.driver.kill()
	s.startDriver()
	s.eventually("it is attached, though the driver was killed in the middle of a slow call", func() error { return s.isAttachedTo(claim, otherNode) })

	s.calm()
	s.arm(`{"method":"disks.resize","count":2,"status":429}`)
	s.asks(claim, "12Gi")
	s.eventually("the disk grows, though the cloud had too many requests", func() error { return s.hasGrown(claim, 12) })

	s.calm()
	s.arm(`{"method":"instances.detachDisk","count":2,"status":503}`)
	s.arm(`{"method":"disks.delete","count":2,"status":503}`)
	s.delete(two, claim)
	s.eventually("claim and volume go", func() error { return errors.Join(s.isGone(claim), s.isGone(pv)) })
	s.leavesNothing()
}

// began reports whether the cloud has an operation of a type that isn't done.
func (s *story) began(operation string) error {
	all, err := s.compute().ZoneOperations.List(project, zone).Do()
	if err != nil {
		return err
	}
	for _, one := range all.Items {
		if one.OperationType == operation && one.Status != "DONE" {
			return nil
		}
	}
	return fmt.Errorf("the cloud has no operation %s that goes on", operation)
}
