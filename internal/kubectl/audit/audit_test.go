package audit_test

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/kubectl/audit"
	"github.com/stowage-dev/stowage/internal/kubectl/kubectltest"
	. "github.com/stowage-dev/stowage/test/harness/fixture"
)

func ago(d time.Duration) metav1.Time { return metav1.NewTime(kubectltest.Now.Add(-d)) }

// audited is a backend whose last audit, ten minutes ago, found what orphans and lost name.
func audited(orphans []stowagev1alpha1.Orphan, lost ...string) *stowagev1alpha1.StorageBackend {
	backend := LocalBackend("fast")
	backend.Spec.Audit.Interval.Duration = time.Hour
	backend.Status.Orphans, backend.Status.LostVolumes = ptr.To(int32(len(orphans))), ptr.To(int32(len(lost)))
	backend.Status.Audit = &stowagev1alpha1.AuditStatus{Time: ago(10 * time.Minute), Orphans: orphans, LostVolumes: lost}
	return backend
}

func TestAuditSaysWhatToDoAboutEachFinding(t *testing.T) {
	orphan := stowagev1alpha1.Orphan{ID: "pvc-1", ClaimNamespace: "shop", ClaimName: "data", Since: ago(2 * time.Hour)}
	onDisk, removing := orphan, orphan
	onDisk.NodeName, removing.Removing = "node-1", true
	removes := audited([]stowagev1alpha1.Orphan{orphan})
	removes.Spec.Audit.RemoveOrphansAfter = &metav1.Duration{Duration: 3 * time.Hour}
	late := audited(nil)
	late.Status.Audit.Time = ago(4 * time.Hour)
	more := audited([]stowagev1alpha1.Orphan{orphan})
	more.Status.Orphans = ptr.To(int32(200))
	never := LocalBackend("new")
	disk := &stowagev1alpha1.NodeDisk{
		ObjectMeta: metav1.ObjectMeta{Name: "d"}, Spec: stowagev1alpha1.NodeDiskSpec{NodeName: "node-1", Backend: "fast"},
		Status: stowagev1alpha1.NodeDiskStatus{Unrecorded: &stowagev1alpha1.UnrecordedVolumes{Count: 2}},
	}
	for name, test := range map[string]struct {
		objects []client.Object
		want    string
	}{
		"nothing was found":        {[]client.Object{audited(nil)}, "No orphans and no lost volumes are known."},
		"an orphan":                {[]client.Object{audited([]stowagev1alpha1.Orphan{orphan})}, "set spec.audit.removeOrphansAfter of the backend"},
		"with its claim and age":   {[]client.Object{audited([]stowagev1alpha1.Orphan{orphan})}, "pvc-1   shop/data   -      120m"},
		"an orphan that will go":   {[]client.Object{removes}, "before 2030-01-02T13:00:00Z, when removal begins"},
		"an orphan that goes":      {[]client.Object{audited([]stowagev1alpha1.Orphan{removing})}, "its data is being removed"},
		"an orphan on a disk":      {[]client.Object{audited([]stowagev1alpha1.Orphan{onDisk})}, "delete its folder on the node"},
		"a lost volume":            {[]client.Object{audited(nil, "v"), Volume("v", ReservedTo("data"))}, "default/data"},
		"an audit that is late":    {[]client.Object{late}, "4h ago (overdue)"},
		"no audit yet":             {[]client.Object{never}, "none yet"},
		"more than the list has":   {[]client.Object{more}, "Backend fast has more"},
		"volumes without a record": {[]client.Object{disk}, "Disk of backend fast on node node-1: 2 volumes without a NodeVolume."},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := kubectltest.Run(t.Context(), audit.New, "", kubectltest.Client(test.objects...))
			if err != nil || !strings.Contains(got.Out, test.want) {
				t.Errorf("want %q, got %v\n%s", test.want, err, got.Out)
			}
		})
	}
}

func TestAuditPrintsYAML(t *testing.T) {
	got, err := kubectltest.Run(t.Context(), audit.New, "-o yaml", kubectltest.Client(audited(nil, "v")))
	if err != nil || !strings.Contains(got.Out, "kind: lost") {
		t.Errorf("%v\n%s", err, got.Out)
	}
}
