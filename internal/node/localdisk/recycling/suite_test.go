package recycling_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/uuid"
	clocktesting "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/mount"
	"github.com/stowage-dev/stowage/internal/mount/mounttest"
	"github.com/stowage-dev/stowage/internal/node/localdisk/recycling"
	"github.com/stowage-dev/stowage/test/harness/apiserver"
	"github.com/stowage-dev/stowage/test/harness/specs"
)

var (
	server *apiserver.Server
	admin  client.Client
	kernel = mount.Kernel{}
)

func TestMain(m *testing.M) { mounttest.Main(m) }

func TestNodeRecycling(t *testing.T) {
	specs.Run(t, "local recycling")
}

var _ = BeforeSuite(func() {
	ctrl.SetLogger(GinkgoLogr)
	objects := runtime.NewScheme()
	Expect(stowagev1alpha1.AddToScheme(objects)).To(Succeed())
	var err error
	server, err = apiserver.Start(apiserver.Options{OneByOne: true, Rights: true})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(server.Stop)
	admin, err = client.New(server.Config, client.Options{Scheme: objects})
	Expect(err).NotTo(HaveOccurred())
})

// node is one node with a folder in which its agent may empty directories, a canary
// beside it, and a directory in it that holds data.
type node struct {
	name, top, root, scratch, canary string
	// api has the rights of the node's agent.
	api   client.Client
	clock *clocktesting.FakePassiveClock
	live  *before
	slice time.Duration
	agent *recycling.Reconciler
}

func newNode() *node {
	GinkgoHelper()
	top, err := filepath.EvalSymlinks(GinkgoT().TempDir())
	Expect(err).NotTo(HaveOccurred())
	n := &node{
		name: "node-" + string(uuid.NewUUID()), top: top, root: filepath.Join(top, "root"),
		scratch: filepath.Join(top, "root", "scratch"), canary: filepath.Join(top, "precious", "canary"),
		clock: clocktesting.NewFakePassiveClock(time.Now()),
	}
	n.api, err = client.New(server.As(apiserver.Agent(n.name)), client.Options{Scheme: admin.Scheme(), Mapper: admin.RESTMapper()})
	Expect(err).NotTo(HaveOccurred())
	n.live = &before{Reader: n.api}
	write(n.canary)
	write(filepath.Join(n.scratch, "dir", "file"))
	Expect(os.Symlink(filepath.Dir(n.canary), filepath.Join(n.scratch, "link"))).To(Succeed())
	DeferCleanup(func() { Expect(mount.UnmountBelow(kernel, top)).To(Succeed()) })
	n.agent = n.newAgent()
	return n
}

// newAgent is an agent of the node that has just been started.
func (n *node) newAgent() *recycling.Reconciler {
	return recycling.NewReconciler(recycling.Options{
		NodeName: n.name, Folder: recycling.Folder{Root: n.root, Slice: n.slice}, Client: n.api, Live: n.live, Clock: n.clock,
	})
}

// order creates a NodeRecycling of a directory, as the manager does.
func (n *node) order(path string) *stowagev1alpha1.NodeRecycling {
	GinkgoHelper()
	object := &stowagev1alpha1.NodeRecycling{
		ObjectMeta: metav1.ObjectMeta{Name: "scratch-" + string(uuid.NewUUID())},
		Spec: stowagev1alpha1.NodeRecyclingSpec{
			NodeName: n.name, Path: stowagev1alpha1.AbsolutePath(path),
			Volume:   stowagev1alpha1.VolumeVersion{UID: uuid.NewUUID(), ResourceVersion: "7"},
			ClaimRef: stowagev1alpha1.ClaimReference{Namespace: "shop", Name: "orders", UID: uuid.NewUUID()},
		},
	}
	Expect(admin.Create(context.Background(), object)).To(Succeed())
	DeferCleanup(func() { Expect(client.IgnoreNotFound(admin.Delete(context.Background(), object))).To(Succeed()) })
	return object
}

// pass has an agent reconcile a NodeRecycling once, and reads it again.
func pass(agent *recycling.Reconciler, object *stowagev1alpha1.NodeRecycling) ctrl.Result {
	GinkgoHelper()
	result, err := agent.Reconcile(context.Background(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(object)})
	Expect(err).NotTo(HaveOccurred())
	read(object)
	return result
}

func read(object *stowagev1alpha1.NodeRecycling) {
	GinkgoHelper()
	Expect(client.IgnoreNotFound(admin.Get(context.Background(), client.ObjectKeyFromObject(object), object))).To(Succeed())
}

// approve approves the request of the agent, as the manager does.
func approve(object *stowagev1alpha1.NodeRecycling) {
	GinkgoHelper()
	read(object)
	Expect(object.Status.Asking).NotTo(BeEmpty())
	before := object.DeepCopy()
	object.Spec.Approved = object.Status.Asking
	Expect(admin.Patch(context.Background(), object, client.MergeFrom(before))).To(Succeed())
}

// conditionOf returns the condition: "<status> <reason>", and its message.
func conditionOf(object *stowagev1alpha1.NodeRecycling) (verdict, message string) {
	GinkgoHelper()
	found := meta.FindStatusCondition(object.Status.Conditions, stowagev1alpha1.EmptiedCondition)
	Expect(found).NotTo(BeNil())
	Expect(found.ObservedGeneration).To(Equal(object.Generation))
	return string(found.Status) + " " + found.Reason, found.Message
}

// before does something once, before a live read.
type before struct {
	client.Reader
	do func()
}

func (b *before) Get(ctx context.Context, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
	if do := b.do; do != nil {
		b.do = nil
		do()
	}
	return b.Reader.Get(ctx, key, object, options...)
}

func write(path string) {
	GinkgoHelper()
	Expect(os.MkdirAll(filepath.Dir(path), 0o755)).To(Succeed())
	Expect(os.WriteFile(path, nil, 0o600)).To(Succeed())
}

func needsMounts() {
	if !mounttest.MayMount() {
		Skip("NOT RUN: needs root, and a mount namespace of its own, to mount")
	}
}

func bindMount(from, target string) {
	GinkgoHelper()
	source, err := os.Open(from)
	Expect(err).NotTo(HaveOccurred())
	defer source.Close()
	Expect(kernel.Bind(source, target, mount.ReadWrite)).To(Succeed())
}
