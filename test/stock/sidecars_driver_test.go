package stock_test

import (
	"context"
	"errors"
	"path/filepath"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/test/harness/apiserver"
	"github.com/stowage-dev/stowage/test/harness/cluster"
	. "github.com/stowage-dev/stowage/test/harness/fixture"
)

const (
	// movable is the driver that is handed over, and the class of its volumes.
	movable = "mock.csi.example.com"
	// account is the Secret of its calls.
	account = "mock-account"
	// movableNode is the only node that it has, by its own topology.
	movableNode, movableKey, movableValue = "small", "io.kubernetes.storage.mock/node", "some-mock-node"
)

// movableDriver is a driver, with a record of its calls, and its sidecars.
type movableDriver struct {
	*recorder
	folder   string
	sidecars []*cluster.Program
}

// startDriver starts the driver of Kubernetes' own tests, for one spec, and makes the objects that an
// administrator makes for it. The sidecars and Stowage each reach it by a socket of their own.
func startDriver(ctx context.Context) *movableDriver {
	GinkgoHelper()
	d := &movableDriver{folder: GinkgoT().TempDir()}
	driver := cluster.NewProgram(cluster.ProgramOptions{
		Name: "csi-mock-driver", LogFile: plane.Log("csi-mock-driver"), Path: binary("csi-mock-driver"),
		Arguments: []string{"--socket=" + d.socket("driver"), "--driver-name=" + movable},
	})
	Expect(driver.Start()).To(Succeed())
	DeferCleanup(driver.Kill)
	d.recorder = record(d.socket("driver"))
	d.serve(d.socket("sidecars")) //nolint:contextcheck // calls have the contexts of their callers
	d.serve(d.socket("stowage"))  //nolint:contextcheck // the same
	for _, name := range []string{"csi-provisioner", "csi-attacher", "csi-resizer"} {
		address := freeAddress()
		d.sidecars = append(d.sidecars, cluster.NewProgram(cluster.ProgramOptions{
			Name: name, LogFile: plane.Log(name), Path: binary(name), Ready: "http://" + address + "/metrics",
			Arguments: []string{
				"--csi-address=" + d.socket("sidecars"), "--kubeconfig=" + filepath.Join(world.dir, "kubeconfigs", "admin"),
				"--http-endpoint=" + address, "--retry-interval-start=200ms", "--v=5",
			},
		}))
	}
	DeferCleanup(d.stopSidecars)
	d.makeObjects(ctx)
	return d
}

func binary(name string) string { return filepath.Join(apiserver.Repository(), "bin", name) }

func (d *movableDriver) socket(of string) string { return filepath.Join(d.folder, of+".sock") }

func (d *movableDriver) startSidecars(ctx context.Context) {
	GinkgoHelper()
	for _, program := range d.sidecars {
		Expect(program.StartReady(ctx)).To(Succeed())
	}
}

func (d *movableDriver) stopSidecars() {
	GinkgoHelper()
	for _, program := range d.sidecars {
		Expect(program.Kill()).To(Succeed())
	}
}

// makeObjects makes the class, the CSIDriver and the Secret, and registers the driver on its node.
func (d *movableDriver) makeObjects(ctx context.Context) {
	GinkgoHelper()
	class := Class(movable, movable, map[string]string{"tier": "gold", "csi.storage.k8s.io/fstype": "ext4"})
	for _, call := range []string{"provisioner", "controller-publish", "controller-expand", "node-stage", "node-publish", "node-expand"} {
		class.Parameters["csi.storage.k8s.io/"+call+"-secret-name"] = account
		class.Parameters["csi.storage.k8s.io/"+call+"-secret-namespace"] = namespace
	}
	class.AllowVolumeExpansion, class.MountOptions = new(true), []string{"noatime"}
	create(ctx, class, &storagev1.CSIDriver{ObjectMeta: metav1.ObjectMeta{Name: movable}},
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: account, Namespace: namespace}, Data: map[string][]byte{"key": []byte("opens it")}})
	d.register(ctx, storagev1.CSINodeDriver{Name: movable, NodeID: movable, TopologyKeys: []string{movableKey}})
	DeferCleanup(d.removeObjects, class)
}

func (d *movableDriver) removeObjects(ctx context.Context, class *storagev1.StorageClass) {
	GinkgoHelper()
	d.wipe(ctx)
	remove(ctx, class, &storagev1.CSIDriver{ObjectMeta: metav1.ObjectMeta{Name: movable}},
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: account, Namespace: namespace}})
	d.register(ctx)
	eventuallyGone(ctx, class)
}

// wipe removes what a spec that failed left, though nothing serves the driver any more: it ends with the spec.
func (d *movableDriver) wipe(ctx context.Context) {
	GinkgoHelper()
	Expect(users.DeleteAllOf(ctx, &corev1.Pod{}, client.InNamespace(Namespace), client.GracePeriodSeconds(0))).To(Succeed())
	Expect(users.DeleteAllOf(ctx, &corev1.PersistentVolumeClaim{}, client.InNamespace(Namespace))).To(Succeed())
	for _, list := range []client.ObjectList{&storagev1.VolumeAttachmentList{}, &corev1.PersistentVolumeClaimList{}, &corev1.PersistentVolumeList{}} {
		Expect(users.List(ctx, list)).To(Succeed())
		Expect(meta.EachListItem(list, func(item runtime.Object) error {
			object := item.(client.Object)
			before := object.DeepCopyObject().(client.Object)
			object.SetFinalizers(nil)
			return errors.Join(client.IgnoreNotFound(users.Delete(ctx, object)), client.IgnoreNotFound(users.Patch(ctx, object, client.MergeFrom(before))))
		})).To(Succeed())
	}
}

// register does what the node's kubelet does once the driver's pod runs there, or no longer.
func (d *movableDriver) register(ctx context.Context, as ...storagev1.CSINodeDriver) {
	GinkgoHelper()
	node := &corev1.Node{}
	Expect(users.Get(ctx, client.ObjectKey{Name: movableNode}, node)).To(Succeed())
	before := node.DeepCopy()
	node.Labels[movableKey] = movableValue
	Expect(users.Patch(ctx, node, client.MergeFrom(before))).To(Succeed())
	object := driversOn(node)
	earlier := &storagev1.CSINode{}
	Expect(users.Get(ctx, keyOf(object), earlier)).To(Succeed())
	object.ResourceVersion = earlier.ResourceVersion
	object.Spec.Drivers = append(object.Spec.Drivers, as...)
	Expect(users.Update(ctx, object)).To(Succeed())
}

// handOver creates the StorageBackend, and waits until Stowage serves the driver.
func (d *movableDriver) handOver(ctx context.Context) *stowagev1alpha1.StorageBackend {
	GinkgoHelper()
	secret := &stowagev1alpha1.SecretReference{Name: account}
	object := &stowagev1alpha1.StorageBackend{
		ObjectMeta: metav1.ObjectMeta{Name: movable},
		Spec: stowagev1alpha1.StorageBackendSpec{CSI: &stowagev1alpha1.CSIBackend{
			Driver: movable, Endpoint: "unix://" + d.socket("stowage"),
			Secrets: stowagev1alpha1.CSISecrets{
				Provision: secret, ControllerPublish: secret, ControllerExpand: secret, NodeStage: secret, NodePublish: secret, NodeExpand: secret,
			},
		}},
	}
	create(ctx, object)
	DeferCleanup(d.handBack, object)
	Eventually(func(g Gomega) {
		g.Expect(users.Get(ctx, keyOf(object), object)).To(Succeed())
		g.Expect(meta.IsStatusConditionTrue(object.Status.Conditions, stowagev1alpha1.ReadyCondition)).To(BeTrue(), "%v", object.Status.Conditions)
	}).WithContext(ctx).Should(Succeed())
	return object
}

// handBack deletes the StorageBackend, if it is there, and waits until it is gone.
func (d *movableDriver) handBack(ctx context.Context, object *stowagev1alpha1.StorageBackend) {
	GinkgoHelper()
	remove(ctx, object)
	eventuallyGone(ctx, object)
}
