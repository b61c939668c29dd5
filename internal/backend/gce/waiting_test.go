package gce

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/gcemock"
)

func TestManyWaitForTheirOperationsWithOneListAtATime(t *testing.T) {
	w := newWorld(t)
	on := w.open()
	w.kind.clients.Limits.Poll = 50 * time.Millisecond
	var ids []string
	for _, number := range strings.Split("123456789", "") {
		ids = append(ids, w.withDisk(on, number))
	}
	w.inject(gcemock.Fault{Method: "instances.attachDisk", Delay: gcemock.Duration(600 * time.Millisecond)})
	var lists, waits, taken atomic.Int32
	w.plans(func(request *http.Request) fate {
		switch {
		case strings.HasSuffix(request.URL.Path, "/wait"):
			waits.Add(1)
		case strings.HasSuffix(request.URL.Path, "/operations") && strings.Contains(request.URL.Query().Get("filter"), "name"):
			lists.Add(1)
		}
		return served
	})
	var all sync.WaitGroup
	for _, id := range ids {
		all.Go(func() {
			ctx := backend.OnAccepted(t.Context(), func() { taken.Add(1) })
			if _, err := on.Attach(ctx, backend.AttachRequest{ID: id, Node: node("node-1")}); err != nil {
				t.Errorf("%s: %v", id, err)
			}
		})
	}
	all.Wait()
	if lists.Load() > 40 || waits.Load() > 0 || int(taken.Load()) != len(ids) {
		t.Errorf("there were %d lists and %d waits; %d calls said that they were taken", lists.Load(), waits.Load(), taken.Load())
	}
	deadline := time.Now().Add(patience)
	for w.kind.clients.Polled() > 0 {
		if time.Now().After(deadline) {
			t.Fatal("it polls without callers")
		}
	}
}

func TestNoPollForACancelledCaller(t *testing.T) {
	w := newWorld(t)
	on := w.open()
	id := w.withDisk(on, "1")
	w.inject(gcemock.Fault{Method: "instances.attachDisk", Count: 1, Stuck: true})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	_, err := on.Attach(backend.OnAccepted(ctx, cancel), backend.AttachRequest{ID: id, Node: node("node-1")})
	w.mustBe(err, backend.InProgress, "attaching disk")
	w.removeFaults()
	w.mustAttach(on, id, node("node-1"), false)
}
