package memory_test

import (
	"testing"
	"time"

	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/stowage-dev/stowage/controllers/node/memory"
)

// shown is what a cache shows of attachments.
func shown(uids ...types.UID) []storagev1.VolumeAttachment {
	all := make([]storagev1.VolumeAttachment, len(uids))
	for i, uid := range uids {
		all[i].UID = uid
	}
	return all
}

func TestADeletedAttachmentIsMarkedUntilTheCacheShowsIt(t *testing.T) {
	deleted, now := &memory.DeletedAttachments{}, time.Now()
	deleted.Add("node", "a", now)
	for range 2 {
		all := shown("a", "b")
		deleted.Mark("node", all)
		if at := all[0].DeletionTimestamp; at == nil || !at.Time.Equal(now) {
			t.Errorf("it is marked as deleted at %v", at)
		}
		if all[1].DeletionTimestamp != nil {
			t.Error("the other is marked, too")
		}
	}
	then := metav1.NewTime(now.Add(-time.Second))
	all := shown("a")
	all[0].DeletionTimestamp = &then
	deleted.Mark("node", all)
	if !all[0].DeletionTimestamp.Equal(&then) {
		t.Error("the time that the cache shows is replaced")
	}
	all = shown("a")
	deleted.Mark("node", all)
	if all[0].DeletionTimestamp != nil {
		t.Error("it is marked after the cache showed it")
	}
}

func TestADeletedAttachmentIsMarkedOnItsNodeAlone(t *testing.T) {
	deleted := &memory.DeletedAttachments{}
	deleted.Add("node", "a", time.Now())
	all := shown("a")
	deleted.Mark("another", all)
	if all[0].DeletionTimestamp != nil {
		t.Error("it is marked")
	}
}
