package nodemanager_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"

	csispec "github.com/container-storage-interface/spec/lib/go/csi"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stowage-dev/stowage/internal/mount"
	"github.com/stowage-dev/stowage/internal/nodemanager/csinode"
	"github.com/stowage-dev/stowage/internal/nodemanager/drivers"
	"github.com/stowage-dev/stowage/internal/nodemanager/drivers/socket"
	"github.com/stowage-dev/stowage/internal/nodemanager/drivers/socket/sockettest"
	"github.com/stowage-dev/stowage/internal/nodemanager/objects"
	"github.com/stowage-dev/stowage/internal/nodemanager/plugins"
	"github.com/stowage-dev/stowage/internal/nodemanager/volumes/csi"
)

// withForeign has drivers of other projects register with the node's own credential.
func (w *world) withForeign(mgr ctrl.Manager, called csi.CallerOptions, shown *objects.Reader) (csi.CallerOptions, func() error) {
	node := &csinode.Drivers{NodeName: w.node, Client: mgr.GetClient(), Live: mgr.GetAPIReader()}
	registered := socket.NewRegistered(socket.Options{Cluster: shown, Mounts: mount.Kernel{}}, node)
	called.Registered, called.Objects = registered, shown
	found := plugins.New(plugins.Options{Folder: w.foreign, IsReserved: drivers.IsOwn, Handler: registered})
	return called, func() error { return errors.Join(mgr.Add(node), mgr.Add(found)) }
}

// program is a driver of another project, with the program that registers it.
type program struct {
	*sockettest.Driver
	name, endpoint, registration string
	stop                         func()
}

// newProgram makes a driver with a name of its own: CSIDriver objects are the whole cluster's.
func (w *world) newProgram(can ...csispec.NodeServiceCapability_RPC_Type) *program {
	GinkgoHelper()
	short := sockettest.Folder(GinkgoTB())
	p := &program{Driver: sockettest.New(GinkgoTB(), can...), name: w.namespace + ".example.com", endpoint: filepath.Join(short, "csi.sock")}
	// Paths of sockets are short, and those of tests are long.
	w.foreign = filepath.Join(short, plugins.FolderName)
	Expect(os.Mkdir(w.foreign, 0o750)).To(Succeed())
	p.registration = filepath.Join(w.foreign, "reg.sock")
	return p
}

// start starts the driver, and registers it.
func (p *program) start() {
	GinkgoHelper()
	stop := p.Serve(GinkgoTB(), p.endpoint)
	end := sockettest.NewRegistrar(p.name, p.endpoint).Serve(GinkgoTB(), p.registration)
	p.stop = func() { end(); stop() }
}

// object creates the driver's CSIDriver.
func (p *program) object(ctx context.Context, change func(*storagev1.CSIDriverSpec)) {
	GinkgoHelper()
	object := &storagev1.CSIDriver{ObjectMeta: metav1.ObjectMeta{Name: p.name}, Spec: storagev1.CSIDriverSpec{AttachRequired: new(false)}}
	if change != nil {
		change(&object.Spec)
	}
	Expect(admin.Create(ctx, object)).To(Succeed())
}

func (p *program) source(handle string) corev1.PersistentVolumeSource {
	return corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{Driver: p.name, VolumeHandle: handle, FSType: "ext4"}}
}

// driversOf is the drivers in the node's CSINode.
func (w *world) driversOf(ctx context.Context) func() []storagev1.CSINodeDriver {
	return func() []storagev1.CSINodeDriver {
		node := &storagev1.CSINode{}
		if err := admin.Get(ctx, client.ObjectKey{Name: w.node}, node); err != nil {
			return nil
		}
		return node.Spec.Drivers
	}
}
