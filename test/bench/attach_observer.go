package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/watch"
)

// attachObserver sees what users see: which volumes are attached to which nodes.
type attachObserver struct {
	watching watch.Interface

	mu sync.Mutex
	// first and last are when it saw something for the first and the last time.
	first, last time.Time
	attached    map[string]bool
	err         error
	news        chan struct{}
}

// observeAttachments watches from now on, and knows what is there already.
func (b *testbed) observeAttachments() (*attachObserver, error) {
	attached, err := b.attached()
	if err != nil {
		return nil, err
	}
	watching, err := b.watchFromNow(&storagev1.VolumeAttachmentList{})
	if err != nil {
		return nil, err
	}
	o := &attachObserver{watching: watching, attached: attached, news: make(chan struct{}, 1)}
	go o.follow()
	return o, nil
}

func (o *attachObserver) follow() {
	for event := range o.watching.ResultChan() {
		if attachment, ok := event.Object.(*storagev1.VolumeAttachment); ok {
			o.see(event.Type, attachment)
		}
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.err = errors.New("the watch ended: events were missed")
}

func (o *attachObserver) see(event watch.EventType, attachment *storagev1.VolumeAttachment) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.last = time.Now()
	if o.first.IsZero() {
		o.first = o.last
	}
	if event == watch.Deleted {
		delete(o.attached, attachment.Name)
	} else {
		o.attached[attachment.Name] = attachment.Status.Attached
	}
	select {
	case o.news <- struct{}{}:
	default:
	}
}

// await waits until these are attached and no others there, or until nothing more
// happens. It tells how long all that it saw took.
func (o *attachObserver) await(ctx context.Context, wanted map[string]bool, p *process) (time.Duration, error) {
	defer o.watching.Stop()
	for {
		off, took, err := o.compare(wanted)
		if err == nil {
			err = errors.Join(ctx.Err(), p.alive())
		}
		if err != nil || off == 0 {
			return took, err
		}
		select {
		case <-o.news:
		case <-p.ended:
		case <-ctx.Done():
		case <-time.After(stalled):
			return took, fmt.Errorf("of %d attachments %d are not as they should be, and for %s nothing happened", len(wanted), off, stalled)
		}
	}
}

func (o *attachObserver) compare(wanted map[string]bool) (off int, took time.Duration, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	right := 0
	for name, attached := range o.attached {
		if attached && wanted[name] {
			right++
		}
	}
	return len(wanted) - right + len(o.attached) - right, o.last.Sub(o.first), o.err
}

func (b *testbed) attached() (map[string]bool, error) {
	list := &storagev1.VolumeAttachmentList{}
	if err := b.client.List(b.ctx, list); err != nil {
		return nil, fmt.Errorf("listing attachments: %w", err)
	}
	attached := map[string]bool{}
	for _, attachment := range list.Items {
		attached[attachment.Name] = attachment.Status.Attached
	}
	return attached, nil
}
