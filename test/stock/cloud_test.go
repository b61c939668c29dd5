package stock_test

import (
	"context"
	"net/http"
	"path"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"google.golang.org/api/compute/v1"
	"google.golang.org/api/option"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/component-helpers/storage/volume"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func keyOf(object client.Object) client.ObjectKey { return client.ObjectKeyFromObject(object) }

// service is the cloud as others see it.
func (s *stowage) service(ctx context.Context) *compute.Service {
	GinkgoHelper()
	service, err := compute.NewService(ctx, option.WithEndpoint(s.cloud+"/compute/v1/"), option.WithoutAuthentication())
	Expect(err).NotTo(HaveOccurred())
	return service
}

// disks are the names of all disks that there are.
func (s *stowage) disks(ctx context.Context) []string {
	GinkgoHelper()
	var names []string
	for _, zone := range []string{zoneA, zoneB} {
		list, err := s.service(ctx).Disks.List(project, zone).Context(ctx).Do()
		Expect(err).NotTo(HaveOccurred())
		for _, disk := range list.Items {
			names = append(names, disk.Name)
		}
	}
	return names
}

// attachedTo are the names of the nodes that have a disk.
func (s *stowage) attachedTo(ctx context.Context, disk string) []string {
	GinkgoHelper()
	var names []string
	for _, zone := range []string{zoneA, zoneB} {
		list, err := s.service(ctx).Instances.List(project, zone).Context(ctx).Do()
		Expect(err).NotTo(HaveOccurred())
		for _, instance := range list.Items {
			for _, attached := range instance.Disks {
				if path.Base(attached.Source) == disk {
					names = append(names, instance.Name)
				}
			}
		}
	}
	return names
}

// slow makes the cloud's operations take so long.
func (s *stowage) slow(ctx context.Context, latency string) {
	GinkgoHelper()
	s.configure(ctx, http.MethodPut, "latency", `{"operation":"`+latency+`","answer":"0s"}`)
}

// fault makes calls go wrong, as gce-mock --help says; well takes all faults away.
func (s *stowage) fault(ctx context.Context, fault string) {
	GinkgoHelper()
	s.configure(ctx, http.MethodPost, "faults", fault)
}

func (s *stowage) well(ctx context.Context) {
	GinkgoHelper()
	s.configure(ctx, http.MethodDelete, "faults", "")
}

func (s *stowage) configure(ctx context.Context, method, what, body string) {
	GinkgoHelper()
	request, err := http.NewRequestWithContext(ctx, method, s.cloud+"/_mock/"+what, strings.NewReader(body))
	Expect(err).NotTo(HaveOccurred())
	response, err := http.DefaultClient.Do(request)
	Expect(err).NotTo(HaveOccurred())
	defer response.Body.Close()
	Expect(response).To(HaveHTTPStatus(http.StatusOK))
}

// isUsableOn reports whether pods on a node can have a volume.
func isUsableOn(pv *corev1.PersistentVolume, name string) bool {
	GinkgoHelper()
	node := &corev1.Node{}
	Expect(users.Get(context.Background(), client.ObjectKey{Name: name}, node)).To(Succeed())
	return volume.CheckNodeAffinity(pv, node.Labels) == nil
}
