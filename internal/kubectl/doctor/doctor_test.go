package doctor

import (
	"fmt"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/kubectl/kubectltest"
	. "github.com/stowage-dev/stowage/test/harness/fixture"
)

// whole is an installation of scope classes on one node, without a fault.
func whole() *objects {
	backend := LocalBackend("fast")
	backend.Status.Conditions = []metav1.Condition{{Type: "Ready", Status: metav1.ConditionTrue}}
	o := &objects{
		server: "v1.37.1", client: "v1", served: resources, now: kubectltest.Now, asked: 12, controllers: []string{""},
		nodes: []corev1.Node{*Node("node-1")}, backends: []stowagev1alpha1.StorageBackend{*backend},
		classes:  []storagev1.StorageClass{*Class("fast", "local.stowage.dev", nil)},
		csiNodes: []storagev1.CSINode{{ObjectMeta: metav1.ObjectMeta{Name: "node-1"}}},
		lead:     []coordinationv1.Lease{{Spec: coordinationv1.LeaseSpec{HolderIdentity: ptr.To("a"), RenewTime: ptr.To(metav1.NewMicroTime(kubectltest.Now))}}},
		leases: []coordinationv1.Lease{{
			ObjectMeta: metav1.ObjectMeta{Name: "node-1", ManagedFields: []metav1.ManagedFieldsEntry{{Time: ptr.To(metav1.NewTime(kubectltest.Now))}}},
			Spec:       coordinationv1.LeaseSpec{RenewTime: ptr.To(metav1.NewMicroTime(kubectltest.Now.Add(time.Second)))},
		}},
	}
	for _, name := range ours {
		o.drivers = append(o.drivers, storagev1.CSIDriver{ObjectMeta: metav1.ObjectMeta{Name: name}})
		o.csiNodes[0].Spec.Drivers = append(o.csiNodes[0].Spec.Drivers, storagev1.CSINodeDriver{Name: name})
	}
	manager := appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "stowage-system", Name: "stowage-manager"}}
	manager.Spec.Template.Spec.Containers = []corev1.Container{{Image: "registry:5000/stowage-manager:v1", Args: []string{"--scope=classes"}}}
	manager.Status.ReadyReplicas, manager.Status.Replicas = 2, 2
	agent := appsv1.DaemonSet{}
	agent.Spec.Template.Spec = corev1.PodSpec{HostNetwork: true, Containers: []corev1.Container{{
		Image: "stowage-node-agent:v1", SecurityContext: &corev1.SecurityContext{Privileged: ptr.To(true)},
		VolumeMounts: []corev1.VolumeMount{{Name: "kubelet", MountPropagation: ptr.To(corev1.MountPropagationBidirectional)}},
	}}}
	agent.Status.NumberReady, agent.Status.DesiredNumberScheduled = 1, 1
	o.managers, o.agents = []appsv1.Deployment{manager}, []appsv1.DaemonSet{agent}
	return o
}

func TestDoctorFindsNoFaultInAWholeInstallation(t *testing.T) {
	r := report(whole())
	for _, check := range r.Checks {
		if check.Result == Failed || check.Result == Warning || check.Result == Unknown && check.Subject == "clocks" {
			t.Errorf("%+v", check)
		}
	}
	if r.Failed != 0 {
		t.Errorf("%d failed", r.Failed)
	}
}

func TestDoctorFindsEachFault(t *testing.T) {
	for name, test := range map[string]struct {
		change  func(*objects)
		subject string
		result  Result
		says    string
	}{
		"two versions":                  {func(o *objects) { o.agents[0].Spec.Template.Spec.Containers[0].Image = "agent:v0" }, "versions", Warning, "images v0, v1"},
		"no CRD":                        {func(o *objects) { o.served = o.served[:3] }, "CRDs", Failed, "doesn't serve storagebackends"},
		"no manager":                    {func(o *objects) { o.managers, o.lead = nil, nil }, "manager", Failed, "no Deployment"},
		"a manager outside the cluster": {func(o *objects) { o.managers = nil }, "manager", OK, "outside the cluster, without a Deployment: a holds lease"},
		"agents outside the cluster": {func(o *objects) {
			o.agents, o.csiNodes[0].Annotations = nil, map[string]string{stowagev1alpha1.FollowsPodsAnnotation: "true"}
		}, "node agents", OK, "outside the cluster, without a DaemonSet: they follow pods on 1 of 1 nodes"},
		"no manager is ready": {func(o *objects) { o.managers[0].Status.ReadyReplicas = 0 }, "manager", Failed, "0 of 2 replicas ready"},
		"no leader":           {func(o *objects) { o.lead[0].Spec.RenewTime.Time = kubectltest.Now.Add(-time.Hour) }, "leader", Failed, "was last renewed at 2030-01-02T11:00:00Z"},
		"a pod that ends": {func(o *objects) {
			o.pods = []corev1.Pod{{Status: corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{{State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}}}}}}}
		}, "pods", Failed, "CrashLoopBackOff"},
		"an agent isn't ready":     {func(o *objects) { o.agents[0].Status.NumberReady = 0 }, "node agents", Failed, "0 of 1 ready"},
		"no agents":                {func(o *objects) { o.agents = nil }, "node agents", Failed, "no DaemonSet"},
		"a right is missing":       {func(o *objects) { o.denied = []string{"a may not b"} }, "rights", Failed, "a may not b"},
		"rights can't be asked":    {func(o *objects) { o.unasked = "forbidden" }, "rights", Unknown, "forbidden"},
		"a CSIDriver is missing":   {func(o *objects) { o.drivers = o.drivers[1:] }, "CSIDrivers", Failed, "gce.stowage.dev is missing"},
		"a CSIDriver is wrong":     {func(o *objects) { o.drivers[1].Spec.AttachRequired = ptr.To(true) }, "CSIDrivers", Failed, "attachRequired true"},
		"a driver isn't on a node": {func(o *objects) { o.csiNodes[0].Spec.Drivers = nil }, "registration", Failed, "gce.stowage.dev on node-1"},
		"no propagation":           {func(o *objects) { o.agents[0].Spec.Template.Spec.Containers[0].VolumeMounts[0].MountPropagation = nil }, "mount propagation", Failed, "kubelet isn't mounted Bidirectional"},
		"no privilege":             {func(o *objects) { o.agents[0].Spec.Template.Spec.Containers[0].SecurityContext = nil }, "mount propagation", Failed, "isn't privileged"},
		"a node isn't Ready":       {func(o *objects) { o.nodes[0].Status.Conditions = nil }, "nodes", Warning, "node-1"},
		"a clock is wrong":         {func(o *objects) { o.leases[0].Spec.RenewTime.Time = kubectltest.Now.Add(-time.Minute) }, "clocks", Warning, "node-1 by -1m0s"},
		"a slow write is no clock": {func(o *objects) { o.leases[0].Spec.RenewTime.Time = kubectltest.Now.Add(-10 * time.Second) }, "clocks", OK, "within 15s of the API server's"},
		"no lease can be read":     {func(o *objects) { o.leases = nil }, "clocks", Unknown, "no lease"},
		"a backend isn't Ready":    {func(o *objects) { o.backends[0].Status.Conditions = nil }, "backends", Failed, "fast"},
		"no backend":               {func(o *objects) { o.backends = nil }, "backends", Warning, "there is none"},
		"two binders":              {func(o *objects) { o.managers[0].Spec.Template.Spec.Containers[0].Args[0] = "--scope=cluster" }, "binding", Failed, "binds, too"},
		"no binder":                {func(o *objects) { o.controllers = []string{"--controllers=*,-persistentvolume-binder-controller"} }, "binding", Failed, "nothing binds claims"},
		"flags can't be seen":      {func(o *objects) { o.controllers = nil }, "binding", Unknown, "can't be seen"},
		"tools":                    {func(*objects) {}, "tools on nodes", Unknown, "no object lists the programs"},
	} {
		t.Run(name, func(t *testing.T) {
			o := whole()
			test.change(o)
			for _, check := range report(o).Checks {
				if check.Subject == test.subject && check.Result == test.result && strings.Contains(check.Says, test.says) {
					return
				}
			}
			t.Errorf("no check %s is %s and says %q: %+v", test.subject, test.result, test.says, report(o).Checks)
		})
	}
}

func TestDoctorGivesEachBackendThatIsNotReadyALine(t *testing.T) {
	o := whole()
	for len(o.backends) < 7 {
		o.backends = append(o.backends, o.backends[0])
		o.backends[len(o.backends)-1].Name, o.backends[len(o.backends)-1].Status.Conditions = fmt.Sprintf("b%d", len(o.backends)), nil
	}
	var says []string
	for _, check := range report(o).Checks {
		if check.Result == Failed {
			says = append(says, check.Subject+": "+check.Says)
		}
	}
	if got := strings.Join(says, "\n"); len(says) != 6 || !strings.Contains(got, "backends: b2 isn't Ready: ") || !strings.Contains(got, "backends: 1 more aren't Ready") {
		t.Errorf("there are %d:\n%s", len(says), got)
	}
}

func TestTheTagOfAnImage(t *testing.T) {
	for image, want := range map[string]string{"r:5000/a/b:v1": "v1", "b@sha256:0": "sha256:0", "r:5000/b": ":latest", "b": ":latest"} {
		if got := tagOf([]corev1.Container{{Image: image}}); got != want {
			t.Errorf("%s: got %s, want %s", image, got, want)
		}
	}
}
