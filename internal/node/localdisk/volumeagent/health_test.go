package volumeagent_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/go-logr/logr/funcr"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/prometheus/client_golang/prometheus"
	testclock "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/event"
	"github.com/stowage-dev/stowage/internal/node/localdisk/diskagent"
	"github.com/stowage-dev/stowage/internal/node/localdisk/volumeagent"
)

var _ = Describe("An inspection of a volume", func() {
	var (
		n        *node
		clock    *testclock.FakePassiveClock
		registry *prometheus.Registry
		writes   int
	)

	BeforeEach(func() {
		n = newNode()
		clock, registry, writes = testclock.NewFakePassiveClock(time.Now()), prometheus.NewRegistry(), 0
		options := n.options(counting(&writes))
		options.Clock = clock
		n.reconciler = volumeagent.NewReconciler(options)
		Expect(n.reconciler.Register(registry)).To(Succeed())
	})

	// later passes over a volume when some time has passed.
	later := func(ctx context.Context, volume *stowagev1alpha1.NodeVolume, passed time.Duration) *stowagev1alpha1.NodeVolume {
		GinkgoHelper()
		clock.SetTime(clock.Now().Add(passed))
		n.reconcile(ctx, volume)
		return read(ctx, volume)
	}

	It("finds a new directory empty, and writes that with all else", func(ctx context.Context) {
		volume := n.made(ctx)
		Expect(writes).To(Equal(1))
		Expect(healthy(ctx, volume)).To(Equal("True Ready"))
		Expect(read(ctx, volume).Status.Used.Value()).To(BeZero())
		Expect(read(ctx, volume).Status.Enforced).To(BeFalse())
	})

	It("writes nothing while nothing changes", func(ctx context.Context) {
		volume := n.made(ctx)
		for range 5 {
			later(ctx, volume, time.Minute)
		}
		Expect(writes).To(Equal(1))
	})

	It("has one line in the log for what it made, and none while nothing changes", func(ctx context.Context) {
		var lines []string
		log := funcr.New(func(_, line string) { lines = append(lines, line) }, funcr.Options{})
		options := n.options(n.api)
		options.Clock, options.Events = clock, event.Logged(n.events, log)
		n.reconciler, n.disks = volumeagent.NewReconciler(options), diskagent.NewReconciler(options)
		ctx = ctrl.LoggerInto(ctx, log)
		volume := n.made(ctx)
		Expect(lines).To(ConsistOf(HavePrefix(`"level"=0 "msg"="provisioned"`)))

		for range 3 {
			later(ctx, volume, time.Minute)
		}

		Expect(lines).To(HaveLen(1))
	})

	It("counts what a directory holds, when that was long ago", func(ctx context.Context) {
		volume := n.made(ctx)
		Expect(fill(filepath.Join(dir(volume), "file"), 8*mebibyte)).To(Succeed())
		later(ctx, volume, 10*time.Minute)
		Expect(n.reconciler.Count(ctx)).To(Succeed())
		counted := later(ctx, volume, time.Second)
		Expect(counted.Status.Used.Value()).To(BeNumerically("~", 8*mebibyte, mebibyte))
		Expect(*counted.Status.UsedInodes).To(BeEquivalentTo(2))
	})

	It("measures the file system in an image, where it is mounted", func(ctx context.Context) {
		needsPrograms("mkfs.ext4")
		volume := n.made(ctx, image("ext4"), sized("64Mi"))
		Expect(read(ctx, volume).Status.Enforced).To(BeTrue())
		Expect(read(ctx, volume).Status.Used).To(BeNil())
		Expect(fill(filepath.Join(mountImage(ctx, volume), "file"), 20*mebibyte)).To(Succeed())
		seen := later(ctx, volume, time.Minute)
		Expect(seen.Status.Used.Value()).To(BeNumerically("~", 22*mebibyte, 4*mebibyte))
		Expect(seen.Status.UsedInodes).NotTo(BeNil())
	})

	It("records one event on the claim when a volume is nearly full, and one when it no longer is", func(ctx context.Context) {
		needsPrograms("mkfs.ext4")
		volume := n.made(ctx, image("ext4"), sized("64Mi"))
		mounted := mountImage(ctx, volume)
		Expect(fill(filepath.Join(mounted, "file"), 64*mebibyte)).NotTo(Succeed())
		for range 3 {
			later(ctx, volume, time.Minute)
		}
		Expect(healthy(ctx, volume)).To(Equal("False VolumeNearlyFull"))
		Expect(ready(ctx, volume)).To(Equal("True Ready"))
		Expect(n.recorded()).To(ConsistOf(HavePrefix("Warning VolumeConditionAbnormal")))
		Expect(os.Remove(filepath.Join(mounted, "file"))).To(Succeed())
		later(ctx, volume, time.Minute)
		Expect(n.recorded()).To(ConsistOf(HavePrefix("Normal VolumeConditionNormal")))
	})

	It("reports that the kernel found errors in the file system in an image", func(ctx context.Context) {
		needsPrograms("mkfs.ext4")
		volume := n.made(ctx, image("ext4"), sized("64Mi"))
		mounted := mountImage(ctx, volume)
		trigger := "/sys/fs/ext4/" + filepath.Base(sourceOf(mounted)) + "/trigger_fs_error"
		if err := os.WriteFile(trigger, []byte("an error made by a test"), 0o200); err != nil {
			Skip("NOT RUN: the kernel can't be made to report an error: " + err.Error())
		}
		Eventually(func() string {
			later(ctx, volume, time.Minute)
			return healthy(ctx, volume)
		}).Should(Equal("False IOError"))
	})

	It("distinguishes a missing image from a lost volume", func(ctx context.Context) {
		needsPrograms("mkfs.ext4")
		whole, empty := n.made(ctx), n.made(ctx, image("ext4"), sized("16Mi"))
		Expect(os.Remove(dir(whole))).To(Succeed())
		Expect(os.Remove(imagePath(empty))).To(Succeed())
		later(ctx, whole, time.Minute)
		later(ctx, empty, time.Minute)
		Expect(healthy(ctx, whole)).To(Equal("False Lost"))
		Expect(healthy(ctx, empty)).To(Equal("False ImageMissing"))
		Expect(ready(ctx, empty)).To(Equal("False Lost"))
	})

	It("reports a nearly full disk for volumes that get their room from it", func(ctx context.Context) {
		disk := n.disk("fast", 64*mebibyte)
		volume := n.made(ctx, sized("1Mi"))
		Expect(fill(filepath.Join(disk, "others"), 62*mebibyte)).To(Succeed())
		later(ctx, volume, time.Minute)
		Expect(healthy(ctx, volume)).To(Equal("False DiskNearlyFull"))
	})

	It("exports the metrics of each volume until it is gone", func(ctx context.Context) {
		volume := n.made(ctx, sized("1Mi"))
		Expect(metricsOf(registry)).To(HaveKeyWithValue("stowage_local_volume_capacity_bytes", []string{volume.Name}))
		reclaim(ctx, volume)
		n.reconcile(ctx, volume)
		n.reconcile(ctx, volume)
		Expect(metricsOf(registry)).To(BeEmpty())
	})
})

// counting is a client that counts what is written to statuses.
func counting(writes *int) client.Client {
	GinkgoHelper()
	counted, err := client.NewWithWatch(server.Config, client.Options{Scheme: objects})
	Expect(err).NotTo(HaveOccurred())
	return interceptor.NewClient(counted, interceptor.Funcs{
		SubResourcePatch: func(ctx context.Context, to client.Client, name string, object client.Object, patch client.Patch, options ...client.SubResourcePatchOption) error {
			*writes++
			return to.SubResource(name).Patch(ctx, object, patch, options...)
		},
	})
}

func healthy(ctx context.Context, volume *stowagev1alpha1.NodeVolume) string {
	GinkgoHelper()
	verdict, _ := conditionOf(ctx, volume, stowagev1alpha1.HealthyCondition)
	return verdict
}

// recorded returns the events of the node since the last call.
func (n *node) recorded() []string {
	var found []string
	for len(n.events.Events) > 0 {
		found = append(found, <-n.events.Events)
	}
	return found
}

// sourceOf is the device that is mounted at a path.
func sourceOf(path string) string {
	GinkgoHelper()
	table, err := kernel.Table()
	Expect(err).NotTo(HaveOccurred())
	point, found := table.At(path)
	Expect(found).To(BeTrue())
	return point.Source
}

// metricsOf returns the volumes of each metric.
func metricsOf(registry *prometheus.Registry) map[string][]string {
	GinkgoHelper()
	families, err := registry.Gather()
	Expect(err).NotTo(HaveOccurred())
	volumes := map[string][]string{}
	for _, family := range families {
		for _, metric := range family.GetMetric() {
			for _, label := range metric.GetLabel() {
				if label.GetName() == "volume" && strings.HasPrefix(label.GetValue(), "pvc-") {
					volumes[family.GetName()] = append(volumes[family.GetName()], label.GetValue())
				}
			}
		}
	}
	return volumes
}
