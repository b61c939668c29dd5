package mount_test

import (
	"context"
	"testing"
	"time"

	"github.com/stowage-dev/stowage/internal/mount"
	"github.com/stowage-dev/stowage/internal/mount/mounttest"
)

// watch begins a watch, which ends with the test.
func watch(t *testing.T) (reported <-chan struct{}) {
	t.Helper()
	changes, ended := make(chan struct{}, 1000), make(chan error)
	ctx, cancel := context.WithCancel(t.Context())
	go func() { ended <- mount.Watch(ctx, func() { changes <- struct{}{} }) }()
	t.Cleanup(func() {
		cancel()
		select {
		case err := <-ended:
			if err != nil {
				t.Error(err)
			}
		case <-time.After(10 * time.Second):
			t.Error("the watch goes on after its context")
		}
	})
	return changes
}

func mountAndUnmount(t *testing.T, dir string) {
	t.Helper()
	if err := (mount.Kernel{}).Tmpfs(dir, mount.TmpfsOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := (mount.Kernel{}).Unmount(dir); err != nil {
		t.Fatal(err)
	}
}

// awaitWatch changes something until the watch reports it, as it begins when it can.
func awaitWatch(t *testing.T, reported <-chan struct{}, dir string) {
	t.Helper()
	for range 100 {
		mountAndUnmount(t, dir)
		select {
		case <-reported:
			return
		case <-time.After(200 * time.Millisecond):
		}
	}
	t.Fatal("no mount was reported")
}

func TestAWatchReportsMountsOnceForAllThatComeTogether(t *testing.T) {
	mounttest.NeedsRoot(t)
	dir := t.TempDir()
	reported := watch(t)
	awaitWatch(t, reported, dir)
	const changes = 200
	began := time.Now()
	for range changes / 2 {
		mountAndUnmount(t, dir)
	}
	count := 0
	for quiet := false; !quiet; {
		select {
		case <-reported:
			count++
		case <-time.After(time.Second):
			quiet = true
		}
	}
	// Others of this machine may mount at the same time.
	if most := int(time.Since(began)/(100*time.Millisecond)) + 1; count == 0 || count > most {
		t.Errorf("of %d changes it reported %d, and may report %d", changes, count, most)
	}
}

func TestAnUnmountByHandIsReportedWithinASecond(t *testing.T) {
	mounttest.NeedsRoot(t)
	dir := t.TempDir()
	reported := watch(t)
	awaitWatch(t, reported, dir)
	if err := (mount.Kernel{}).Tmpfs(dir, mount.TmpfsOptions{}); err != nil {
		t.Fatal(err)
	}
	awaitReport(t, reported)
	if err := (mount.Kernel{}).Unmount(dir); err != nil {
		t.Fatal(err)
	}
	awaitReport(t, reported)
}

func awaitReport(t *testing.T, reported <-chan struct{}) {
	t.Helper()
	select {
	case <-reported:
	case <-time.After(time.Second):
		t.Fatal("no report came")
	}
}
