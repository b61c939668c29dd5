package usage

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
)

func TestUsageIsToldWhenItMovedMuchOrLongAgo(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	told := func(ago time.Duration) stowagev1alpha1.NodeVolumeStatus {
		return stowagev1alpha1.NodeVolumeStatus{
			Capacity: resource.NewQuantity(1000, resource.BinarySI), Used: resource.NewQuantity(500, resource.BinarySI),
			UsedInodes: new(int64(5)), UsedTime: new(metav1.NewTime(now.Add(-ago))),
		}
	}
	for name, test := range map[string]struct {
		told   stowagev1alpha1.NodeVolumeStatus
		bytes  int64
		inodes int64
		news   bool
	}{
		"the first":               {stowagev1alpha1.NodeVolumeStatus{}, 0, 0, true},
		"the same, long ago":      {told(time.Hour), 500, 5, false},
		"a little":                {told(time.Minute), 550, 5, false},
		"much":                    {told(time.Minute), 551, 5, true},
		"much less":               {told(time.Minute), 449, 5, true},
		"a little, long ago":      {told(usageInterval), 501, 5, true},
		"only inodes, long ago":   {told(usageInterval), 500, 6, true},
		"only inodes, short time": {told(time.Minute), 500, 6, false},
	} {
		if got := isNews(&test.told, Usage{Bytes: test.bytes, Inodes: &test.inodes}, now); got != test.news {
			t.Errorf("%s: got %v", name, got)
		}
	}
}
