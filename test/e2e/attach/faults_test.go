package attach_test

import (
	"errors"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"

	"github.com/stowage-dev/stowage/test/harness/fixture"
	"github.com/stowage-dev/stowage/test/harness/scenario"
)

// cloudKilled: the cloud itself goes in the middle of an operation.
func cloudKilled(s *spec) {
	pod := s.pod("cut-off", 2, s.data)
	scenario.Step("gce-mock is killed with -9, while a disk is being attached", func() error {
		return s.inTheMiddle(attaching, func() error { return s.stowage.Create(s.ctx, pod) }, s.cloud.kill)
	})
	scenario.Step("it is started again, and the pod gets its disk", func() error {
		return errors.Join(s.cloud.StartReady(s.ctx), s.arrives(pod))
	})
	scenario.Step("the pod is deleted, and gce-mock is killed while the disk is detached", func() error {
		return s.inTheMiddle(detaching, func() error { return s.end(pod) }, s.cloud.kill)
	})
	scenario.Step("it is started again, and the disk is attached nowhere", func() error {
		return errors.Join(s.cloud.StartReady(s.ctx), s.isDetachedSoon(s.data))
	})
}

// trouble is something that the cloud does wrong while a disk is attached.
type trouble struct{ name, what, fault, says string }

// cloudFails: the cloud refuses, fails and forgets to answer.
func cloudFails(s *spec) {
	var claim *corev1.PersistentVolumeClaim
	scenario.Step("a claim is made while the cloud's quota is used up, and says so", func() error {
		claim = fixture.Claim(fixture.ClaimNamed("late"), fixture.InClass(patientClass), fixture.Asking("10Gi"))
		return errors.Join(s.cloud.fault(s.ctx, `{"method":"disks.insert","operation":"QUOTA_EXCEEDED","message":"the quota is used up"}`),
			s.stowage.Create(s.ctx, claim), s.stowage.AwaitEvent(s.ctx, claim.Name, "ProvisioningFailed", "the quota is used up"), s.cloud.well(s.ctx))
	})
	for _, trouble := range []trouble{
		{"busy", "it has too much to do", `{"method":"instances.attachDisk","count":1000,"status":503,"retryAfter":"1s"}`, "503"},
		{
			"broken", "operations end in an error",
			`{"method":"instances.attachDisk","count":1000,"operation":"INTERNAL_ERROR","message":"a machine broke"}`, "a machine broke",
		},
		{"mute", "its answer is lost", `{"method":"instances.attachDisk","count":1,"lost":true}`, ""},
	} {
		s.bearsTrouble(trouble)
	}
	scenario.Step("a disk that the cloud refuses to detach for a while is detached in the end", func() error {
		pod := s.pod("kept-back", 1, s.data)
		if err := s.run(pod); err != nil {
			return err
		}
		refusal := s.cloud.fault(s.ctx, `{"method":"instances.detachDisk","count":1000,"status":503,"retryAfter":"1s","message":"come back later"}`)
		return errors.Join(refusal, s.end(pod), s.attachmentSays(s.data, "come back later"), s.cloud.well(s.ctx), s.isDetachedSoon(s.data))
	})
	scenario.Step("the claim gets its disk, now that there is quota again, and the disk goes with it", func() error {
		return errors.Join(s.stowage.AwaitBound(s.ctx, claim), s.stowage.Delete(s.ctx, claim), s.diskGoes(claim))
	})
}

// bearsTrouble has a pod begin while the cloud does something wrong.
func (s *spec) bearsTrouble(trouble trouble) {
	scenario.Step("a pod gets its disk though the cloud is in trouble: "+trouble.what, func() error {
		pod := s.pod(trouble.name, 1, s.data)
		if err := errors.Join(s.cloud.fault(s.ctx, trouble.fault), s.stowage.Create(s.ctx, pod)); err != nil {
			return err
		}
		// The fault lasts until the attachment says so: this can't be too slow to see it.
		if trouble.says != "" {
			if err := errors.Join(s.attachmentSays(s.data, trouble.says), s.cloud.well(s.ctx)); err != nil {
				return err
			}
		}
		// Else the next pod could keep the attachment of this one, and meet no trouble.
		return errors.Join(s.arrives(pod), s.end(pod), s.cloud.well(s.ctx), s.isDetachedSoon(s.data))
	})
}

// attachmentSays waits until an attachment of a claim's volume has an error.
func (s *spec) attachmentSays(claim *corev1.PersistentVolumeClaim, text string) error {
	return scenario.Eventually(s.ctx, func() error {
		attachments, err := s.attachments(claim)
		if err != nil {
			return err
		}
		var said []string
		for _, attachment := range attachments {
			said = append(said, messages(attachment.Status)...)
		}
		if !strings.Contains(strings.Join(said, "\n"), text) {
			return fmt.Errorf("%d attachments of %s say %q", len(attachments), claim.Spec.VolumeName, said)
		}
		return nil
	})
}

func messages(status storagev1.VolumeAttachmentStatus) (all []string) {
	for _, failure := range []*storagev1.VolumeError{status.AttachError, status.DetachError} {
		if failure != nil {
			all = append(all, failure.Message)
		}
	}
	return all
}
