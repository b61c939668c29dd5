package stock_test

import (
	"context"
	"fmt"
	"path"
	"slices"
	"strings"
	"sync"

	csispec "github.com/container-storage-interface/spec/lib/go/csi"
	groupsnapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumegroupsnapshot/v1"
	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stowage-dev/stowage/test/harness/controlplane"
	. "github.com/stowage-dev/stowage/test/harness/fixture"
)

var _ = Describe("A CSI driver of group snapshots with the real snapshot-controller", Label("sidecars"), func() {
	It("has snapshots of several claims made together and restored by Stowage, which then binds and deletes them alike", func(ctx SpecContext) {
		driver := startDriver(ctx)
		driver.groups = &groupService{driver: csispec.NewControllerClient(driver.driver), made: map[string]*csispec.VolumeGroupSnapshot{}}
		driver.handOver(ctx)
		controller := startSnapshotController(ctx, movable, "--feature-gates=CSIVolumeGroupSnapshot=true")
		before := driver.snapshots(ctx)
		first, second := driver.use(ctx, "first"), driver.use(ctx, "second")
		group := groupOf(ctx, first, second)

		By("waiting until the group and its members are ready")
		members := eventuallyMembers(ctx, group)
		Expect(driver.snapshots(ctx)).To(HaveLen(len(before) + 2))
		content := groupContentOf(ctx, group)
		var named []string
		for _, info := range content.Status.VolumeSnapshotInfoList {
			named = append(named, info.SnapshotHandle)
		}
		for i := range members {
			Expect(named).To(ContainElement(*contentOf(ctx, &members[i]).Status.SnapshotHandle))
		}

		By("restoring a claim from a member")
		restored := &user{driver: driver, claim: Claim(ClaimNamed("restored"), InClass(movable), func(claim *corev1.PersistentVolumeClaim) {
			claim.Spec.DataSource = &corev1.TypedLocalObjectReference{APIGroup: new("snapshot.storage.k8s.io"), Kind: "VolumeSnapshot", Name: members[0].Name}
		})}
		create(ctx, restored.claim)
		restored.pv = eventuallyBound(ctx, restored.claim)
		request := driver.request("stowage", "CreateVolume", restored.pv.Name).(*csispec.CreateVolumeRequest)
		Expect(named).To(ContainElement(request.GetVolumeContentSource().GetSnapshot().GetSnapshotId()))

		By("letting Stowage bind, with scope cluster")
		Expect(controller.Kill()).To(Succeed())
		standalone, err := controlplane.StandaloneControllers()
		Expect(err).NotTo(HaveOccurred())
		Expect(plane.SwitchControllers(ctx, standalone)).To(Succeed())
		Expect(world.manager.Stop()).To(Succeed())
		world.startManager(ctx, "cluster", "--bind-snapshots")
		DeferCleanup(func(ctx SpecContext) { backToClasses(ctx) })
		ours := &groupsnapshotv1.VolumeGroupSnapshot{ObjectMeta: metav1.ObjectMeta{Namespace: Namespace, Name: "ours"}, Spec: group.Spec}
		create(ctx, ours)
		eventuallyMembers(ctx, ours)
		Eventually(func() []string { return differences(groupFieldsOf(ctx, group), groupFieldsOf(ctx, ours)) }).WithContext(ctx).Should(BeEmpty())

		By("deleting both groups, which leaves the volumes")
		members = append(members, eventuallyMembers(ctx, ours)...)
		gone := []client.Object{group, content, ours, groupContentOf(ctx, ours)}
		for i := range members {
			gone = append(gone, &members[i], contentOf(ctx, &members[i]))
		}
		remove(ctx, group)
		remove(ctx, ours)
		for _, object := range gone {
			eventuallyGone(ctx, object)
		}
		Eventually(driver.snapshots).WithContext(ctx).Should(ConsistOf(before))
		for _, of := range []*user{first, second, restored} {
			of.remove(ctx)
		}
	})
})

// groupOf makes a VolumeGroupSnapshot of the claims of users.
func groupOf(ctx context.Context, of ...*user) *groupsnapshotv1.VolumeGroupSnapshot {
	GinkgoHelper()
	for _, one := range of {
		before := one.claim.DeepCopy()
		metav1.SetMetaDataLabel(&one.claim.ObjectMeta, "app", "shop")
		Expect(users.Patch(ctx, one.claim, client.MergeFrom(before))).To(Succeed())
	}
	class := &groupsnapshotv1.VolumeGroupSnapshotClass{
		ObjectMeta: metav1.ObjectMeta{Name: movable}, Driver: movable, DeletionPolicy: snapshotv1.VolumeSnapshotContentDelete,
		Parameters: map[string]string{
			"csi.storage.k8s.io/group-snapshotter-secret-name": account, "csi.storage.k8s.io/group-snapshotter-secret-namespace": namespace,
		},
	}
	create(ctx, class)
	DeferCleanup(remove, class)
	group := &groupsnapshotv1.VolumeGroupSnapshot{
		ObjectMeta: metav1.ObjectMeta{Namespace: Namespace, Name: "theirs"},
		Spec: groupsnapshotv1.VolumeGroupSnapshotSpec{
			VolumeGroupSnapshotClassName: &class.Name,
			Source:                       groupsnapshotv1.VolumeGroupSnapshotSource{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "shop"}}},
		},
	}
	create(ctx, group)
	return group
}

// eventuallyMembers waits until a group snapshot is ready, with both of its members, and returns those.
func eventuallyMembers(ctx context.Context, group *groupsnapshotv1.VolumeGroupSnapshot) []snapshotv1.VolumeSnapshot {
	GinkgoHelper()
	all, members := &snapshotv1.VolumeSnapshotList{}, []snapshotv1.VolumeSnapshot(nil)
	Eventually(func(g Gomega) {
		g.Expect(users.Get(ctx, keyOf(group), group)).To(Succeed())
		g.Expect(group.Status).NotTo(BeNil())
		g.Expect(ptr.Deref(group.Status.ReadyToUse, false)).To(BeTrue(), "%+v", group.Status.Error)
		g.Expect(users.List(ctx, all, client.InNamespace(group.Namespace))).To(Succeed())
		members = slices.DeleteFunc(all.Items, func(member snapshotv1.VolumeSnapshot) bool {
			return !slices.ContainsFunc(member.OwnerReferences, func(owner metav1.OwnerReference) bool { return owner.UID == group.UID })
		})
		g.Expect(members).To(HaveLen(2))
		for i := range members {
			member := &members[i]
			g.Expect(member.Status).NotTo(BeNil())
			g.Expect(ptr.Deref(member.Status.ReadyToUse, false)).To(BeTrue(), "%s has %+v", member.Name, member.Status.Error)
		}
	}).WithContext(ctx).Should(Succeed())
	return members
}

// groupFieldsOf are those of a VolumeGroupSnapshot, its members and their contents, but for names and ids that no two share,
// and times.
func groupFieldsOf(ctx context.Context, group *groupsnapshotv1.VolumeGroupSnapshot) map[string]string {
	GinkgoHelper()
	members := eventuallyMembers(ctx, group)
	content, group := groupContentOf(ctx, group), group.DeepCopy()
	unlike := []string{string(group.UID), "GROUP", string(content.UID), "CONTENT", `"` + group.Name + `"`, `"NAME"`}
	objects := map[string]client.Object{"VolumeGroupSnapshot": group, "VolumeGroupSnapshotContent": content}
	for i := range members {
		member, of := &members[i], contentOf(ctx, &members[i])
		claim := *member.Spec.Source.PersistentVolumeClaimName
		unlike = append(unlike, string(member.UID), "MEMBER", string(of.UID), "CONTENT", strings.TrimPrefix(member.Name, "snapshot-"), claim)
		member.Status.CreationTime, of.Status.CreationTime, of.Status.SnapshotHandle = nil, nil, nil
		objects["VolumeSnapshot of "+claim], objects["VolumeSnapshotContent of "+claim] = member, of
	}
	group.Status.CreationTime, content.Status.CreationTime = nil, nil
	for i := range content.Status.VolumeSnapshotInfoList {
		info := &content.Status.VolumeSnapshotInfoList[i]
		info.CreationTime, info.SnapshotHandle = nil, ""
	}
	all := map[string]string{}
	for kind, object := range objects {
		object.SetManagedFields(nil)
		// Stowage makes a content with the UID that snapshot-controller writes into it next.
		object.SetGeneration(0)
		flatten(all, kind, object, strings.NewReplacer(unlike...))
	}
	return all
}

func groupContentOf(ctx context.Context, group *groupsnapshotv1.VolumeGroupSnapshot) *groupsnapshotv1.VolumeGroupSnapshotContent {
	GinkgoHelper()
	content := &groupsnapshotv1.VolumeGroupSnapshotContent{}
	Expect(users.Get(ctx, client.ObjectKey{Name: *group.Status.BoundVolumeGroupSnapshotContentName}, content)).To(Succeed())
	return content
}

// groupService is a GroupController service for a driver that has none: it makes a snapshot of each volume, one after
// the other.
type groupService struct {
	driver csispec.ControllerClient

	mu   sync.Mutex
	made map[string]*csispec.VolumeGroupSnapshot
}

// groupServiceName is what the names of its methods begin with.
const groupServiceName = "/csi.v1.GroupController/"

// answer answers a call.
func (s *groupService) answer(ctx context.Context, name string, content []byte) ([]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var answer proto.Message
	var err error
	switch request := requestOf(path.Base(name), content).(type) {
	case *csispec.GroupControllerGetCapabilitiesRequest:
		answer = &csispec.GroupControllerGetCapabilitiesResponse{Capabilities: []*csispec.GroupControllerServiceCapability{{
			Type: &csispec.GroupControllerServiceCapability_Rpc{Rpc: &csispec.GroupControllerServiceCapability_RPC{
				Type: csispec.GroupControllerServiceCapability_RPC_CREATE_DELETE_GET_VOLUME_GROUP_SNAPSHOT,
			}},
		}}}
	case *csispec.CreateVolumeGroupSnapshotRequest:
		answer, err = s.create(ctx, request)
	case *csispec.GetVolumeGroupSnapshotRequest:
		answer = &csispec.GetVolumeGroupSnapshotResponse{GroupSnapshot: s.made[request.GetGroupSnapshotId()]}
	case *csispec.DeleteVolumeGroupSnapshotRequest:
		answer, err = s.delete(ctx, request)
	default:
		err = status.Error(codes.Unimplemented, name)
	}
	if err != nil {
		return nil, err
	}
	return proto.Marshal(answer)
}

func (s *groupService) create(ctx context.Context, request *csispec.CreateVolumeGroupSnapshotRequest) (*csispec.CreateVolumeGroupSnapshotResponse, error) {
	if request.GetSecrets()["key"] != "opens it" {
		return nil, status.Error(codes.PermissionDenied, "the Secret is missing")
	}
	id := "group " + request.GetName()
	if s.made[id] == nil {
		group := &csispec.VolumeGroupSnapshot{GroupSnapshotId: id, CreationTime: timestamppb.Now(), ReadyToUse: true}
		for _, volume := range request.GetSourceVolumeIds() {
			made, err := s.driver.CreateSnapshot(ctx, &csispec.CreateSnapshotRequest{Name: fmt.Sprint(request.GetName(), "-", volume), SourceVolumeId: volume})
			if err != nil {
				return nil, err
			}
			made.GetSnapshot().GroupSnapshotId = id
			group.Snapshots = append(group.Snapshots, made.GetSnapshot())
		}
		s.made[id] = group
	}
	return &csispec.CreateVolumeGroupSnapshotResponse{GroupSnapshot: notReady(s.made[id])}, nil
}

// notReady is what a storage that uploads its snapshots answers first.
func notReady(group *csispec.VolumeGroupSnapshot) *csispec.VolumeGroupSnapshot {
	first := proto.Clone(group).(*csispec.VolumeGroupSnapshot)
	first.ReadyToUse = false
	for _, member := range first.GetSnapshots() {
		member.ReadyToUse = false
	}
	return first
}

func (s *groupService) delete(ctx context.Context, request *csispec.DeleteVolumeGroupSnapshotRequest) (*csispec.DeleteVolumeGroupSnapshotResponse, error) {
	group := s.made[request.GetGroupSnapshotId()]
	if len(group.GetSnapshots()) != len(request.GetSnapshotIds()) {
		return nil, status.Error(codes.InvalidArgument, "it has other members: "+strings.Join(request.GetSnapshotIds(), ", "))
	}
	for _, id := range request.GetSnapshotIds() {
		if _, err := s.driver.DeleteSnapshot(ctx, &csispec.DeleteSnapshotRequest{SnapshotId: id}); err != nil {
			return nil, err
		}
	}
	delete(s.made, request.GetGroupSnapshotId())
	return &csispec.DeleteVolumeGroupSnapshotResponse{}, nil
}
