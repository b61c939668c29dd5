package nodemanager_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"k8s.io/utils/exec"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/device/clouddisk"
	"github.com/stowage-dev/stowage/internal/device/filesystem"
	"github.com/stowage-dev/stowage/internal/mount"
	"github.com/stowage-dev/stowage/internal/nodemanager"
	"github.com/stowage-dev/stowage/internal/nodemanager/drivers"
	"github.com/stowage-dev/stowage/internal/nodemanager/drivers/gcepd"
	"github.com/stowage-dev/stowage/internal/nodemanager/growth"
	"github.com/stowage-dev/stowage/internal/nodemanager/guard"
	"github.com/stowage-dev/stowage/internal/nodemanager/metrics"
	"github.com/stowage-dev/stowage/internal/nodemanager/objects"
	"github.com/stowage-dev/stowage/internal/nodemanager/podclaims"
	"github.com/stowage-dev/stowage/internal/nodemanager/poddir"
	"github.com/stowage-dev/stowage/internal/nodemanager/volumes"
	"github.com/stowage-dev/stowage/internal/nodemanager/volumes/configmap"
	"github.com/stowage-dev/stowage/internal/nodemanager/volumes/csi"
	"github.com/stowage-dev/stowage/internal/nodemanager/volumes/csi/csitest"
	"github.com/stowage-dev/stowage/internal/nodemanager/volumes/downwardapi"
	"github.com/stowage-dev/stowage/internal/nodemanager/volumes/emptydir"
	"github.com/stowage-dev/stowage/internal/nodemanager/volumes/hostpath"
	"github.com/stowage-dev/stowage/internal/nodemanager/volumes/local"
	"github.com/stowage-dev/stowage/internal/nodemanager/volumes/projected"
	"github.com/stowage-dev/stowage/internal/nodemanager/volumes/secret"
)

// world is one node with its folders, its credential and a namespace: a spec's
// own, so that specs can't disturb each other.
type world struct {
	node, root, base string
	namespace        string
	user             *rest.Config
	// foreign is the folder in which drivers of other projects register; "": none.
	foreign string
	// metrics are those of the agent that was started last.
	metrics *prometheus.Registry
}

func newWorld(ctx context.Context) *world {
	GinkgoHelper()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "spec-"}}
	Expect(admin.Create(ctx, namespace)).To(Succeed())
	w := &world{node: "node-" + namespace.Name, namespace: namespace.Name}
	dir, err := filepath.EvalSymlinks(GinkgoT().TempDir())
	Expect(err).NotTo(HaveOccurred())
	w.root, w.base = filepath.Join(dir, "agent"), filepath.Join(dir, "base")
	Expect(os.MkdirAll(w.base, 0o755)).To(Succeed())
	DeferCleanup(func() { Expect(mount.UnmountBelow(mount.Kernel{}, dir)).To(Succeed()) })
	w.user, err = server.User("system:node:"+w.node, "system:nodes")
	Expect(err).NotTo(HaveOccurred())
	return w
}

func (w *world) register(ctx context.Context) {
	GinkgoHelper()
	labels := map[string]string{stowagev1alpha1.TopologyNodeLabel: w.node}
	Expect(admin.Create(ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: w.node, Labels: labels}})).To(Succeed())
}

// startAgent starts an agent with the node's own credential. Calling what it
// returns stops it and gives what it ended with.
func (w *world) startAgent() (stop func() error) {
	GinkgoHelper()
	mgr := w.newManager()
	ctx, cancel := context.WithCancel(context.Background())
	Expect(podclaims.Index(ctx, mgr.GetFieldIndexer())).To(Succeed())
	tree, err := poddir.NewTree(w.root)
	Expect(err).NotTo(HaveOccurred())
	disks, shown := w.disks(), w.objects(mgr)
	called := csi.CallerOptions{Root: w.root, Drivers: []drivers.Driver{disks}, NodeName: w.node}
	begin := func() error { return nil }
	if w.foreign != "" {
		called, begin = w.withForeign(mgr, called, shown)
	}
	directories, devices, caller := w.types(called)
	w.metrics = prometheus.NewPedanticRegistry()
	numbers, err := metrics.New(w.metrics, mount.Kernel{})
	Expect(err).NotTo(HaveOccurred())
	options := nodemanager.Options{
		NodeName: w.node, Tree: tree, Volumes: directories, Devices: devices, Disks: caller.Attachable(disks), Objects: shown, Mounter: mount.Kernel{}, WatchMounts: mount.Watch,
		Client: mgr.GetClient(), Live: mgr.GetAPIReader(),
		Events: mgr.GetEventRecorder("agent"), Numbers: numbers, Clock: clock.RealClock{},
	}
	waits := &guard.Guard{
		NodeName: w.node, Live: mgr.GetAPIReader(), Clock: clock.RealClock{},
		Begin: func() error {
			return errors.Join(begin(), growth.New(growthOf(options)).SetupWithManager(mgr, nil), nodemanager.NewReconciler(options).SetupWithManager(mgr, nil))
		},
	}
	Expect(mgr.Add(waits)).To(Succeed())
	ended := make(chan error, 1)
	go func() { ended <- mgr.Start(ctx) }()
	stopped := false
	stop = func() error {
		if stopped {
			return nil
		}
		stopped = true
		cancel()
		return <-ended
	}
	DeferCleanup(func() { _ = stop() })
	return stop
}

func (w *world) newManager() ctrl.Manager {
	GinkgoHelper()
	skip := true
	mgr, err := ctrl.NewManager(w.user, ctrl.Options{
		Scheme:     types,
		Metrics:    metricsserver.Options{BindAddress: "0"},
		Controller: config.Controller{SkipNameValidation: &skip},
		Cache: cache.Options{ByObject: map[client.Object]cache.ByObject{
			&corev1.Pod{}:  {Field: fields.OneTermEqualSelector("spec.nodeName", w.node)},
			&corev1.Node{}: {Field: fields.OneTermEqualSelector("metadata.name", w.node)},
		}},
	})
	Expect(err).NotTo(HaveOccurred())
	return mgr
}

// objects reads what volumes show with the node's own credential.
func (w *world) objects(mgr ctrl.Manager) *objects.Reader {
	GinkgoHelper()
	live, err := client.NewWithWatch(w.user, client.Options{Scheme: types})
	Expect(err).NotTo(HaveOccurred())
	return objects.New(objects.Options{NodeName: w.node, Live: live, Cached: mgr.GetClient(), Clock: clock.RealClock{}})
}

func (w *world) disks() *gcepd.Driver {
	GinkgoHelper()
	disks, err := gcepd.New(stowagev1alpha1.GCEDriver, gcepd.Options{
		Mounter: mount.Kernel{}, Systems: filesystem.NewFileSystems(exec.New()), Finder: clouddisk.NewDiskFolder(w.deviceDir()),
		Folder: filepath.Join(w.root, "staged", stowagev1alpha1.GCEDriver), Earlier: filepath.Join(w.root, "disks"),
	})
	Expect(err).NotTo(HaveOccurred())
	return disks
}

func (w *world) types(called csi.CallerOptions) (directories, devices volumes.Registry, caller *csi.Caller) {
	GinkgoHelper()
	kernel := mount.Kernel{}
	caller, err := csitest.NewCallerOf(called, w.base)
	Expect(err).NotTo(HaveOccurred())
	directories = volumes.Registry{
		csi.New(caller), hostpath.New(kernel, w.root), local.New(kernel), emptydir.New(kernel),
		configmap.New(kernel), secret.New(kernel), downwardapi.New(kernel), projected.New(kernel), w.inline(),
	}
	return directories, volumes.Registry{csi.NewDevices(caller)}, caller
}

// pod is a pod on the world's node with these volumes.
func (w *world) pod(name string, volumes ...corev1.Volume) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: name},
		Spec: corev1.PodSpec{
			NodeName:   w.node,
			Containers: []corev1.Container{{Name: "main", Image: "example.com/main"}},
			Volumes:    volumes,
		},
	}
}

func fromClaim(name string) corev1.Volume {
	return corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{
		PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: name},
	}}
}

// ephemeral is a volume whose claim is made for the pod.
func ephemeral(name string) corev1.Volume {
	return corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{Ephemeral: &corev1.EphemeralVolumeSource{
		VolumeClaimTemplate: &corev1.PersistentVolumeClaimTemplate{Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Resources:   corev1.VolumeResourceRequirements{Requests: oneGi()},
		}},
	}}}
}

func emptyDir(name string, medium corev1.StorageMedium) corev1.Volume {
	return corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{Medium: medium}}}
}

// claim creates a claim that isn't bound.
func (w *world) claim(ctx context.Context, name string) *corev1.PersistentVolumeClaim {
	GinkgoHelper()
	none := ""
	claim := &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: name},
		Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes:      []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			StorageClassName: &none,
			Resources:        corev1.VolumeResourceRequirements{Requests: oneGi()},
		},
	}
	Expect(admin.Create(ctx, claim)).To(Succeed())
	return claim
}

// bind gives the claim a volume of this source, as a binder does.
func (w *world) bind(ctx context.Context, claim *corev1.PersistentVolumeClaim, source corev1.PersistentVolumeSource, options ...func(*corev1.PersistentVolume)) *corev1.PersistentVolume {
	GinkgoHelper()
	volume := &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: "pvc-" + string(claim.UID)},
		Spec: corev1.PersistentVolumeSpec{
			Capacity:                      oneGi(),
			AccessModes:                   claim.Spec.AccessModes,
			PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimRetain,
			PersistentVolumeSource:        source,
			ClaimRef:                      &corev1.ObjectReference{Namespace: claim.Namespace, Name: claim.Name, UID: claim.UID},
		},
	}
	for _, option := range options {
		option(volume)
	}
	Expect(admin.Create(ctx, volume)).To(Succeed())
	claim.Spec.VolumeName = volume.Name
	Expect(admin.Update(ctx, claim)).To(Succeed())
	claim.Status.Phase = corev1.ClaimBound
	Expect(admin.Status().Update(ctx, claim)).To(Succeed())
	return volume
}

// nodeVolume makes a directory as the local backend does, and is its source.
func (w *world) nodeVolume(claim *corev1.PersistentVolumeClaim) corev1.PersistentVolumeSource {
	GinkgoHelper()
	path := w.dataOf(claim)
	Expect(os.MkdirAll(path, 0o777)).To(Succeed())
	return corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{
		Driver: stowagev1alpha1.LocalDriver, VolumeHandle: filepath.Base(path),
		VolumeAttributes: map[string]string{
			stowagev1alpha1.PathAttribute:   path,
			stowagev1alpha1.LayoutAttribute: string(stowagev1alpha1.LayoutDirectory),
		},
	}}
}

// dataOf is where a claim's data lies on the node.
func (w *world) dataOf(claim *corev1.PersistentVolumeClaim) string {
	return filepath.Join(w.base, "fast", "pvc-"+string(claim.UID))
}

// boundClaim creates a claim with a local volume.
func (w *world) boundClaim(ctx context.Context, name string) *corev1.PersistentVolumeClaim {
	GinkgoHelper()
	claim := w.claim(ctx, name)
	w.bind(ctx, claim, w.nodeVolume(claim))
	return claim
}

// volumeDir is where a pod sees a volume of a type.
func (w *world) volumeDir(pod *corev1.Pod, plugin, name string) string {
	return filepath.Join(w.root, "pods", string(pod.UID), "volumes", "kubernetes.io~"+plugin, name)
}

// mountOf is where a pod sees a claim's local volume.
func (w *world) mountOf(pod *corev1.Pod, claim *corev1.PersistentVolumeClaim) string {
	return filepath.Join(w.volumeDir(pod, "csi", "pvc-"+string(claim.UID)), "mount")
}

// mounts is what is mounted in the agent's folder.
func (w *world) mounts() []mount.Point {
	GinkgoHelper()
	table, err := mount.Kernel{}.Table()
	Expect(err).NotTo(HaveOccurred())
	return table.Below(w.root)
}

// mountsInPods is what pods see: without what is staged.
func (w *world) mountsInPods() []mount.Point {
	GinkgoHelper()
	table, err := mount.Kernel{}.Table()
	Expect(err).NotTo(HaveOccurred())
	return table.Below(filepath.Join(w.root, "pods"))
}

// podDirs is the pods that have a directory.
func (w *world) podDirs() []string {
	GinkgoHelper()
	entries, err := os.ReadDir(filepath.Join(w.root, "pods"))
	if !os.IsNotExist(err) {
		Expect(err).NotTo(HaveOccurred())
	}
	var names []string
	for _, entry := range entries {
		names = append(names, entry.Name())
	}
	return names
}

func oneGi() corev1.ResourceList {
	return corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}
}

// volumesReady is what the pod's condition says: "<status> <reason>: <message>".
func volumesReady(ctx context.Context, pod *corev1.Pod) func() string {
	return func() string {
		read := &corev1.Pod{}
		if err := admin.Get(ctx, client.ObjectKeyFromObject(pod), read); err != nil {
			return err.Error()
		}
		for _, condition := range read.Status.Conditions {
			if condition.Type == stowagev1alpha1.VolumesReadyCondition {
				return fmt.Sprintf("%s %s: %s", condition.Status, condition.Reason, condition.Message)
			}
		}
		return ""
	}
}

// isGone reports whether a pod is gone from the API server.
func isGone(ctx context.Context, pod *corev1.Pod) func() bool {
	return func() bool {
		read := &corev1.Pod{}
		err := admin.Get(ctx, client.ObjectKeyFromObject(pod), read)
		return apierrors.IsNotFound(err) || err == nil && read.UID != pod.UID
	}
}

// eventsOf is the messages of a pod's events with a reason.
func eventsOf(ctx context.Context, pod *corev1.Pod, reason string) func() []string {
	return func() []string {
		events := &corev1.EventList{}
		if err := admin.List(ctx, events, client.InNamespace(pod.Namespace)); err != nil {
			return nil
		}
		var messages []string
		for _, event := range events.Items {
			if event.InvolvedObject.UID == pod.UID && event.Reason == reason {
				messages = append(messages, event.Message)
			}
		}
		return messages
	}
}

// growthOf is what grows volumes beside a reconciler.
func growthOf(options nodemanager.Options) growth.Options {
	return growth.Options{
		Volumes: options.Volumes, Devices: options.Devices, Mounter: options.Mounter, Client: options.Client, Live: options.Live,
		Events: options.Events, Numbers: options.Numbers, Clock: options.Clock,
	}
}
