package csi

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	csispec "github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"

	"github.com/stowage-dev/stowage/internal/mount/remote"
)

func TestASecondCallForAVolumeIsAbortedUntilTheFirstIsReallyOver(t *testing.T) {
	begun, end := make(chan struct{}, 1), make(chan struct{})
	driver := &plainDriver{do: func(context.Context) error {
		begun <- struct{}{}
		<-end
		return nil
	}}
	w := startWorld(t, driver, worldOptions{})
	impatient, giveUp := context.WithCancel(t.Context())
	first := make(chan error, 1)
	go func() {
		_, err := w.node.NodeStageVolume(impatient, stageRequest(nil))
		first <- err
	}()
	<-begun
	giveUp()
	wantCode(t, <-first, codes.Canceled, "")

	// Its caller is gone, and the work isn't.
	_, err := w.node.NodeUnpublishVolume(t.Context(), &csispec.NodeUnpublishVolumeRequest{VolumeId: "v1", TargetPath: "/t/other"})
	wantCode(t, err, codes.Aborted, "v1")
	if _, err := w.node.NodeGetVolumeHealth(t.Context(), &csispec.NodeGetVolumeHealthRequest{VolumeId: "v1"}); err != nil {
		t.Errorf("health has to wait: %v", err)
	}
	close(end)
	await(t, "the volume is free again", func() error {
		_, err := w.node.NodePublishVolume(t.Context(), publishRequest(nil))
		return err
	})
}

func TestWorkGoesOnWhenItsCallerGivesUp(t *testing.T) {
	begun, end, ended := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	driver := &plainDriver{do: func(ctx context.Context) error {
		close(begun)
		select {
		case <-ctx.Done():
		case <-end:
		}
		ended <- ctx.Err()
		return ctx.Err()
	}}
	w := startWorld(t, driver, worldOptions{})
	impatient, giveUp := context.WithCancel(t.Context())
	go func() {
		<-begun
		giveUp()
	}()
	_, err := w.node.NodeStageVolume(impatient, stageRequest(nil))
	wantCode(t, err, codes.Canceled, "")
	// What the server hears of a caller it hears before this call.
	if _, err := w.node.NodeGetVolumeHealth(t.Context(), &csispec.NodeGetVolumeHealthRequest{VolumeId: "v1"}); err != nil {
		t.Error(err)
	}
	close(end)
	if err := <-ended; err != nil {
		t.Errorf("it was cut off: %v", err)
	}
}

func TestAnotherVolumeNeedsNotWait(t *testing.T) {
	end := make(chan struct{})
	driver := &plainDriver{do: func(context.Context) error { <-end; return nil }}
	w, ended := startWorld(t, driver, worldOptions{}), make(chan error, 2)
	for _, id := range []string{"v1", "v2"} {
		go func() {
			_, err := w.node.NodeStageVolume(t.Context(), stageRequest(func(r *csispec.NodeStageVolumeRequest) { r.VolumeId = id }))
			ended <- err
		}()
	}
	await(t, "both are under way", func() error {
		if driver.count() < 2 {
			return errors.New("only one is")
		}
		return nil
	})
	close(end)
	for range 2 {
		wantCode(t, <-ended, codes.OK, "")
	}
}

func TestNothingSecretIsLogged(t *testing.T) {
	const secret = "hunter2"
	said := map[string]string{"key": secret, "device": secret, "serial": secret}
	log, lines := logbook()
	driver := &plainDriver{do: func(context.Context) error { return errors.New("mounting " + secret) }}
	w := startWorld(t, driver, worldOptions{log: log})
	stage := stageRequest(func(r *csispec.NodeStageVolumeRequest) {
		r.Secrets, r.VolumeContext, r.PublishContext = said, said, said
		r.VolumeCapability.GetMount().MountFlags = []string{"password=" + secret}
	})
	publish := publishRequest(func(r *csispec.NodePublishVolumeRequest) {
		r.Secrets, r.VolumeContext, r.PublishContext = said, said, said
	})
	call := func() {
		_, err := w.node.NodeStageVolume(t.Context(), stage)
		wantCode(t, err, codes.Unavailable, "")
		_, err = w.node.NodePublishVolume(t.Context(), publish)
		wantCode(t, err, codes.Unavailable, "")
	}
	call()
	driver.mu.Lock()
	driver.do = func(context.Context) error { panic(secret) }
	driver.mu.Unlock()
	call()
	if err := w.stop(); err != nil {
		t.Error(err)
	}
	got := lines()
	if strings.Contains(got, secret) {
		t.Errorf("it logs %s", got)
	}
	for _, want := range []string{`"method"="NodeStageVolume"`, `"volume"="v1"`, `"code"="Unavailable"`, `"took"=`, "panicked"} {
		if !strings.Contains(got, want) {
			t.Errorf("it doesn't log %s: %s", want, got)
		}
	}
}

func TestAPanicEndsOneCallAndFreesItsVolume(t *testing.T) {
	driver := &plainDriver{do: func(context.Context) error { panic("x") }}
	w := startWorld(t, driver, worldOptions{})
	for range 2 {
		_, err := w.node.NodeUnstageVolume(t.Context(), &csispec.NodeUnstageVolumeRequest{VolumeId: "v1", StagingTargetPath: "/s"})
		wantCode(t, err, codes.Internal, "fault")
	}
	_, err := w.node.NodeStageVolume(t.Context(), stageRequest(nil))
	wantCode(t, err, codes.Unavailable, "fault")
}

func TestASilentServerIsAskedOnceAndWaitedForByNobody(t *testing.T) {
	answer, asked := make(chan struct{}), make(chan struct{}, 3)
	s := newSizes()
	s.patience = 10 * time.Millisecond
	s.measure = func(string) (size, error) {
		asked <- struct{}{}
		<-answer
		return size{bytes: 7}, nil
	}
	for range 3 {
		if _, err := s.ask(t.Context(), "/t"); !errors.Is(err, remote.ErrSilent) {
			t.Errorf("got %v", err)
		}
	}
	<-asked
	if more := len(asked); more > 0 {
		t.Errorf("it was asked %d times more", more)
	}
	s.patience = eventually
	close(answer)
	if found, err := s.ask(t.Context(), "/t"); err != nil || found.bytes != 7 {
		t.Errorf("got %v, %v", found, err)
	}
}
