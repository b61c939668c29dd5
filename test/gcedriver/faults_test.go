package gcedriver_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	. "github.com/stowage-dev/stowage/test/harness/fixture"
)

// faults are failures of the cloud while it makes a disk.
var faults = map[string]string{
	"too-many-requests": `{"method":"disks.insert","count":2,"status":429}`,
	refused:             `{"method":"disks.insert","count":2,"status":403,"reason":"rateLimitExceeded"}`,
	"unavailable":       `{"method":"disks.*","count":3,"status":503}`,
	"wait-refused":      `{"method":"zoneOperations.wait","count":2,"status":429}`,
	"slow":              `{"method":"disks.insert","count":1,"delay":"8s"}`,
	"lost":              `{"method":"disks.insert","count":1,"lost":true}`,
	"zone-exhausted":    `{"method":"disks.insert","count":1,"operation":"ZONE_RESOURCE_POOL_EXHAUSTED"}`,
	"quota":             `{"method":"disks.insert","count":1,"operation":"QUOTA_EXCEEDED"}`,
	"internal":          `{"method":"disks.insert","count":1,"operation":"INTERNAL_ERROR"}`,
}

// refused is the failure after which a claim is left to itself: it is tried again after half a
// minute. Others are woken, which saves the test that time.
const refused = "rate-limit"

// wake changes a claim, so that the manager tries again, at most once in a second.
func (s *story) wake(claim *corev1.PersistentVolumeClaim) error {
	now := time.Now().Format(time.TimeOnly)
	if claim.Annotations["example.com/woken"] == now {
		return nil
	}
	before := claim.DeepCopy()
	metav1.SetMetaDataAnnotation(&claim.ObjectMeta, "example.com/woken", now)
	return s.stowage.Client.Patch(s.Context(), claim, client.MergeFrom(before))
}

func TestNoFailureOfTheCloudLeaksOrDoublesADisk(t *testing.T) {
	t.Parallel()
	s := newStory(t)
	for name, fault := range faults {
		claim := Claim(ClaimNamed(name), InClass(driverName), Asking("10Gi"))
		s.arm(fault)
		s.create(claim)
		s.eventually(fmt.Sprintf("a claim gets its volume (%s)", name), func() error {
			if name == refused {
				return s.isBound(claim)
			}
			return errors.Join(s.wake(claim), s.isBound(claim))
		})
		s.calm()
		if err := s.hasDisks(claim); err != nil {
			t.Error(err)
		}
		s.delete(claim)
		s.eventually("its disk goes with it", func() error { return s.hasDisks() })
	}
	s.leavesNothing()
}

func TestAClaimThatGoesWhileItsDiskIsMadeLeavesNone(t *testing.T) {
	t.Parallel()
	s := newStory(t)
	for name, while := range map[string]struct {
		fault string
		do    func()
	}{
		"the-cloud-is-slow":       {fault: `{"method":"disks.insert","delay":"6s"}`},
		"calls-are-refused":       {fault: `{"method":"zoneOperations.wait","status":429}`},
		"all-answers-are-lost":    {fault: `{"method":"disks.insert","lost":true}`},
		"the-driver-is-restarted": {fault: `{"method":"disks.insert","delay":"6s"}`, do: func() { s.driver.kill(); s.startDriver() }},
		"the-driver-is-away":      {fault: `{"method":"disks.insert","delay":"1s"}`, do: func() { s.driver.kill() }},
	} {
		claim := Claim(ClaimNamed(name), InClass(driverName), Asking("10Gi"))
		s.arm(while.fault)
		s.create(claim)
		s.eventually("the cloud begins to make a disk, while "+name, func() error {
			if len(s.disks()) > 0 {
				return nil
			}
			return s.began("insert")
		})
		if while.do != nil {
			while.do()
		}
		s.delete(claim)
		s.calm()
		if name == "the-driver-is-away" {
			s.eventually("the disk is made", func() error { return s.hasDisks(claim) })
			s.startDriver()
		}
		s.eventually("claim and disk go", func() error {
			if err := s.isGone(claim); err != nil {
				return errors.Join(err, s.wake(claim))
			}
			return s.hasDisks()
		})
	}
	s.leavesNothing()
}
