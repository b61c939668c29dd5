package socket_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	csispec "github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/stowage-dev/stowage/internal/mount"
	"github.com/stowage-dev/stowage/internal/mount/mounttest"
	"github.com/stowage-dev/stowage/internal/nodemanager/csinode"
	"github.com/stowage-dev/stowage/internal/nodemanager/drivers/socket"
	"github.com/stowage-dev/stowage/internal/nodemanager/drivers/socket/sockettest"
	"github.com/stowage-dev/stowage/internal/nodemanager/plugins"
	"github.com/stowage-dev/stowage/internal/nodemanager/volumes"
)

func TestMain(m *testing.M) { mounttest.Main(m) }

// cluster is what the API server has.
type cluster struct {
	driver *storagev1.CSIDriver
	secret map[string]string
}

func (c *cluster) CSIDriver(context.Context, string) (*storagev1.CSIDriver, error) {
	return c.driver, nil
}

func (c *cluster) SecretData(_ context.Context, reference corev1.SecretReference) (map[string]string, error) {
	if c.secret == nil {
		return nil, errors.New("it doesn't exist")
	}
	return map[string]string{"of": reference.Namespace + "/" + reference.Name, "password": c.secret["password"]}, nil
}

func (*cluster) IssuedToken(_ context.Context, pod *corev1.Pod, request storagev1.TokenRequest) (authenticationv1.TokenRequestStatus, error) {
	return authenticationv1.TokenRequestStatus{Token: "token of " + pod.Name + " for " + request.Audience}, nil
}

// bench is a driver behind a socket, and what calls it.
type bench struct {
	*socket.Driver
	program *sockettest.Driver
	cluster *cluster
	dir     string
}

func newBench(t *testing.T, can ...csispec.NodeServiceCapability_RPC_Type) *bench {
	t.Helper()
	mounttest.NeedsRoot(t)
	b := &bench{program: sockettest.New(t, can...), cluster: &cluster{}}
	path := filepath.Join(sockettest.Folder(t), "csi.sock")
	b.program.Serve(t, path)
	var err error
	if b.dir, err = filepath.EvalSymlinks(t.TempDir()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = mount.UnmountBelow(mount.Kernel{}, b.dir) })
	b.Driver, err = socket.New(sockettest.Name, path, socket.Options{Cluster: b.cluster, Mounts: mount.Kernel{}, CallTimeout: 5 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = b.Close() })
	if err := os.Mkdir(b.staging(), 0o750); err != nil {
		t.Fatal(err)
	}
	return b
}

func (b *bench) staging() string { return filepath.Join(b.dir, "globalmount") }
func (b *bench) target() string  { return filepath.Join(b.dir, "mount") }

func pod() *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web", UID: "pod-1"}, Spec: corev1.PodSpec{
		ServiceAccountName: "robot", SecurityContext: &corev1.PodSecurityContext{FSGroup: new(int64(2000))},
	}}
}

func persistent(modes ...corev1.PersistentVolumeAccessMode) volumes.Spec {
	return volumes.Spec{Pod: pod(), PersistentVolume: &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "pv"}, Spec: corev1.PersistentVolumeSpec{
		AccessModes: modes, MountOptions: []string{"noatime"}, Capacity: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")},
		PersistentVolumeSource: corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{
			Driver: sockettest.Name, VolumeHandle: "vol-1", FSType: "ext4", VolumeAttributes: map[string]string{"color": "blue"},
		}},
	}}, Attachment: &volumes.Attachment{Metadata: map[string]string{"device": "/dev/x"}}}
}

func inline() volumes.Spec {
	return volumes.Spec{Pod: pod(), Volume: corev1.Volume{Name: "own", VolumeSource: corev1.VolumeSource{CSI: &corev1.CSIVolumeSource{
		Driver: sockettest.Name, VolumeAttributes: map[string]string{"color": "red"}, NodePublishSecretRef: &corev1.LocalObjectReference{Name: "own"},
	}}}}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

//proves:csi/foreign
func TestAVolumeIsStagedAndPublishedAsByAKubelet(t *testing.T) {
	b := newBench(t, sockettest.Stage)
	b.cluster.secret = map[string]string{"password": "x"}
	spec := persistent(corev1.ReadWriteOnce)
	spec.PersistentVolume.Spec.CSI.NodeStageSecretRef = &corev1.SecretReference{Namespace: "secrets", Name: "stage"}
	spec.PersistentVolume.Spec.CSI.NodePublishSecretRef = &corev1.SecretReference{Namespace: "secrets", Name: "publish"}
	spec.Access = mount.ReadOnly

	must(t, b.Stage(t.Context(), spec, b.staging()))
	must(t, b.Publish(t.Context(), spec, b.staging(), b.target()))

	stage := sockettest.Last[*csispec.NodeStageVolumeRequest](b.program)
	if stage.GetSecrets()["of"] != "secrets/stage" || stage.GetPublishContext()["device"] != "/dev/x" || stage.GetVolumeContext()["color"] != "blue" ||
		stage.GetStagingTargetPath() != b.staging() || stage.GetVolumeId() != "vol-1" {
		t.Errorf("it was staged by %v", stage)
	}
	publish := sockettest.Last[*csispec.NodePublishVolumeRequest](b.program)
	if publish.GetSecrets()["of"] != "secrets/publish" || !publish.GetReadonly() || publish.GetStagingTargetPath() != b.staging() || len(publish.GetVolumeContext()) != 1 {
		t.Errorf("it was published by %v", publish)
	}
	capability := publish.GetVolumeCapability()
	if capability.GetAccessMode().GetMode() != csispec.VolumeCapability_AccessMode_SINGLE_NODE_WRITER || capability.GetMount().GetFsType() != "ext4" ||
		!slices.Equal(capability.GetMount().GetMountFlags(), []string{"noatime"}) || capability.GetMount().GetVolumeMountGroup() != "" {
		t.Errorf("it is to be used as %v", capability)
	}
	must(t, b.Unpublish(t.Context(), "vol-1", b.target()))
	must(t, b.Unstage(t.Context(), "vol-1", b.staging()))
	mounttest.MustNotExist(t, b.target())
}

func TestADriverWithoutStagesIsNotAskedToStage(t *testing.T) {
	b := newBench(t)
	must(t, b.Stage(t.Context(), persistent(), b.staging()))
	must(t, b.Publish(t.Context(), persistent(), b.staging(), b.target()))
	must(t, b.Unpublish(t.Context(), "vol-1", b.target()))
	must(t, b.Unstage(t.Context(), "vol-1", b.staging()))

	if calls := b.program.Calls(); !slices.Equal(calls, []string{"publish", "unpublish"}) {
		t.Errorf("it was called: %v", calls)
	}
}

func TestAbilitiesAreThoseOfTheMoment(t *testing.T) {
	b := newBench(t)
	must(t, b.Publish(t.Context(), persistent(corev1.ReadWriteOncePod), b.staging(), b.target()))
	b.program.Can(sockettest.Group, sockettest.SingleWriter, sockettest.Stage)

	must(t, b.Publish(t.Context(), persistent(corev1.ReadWriteOncePod), b.staging(), b.target()))

	capability := sockettest.Last[*csispec.NodePublishVolumeRequest](b.program).GetVolumeCapability()
	if capability.GetMount().GetVolumeMountGroup() != "2000" || capability.GetAccessMode().GetMode() != csispec.VolumeCapability_AccessMode_SINGLE_NODE_SINGLE_WRITER {
		t.Errorf("it is to be used as %v", capability)
	}
	if needed, err := b.NeedsGroup(t.Context(), persistent(corev1.ReadWriteOncePod)); needed || err != nil {
		t.Errorf("the agent is to apply the fsGroup: %t, %v", needed, err)
	}
}

//proves:csi/foreign-asks
func TestWhatACSIDriverAsksForOfThePod(t *testing.T) {
	b := newBench(t)
	yes := true
	b.cluster.driver = &storagev1.CSIDriver{Spec: storagev1.CSIDriverSpec{PodInfoOnMount: &yes, TokenRequests: []storagev1.TokenRequest{{Audience: "vault"}, {}}}}
	must(t, b.Publish(t.Context(), persistent(), "", b.target()))

	context := sockettest.Last[*csispec.NodePublishVolumeRequest](b.program).GetVolumeContext()
	for key, want := range map[string]string{
		"color": "blue", "csi.storage.k8s.io/pod.name": "web", "csi.storage.k8s.io/pod.namespace": "default", "csi.storage.k8s.io/pod.uid": "pod-1",
		"csi.storage.k8s.io/serviceAccount.name": "robot", "csi.storage.k8s.io/ephemeral": "false",
	} {
		if context[key] != want {
			t.Errorf("%s is %q", key, context[key])
		}
	}
	var tokens map[string]authenticationv1.TokenRequestStatus
	must(t, json.Unmarshal([]byte(context["csi.storage.k8s.io/serviceAccount.tokens"]), &tokens))
	if tokens["vault"].Token != "token of web for vault" || tokens[""].Token != "token of web for " {
		t.Errorf("the tokens are %v", tokens)
	}

	b.cluster.driver.Spec.ServiceAccountTokenInSecrets = &yes
	must(t, b.Publish(t.Context(), persistent(), "", b.target()))
	request := sockettest.Last[*csispec.NodePublishVolumeRequest](b.program)
	if request.GetSecrets()["csi.storage.k8s.io/serviceAccount.tokens"] == "" || request.GetVolumeContext()["csi.storage.k8s.io/serviceAccount.tokens"] != "" {
		t.Errorf("the tokens are not in the secrets: %v", request)
	}
}

//proves:csi/foreign-inline
func TestAnInlineVolumeNeedsADriverThatNamesIt(t *testing.T) {
	b := newBench(t)
	b.cluster.secret = map[string]string{}
	if err := b.PublishEphemeral(t.Context(), inline(), "csi-1", b.target()); err == nil || !strings.Contains(err.Error(), "volumeLifecycleModes") {
		t.Errorf("without a CSIDriver: %v", err)
	}
	b.cluster.driver = &storagev1.CSIDriver{Spec: storagev1.CSIDriverSpec{VolumeLifecycleModes: []storagev1.VolumeLifecycleMode{storagev1.VolumeLifecycleEphemeral}}}
	must(t, b.PublishEphemeral(t.Context(), inline(), "csi-1", b.target()))

	request := sockettest.Last[*csispec.NodePublishVolumeRequest](b.program)
	if request.GetSecrets()["of"] != "default/own" || request.GetVolumeContext()["color"] != "red" || request.GetStagingTargetPath() != "" {
		t.Errorf("it was published by %v", request)
	}
	if err := b.Publish(t.Context(), persistent(), "", b.target()); err == nil || !strings.Contains(err.Error(), "Persistent") {
		t.Errorf("a volume with an object: %v", err)
	}
}

//proves:csi/foreign-asks
func TestWhoseMatterTheGroupIs(t *testing.T) {
	b := newBench(t)
	policy := func(policy storagev1.FSGroupPolicy) *storagev1.CSIDriver {
		return &storagev1.CSIDriver{Spec: storagev1.CSIDriverSpec{FSGroupPolicy: &policy}}
	}
	without := persistent(corev1.ReadWriteOnce)
	without.PersistentVolume.Spec.CSI.FSType = ""
	readOnly := persistent(corev1.ReadWriteOnce)
	readOnly.Access = mount.ReadOnly
	for name, test := range map[string]struct {
		driver *storagev1.CSIDriver
		spec   volumes.Spec
		want   bool
	}{
		"of one node":             {nil, persistent(corev1.ReadWriteOnce), true},
		"of one pod":              {nil, persistent(corev1.ReadWriteOncePod), true},
		"of several nodes":        {nil, persistent(corev1.ReadWriteMany), false},
		"without a file system":   {nil, without, false},
		"only read":               {policy(storagev1.FileFSGroupPolicy), readOnly, false},
		"of several nodes, File":  {policy(storagev1.FileFSGroupPolicy), persistent(corev1.ReadWriteMany), true},
		"of one node, None":       {policy(storagev1.NoneFSGroupPolicy), persistent(corev1.ReadWriteOnce), false},
		"a pod's own":             {policy(storagev1.FileFSGroupPolicy), inline(), true},
		"a pod's own, no FSType":  {nil, inline(), false},
		"by the policy's default": {policy(storagev1.ReadWriteOnceWithFSTypeFSGroupPolicy), persistent(corev1.ReadWriteOnce), true},
	} {
		b.cluster.driver = test.driver
		if got, err := b.NeedsGroup(t.Context(), test.spec); err != nil || got != test.want {
			t.Errorf("%s: %t, %v", name, got, err)
		}
	}
}

//proves:csi/foreign-asks
func TestAVolumeIsMountedWithTheLabelOfItsPodWhereItsDriverCanDoThat(t *testing.T) {
	labelled := func(spec volumes.Spec) volumes.Spec {
		spec.Volume.Name = "data"
		spec.Pod.Spec.SecurityContext.SELinuxOptions = &corev1.SELinuxOptions{Level: "s0:c1,c2"}
		spec.Pod.Spec.Containers = []corev1.Container{{VolumeMounts: []corev1.VolumeMount{{Name: "data"}}}}
		return spec
	}
	inline := inline()
	inline.Volume.Name = "data"
	for name, test := range map[string]struct {
		can  bool
		spec volumes.Spec
		want bool
	}{
		"of one pod":                         {true, labelled(persistent(corev1.ReadWriteOncePod)), true},
		"of one pod, by a driver that can't": {false, labelled(persistent(corev1.ReadWriteOncePod)), false},
		"of several pods":                    {true, labelled(persistent(corev1.ReadWriteOnce)), false},
		"a pod's own":                        {true, labelled(inline), false},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, sockettest.Stage)
			b.Owner.SELinux = true
			b.cluster.secret = map[string]string{}
			b.cluster.driver = &storagev1.CSIDriver{Spec: storagev1.CSIDriverSpec{SELinuxMount: &test.can, VolumeLifecycleModes: []storagev1.VolumeLifecycleMode{
				storagev1.VolumeLifecyclePersistent, storagev1.VolumeLifecycleEphemeral,
			}}}
			if test.spec.PersistentVolume == nil {
				must(t, b.PublishEphemeral(t.Context(), test.spec, "csi-1", b.target()))
			} else {
				must(t, b.Stage(t.Context(), test.spec, b.staging()))
				must(t, b.Publish(t.Context(), test.spec, b.staging(), b.target()))
			}

			flags := sockettest.Last[*csispec.NodePublishVolumeRequest](b.program).GetVolumeCapability().GetMount().GetMountFlags()
			if got := slices.Contains(flags, `context="system_u:object_r:container_file_t:s0:c1,c2"`); got != test.want {
				t.Errorf("it is mounted with %q", flags)
			}
			if stage := sockettest.Last[*csispec.NodeStageVolumeRequest](b.program); test.want && !slices.Equal(stage.GetVolumeCapability().GetMount().GetMountFlags(), flags) {
				t.Errorf("it is staged by %v", stage)
			}
		})
	}
}

//proves:csi/foreign-lies
func TestALyingDriverIsNotBelieved(t *testing.T) {
	b := newBench(t, sockettest.Stage)
	b.program.Lies(true)
	if err := b.Publish(t.Context(), persistent(), b.staging(), b.target()); err == nil || !strings.Contains(err.Error(), "nothing is mounted at") {
		t.Errorf("what isn't published: %v", err)
	}
	b.program.Lies(false)
	must(t, b.Stage(t.Context(), persistent(), b.staging()))
	must(t, b.Publish(t.Context(), persistent(), b.staging(), b.target()))
	b.program.Lies(true)
	if err := b.Unpublish(t.Context(), "vol-1", b.target()); err == nil || !strings.Contains(err.Error(), "still mounted") {
		t.Errorf("what isn't unpublished: %v", err)
	}
	if err := b.Unstage(t.Context(), "vol-1", b.staging()); err == nil || !strings.Contains(err.Error(), "still mounted") {
		t.Errorf("what isn't unstaged: %v", err)
	}
}

func TestAVolumeThatTheDriverDoesntKnowIsUnpublishedIfNothingIsMounted(t *testing.T) {
	b := newBench(t, sockettest.Stage)
	must(t, b.Publish(t.Context(), persistent(), b.staging(), b.target()))
	b.program.Does(func(context.Context, string) error { return status.Error(codes.NotFound, "no such volume") })
	if err := b.Unpublish(t.Context(), "vol-1", b.target()); !errors.Is(err, volumes.ErrNotFound) {
		t.Errorf("while it is mounted: %v", err)
	}
	mounttest.Unmount(t, b.target())
	must(t, b.Unpublish(t.Context(), "vol-1", b.target()))
	must(t, b.Unstage(t.Context(), "vol-1", b.staging()))
}

func TestNothingWithDataIsRemoved(t *testing.T) {
	b := newBench(t)
	b.program.Lies(true)
	mounttest.WriteFile(t, mounttest.MakeDir(t, b.target()), "kept", "precious")
	if err := b.Unpublish(t.Context(), "vol-1", b.target()); err == nil {
		t.Error("a folder with data is removed")
	}
	mounttest.MustHold(t, filepath.Join(b.target(), "kept"), "precious")
	file := mounttest.WriteFile(t, b.dir, "device", "precious")
	if err := b.Unpublish(t.Context(), "vol-1", file); err == nil {
		t.Error("a file with data is removed")
	}
	mounttest.MustHold(t, file, "precious")
}

//proves:csi/foreign-lies
func TestADriversTextsAndAnswersAreBounded(t *testing.T) {
	b := newBench(t)
	b.program.Does(func(context.Context, string) error { return status.Error(codes.Internal, strings.Repeat("x", 20_000)) })
	if err := b.Publish(t.Context(), persistent(), "", b.target()); err == nil || len(err.Error()) > 2048 || !strings.Contains(err.Error(), "Internal") {
		t.Errorf("a long text: %d bytes", len(err.Error()))
	}
	b.program.Does(nil)
	b.program.Info = &csispec.NodeGetInfoResponse{NodeId: strings.Repeat("x", 1<<20)}
	registered := socket.NewRegistered(socket.Options{Cluster: b.cluster, Mounts: mount.Kernel{}}, nodes{})
	path := filepath.Join(sockettest.Folder(t), "csi.sock")
	b.program.Serve(t, path)
	if err := registered.Register(t.Context(), plugins.Plugin{Name: sockettest.Name, Endpoint: path}); err == nil || !strings.Contains(err.Error(), "ResourceExhausted") {
		t.Errorf("a long answer: %v", err)
	}
}

//proves:csi/foreign-hangs
func TestADriverThatHangsEndsWithTheCall(t *testing.T) {
	b := newBench(t)
	hanging := make(chan struct{}, 1)
	b.program.Does(func(ctx context.Context, _ string) error {
		hanging <- struct{}{}
		<-ctx.Done()
		return ctx.Err()
	})
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-hanging
		cancel()
	}()
	if err := b.Publish(ctx, persistent(), "", b.target()); !errors.Is(err, context.Canceled) {
		t.Errorf("it ends with %v", err)
	}
}

//proves:csi/foreign-Block
func TestADeviceIsPublishedWithoutAGroup(t *testing.T) {
	b := newBench(t, sockettest.Stage, sockettest.Group)
	spec := persistent(corev1.ReadWriteOnce)
	spec.PersistentVolume.Spec.VolumeMode = new(corev1.PersistentVolumeBlock)
	must(t, b.Stage(t.Context(), spec, b.staging()))
	must(t, b.Publish(t.Context(), spec, b.staging(), b.target()))
	if sockettest.Last[*csispec.NodePublishVolumeRequest](b.program).GetVolumeCapability().GetBlock() == nil {
		t.Error("it isn't published as a device")
	}
	must(t, b.Unpublish(t.Context(), "vol-1", b.target()))
	mounttest.MustNotExist(t, b.target())

	b.program.Lies(true)
	if err := b.Publish(t.Context(), spec, b.staging(), b.target()); err == nil || !strings.Contains(err.Error(), "no block device") {
		t.Errorf("a device that isn't there: %v", err)
	}
}

//proves:csi/foreign-expansion
func TestAVolumeGrowsToTheSizeOfItsObject(t *testing.T) {
	b := newBench(t, sockettest.Stage)
	if _, err := b.Expand(t.Context(), persistent(), b.staging(), b.target()); !errors.Is(err, volumes.ErrNotSupported) {
		t.Errorf("a driver that grows none: %v", err)
	}
	b.program.Can(sockettest.Stage, sockettest.Expand)
	b.cluster.secret = map[string]string{}
	spec := persistent(corev1.ReadWriteOnce)
	spec.PersistentVolume.Spec.CSI.NodeExpandSecretRef = &corev1.SecretReference{Namespace: "secrets", Name: "expand"}
	bytes, err := b.Expand(t.Context(), spec, b.staging(), b.target())
	request := sockettest.Last[*csispec.NodeExpandVolumeRequest](b.program)
	if err != nil || bytes != 1<<30 || request.GetSecrets()["of"] != "secrets/expand" || request.GetVolumePath() != b.target() || request.GetStagingTargetPath() != b.staging() {
		t.Errorf("it has %d (%v) by %v", bytes, err, request)
	}
	b.program.Does(func(context.Context, string) error { return status.Error(codes.OutOfRange, "too large") })
	if _, err := b.Expand(t.Context(), spec, b.staging(), b.target()); !errors.Is(err, volumes.ErrNotSupported) {
		t.Errorf("a size that can't be: %v", err)
	}
}

//proves:csi/foreign-usage
func TestADriverMeasuresItsVolumes(t *testing.T) {
	b := newBench(t)
	if _, err := b.Usage(t.Context(), "vol-1", b.target()); !errors.Is(err, volumes.ErrNotSupported) || len(b.program.Calls()) > 0 {
		t.Errorf("a driver that measures nothing: %v", err)
	}
	b.program.Can(sockettest.Stats)
	bytes := &csispec.VolumeUsage{Unit: csispec.VolumeUsage_BYTES, Total: 10, Available: 7, Used: 3}
	b.program.Usage = []*csispec.VolumeUsage{bytes, {Unit: csispec.VolumeUsage_UNKNOWN, Total: 1}, nil}

	usage, err := b.Usage(t.Context(), "vol-1", b.target())

	must(t, err)
	if usage.Inodes != nil || usage.Bytes == nil || *usage.Bytes != (volumes.Amount{Total: 10, Available: 7, Used: 3}) {
		t.Errorf("its usage is %+v", usage)
	}
	if request := sockettest.Last[*csispec.NodeGetVolumeStatsRequest](b.program); request.GetVolumeId() != "vol-1" || request.GetVolumePath() != b.target() {
		t.Errorf("it was measured by %v", request)
	}
}

//proves:csi/foreign-lies
func TestAnAnswerWithoutAUsageIsAnError(t *testing.T) {
	b := newBench(t, sockettest.Stats)
	for name, usage := range map[string][]*csispec.VolumeUsage{
		"none":     nil,
		"unknown":  {{Total: 10}},
		"negative": {{Unit: csispec.VolumeUsage_BYTES, Total: 10, Available: -1}},
	} {
		b.program.Usage = usage
		if got, err := b.Usage(t.Context(), "vol-1", b.target()); err == nil || errors.Is(err, volumes.ErrNotSupported) {
			t.Errorf("%s: %+v (%v)", name, got, err)
		}
	}
}

// nodes takes what drivers say of the node.
type nodes map[string]csinode.Info

func (n nodes) Install(_ context.Context, info csinode.Info) error {
	if info.NodeID == "refused" {
		return errors.New("refused")
	}
	n[info.Driver] = info
	return nil
}

func (n nodes) Remove(_ context.Context, driver string) error {
	delete(n, driver)
	return nil
}

func TestADriverIsFoundWhileItIsRegistered(t *testing.T) {
	b := newBench(t)
	b.program.Info = &csispec.NodeGetInfoResponse{NodeId: "id", MaxVolumesPerNode: 7, AccessibleTopology: &csispec.Topology{Segments: map[string]string{"zone": "a"}}}
	path := filepath.Join(sockettest.Folder(t), "csi.sock")
	b.program.Serve(t, path)
	written := nodes{}
	registered := socket.NewRegistered(socket.Options{Cluster: b.cluster, Mounts: mount.Kernel{}}, written)
	plugin := plugins.Plugin{Name: sockettest.Name, Endpoint: path}
	if _, err := registered.Find(sockettest.Name); err == nil || !strings.Contains(err.Error(), "driver name disk.example.com not found in the list of registered CSI drivers") {
		t.Errorf("before: %v", err)
	}

	must(t, registered.Register(t.Context(), plugin))

	if _, err := registered.Find(sockettest.Name); err != nil {
		t.Error(err)
	}
	if info := written[sockettest.Name]; info.NodeID != "id" || info.MaxVolumes != 7 || info.Topology["zone"] != "a" {
		t.Errorf("the node has %v", info)
	}
	registered.Deregister(t.Context(), plugin)
	if _, err := registered.Find(sockettest.Name); err == nil || len(written) > 0 {
		t.Errorf("after: %v, %v", err, written)
	}
	b.program.Info = &csispec.NodeGetInfoResponse{NodeId: "refused"}
	if err := registered.Register(t.Context(), plugin); err == nil {
		t.Error("a driver that the node refuses is registered")
	}
	if _, err := registered.Find(sockettest.Name); err == nil {
		t.Error("a driver that the node refuses is found")
	}
}
