package metrics

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/stowage-dev/stowage/internal/backend"
)

func attachMetrics() (strays *prometheus.GaugeVec, forced *prometheus.CounterVec) {
	strays = prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "stowage_backend_stray_attachments",
		Help: "Volumes that are attached to a machine though no VolumeAttachment asks for it, as the last comparison found them.",
	}, []string{"backend"})
	forced = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "stowage_backend_forced_detaches_total",
		Help: "Volumes that were taken from a node which had not let go of them.",
	}, []string{"backend"})
	return strays, forced
}

// Compared sets what the last comparison of attachments with a backend found.
func (m *Metrics) Compared(name string, strays int) {
	m.strays.WithLabelValues(name).Set(float64(strays))
}

// Forced counts a volume that was taken from a node by force.
func (m *Metrics) Forced(name string) { m.forced.WithLabelValues(name).Inc() }

// Attach measures a call of Attach.
func (m *measured) Attach(ctx context.Context, request backend.AttachRequest) (backend.Attachment, error) {
	attacher, can := backend.As[backend.Attacher](m.Backend)
	if !can {
		return backend.Attachment{}, notAttaching(m.name)
	}
	began := time.Now()
	attached, err := attacher.Attach(ctx, request)
	m.observe("attach", began, err)
	return attached, err
}

// Detach measures a call of Detach.
func (m *measured) Detach(ctx context.Context, id string, node backend.NodeIdentity) error {
	attacher, can := backend.As[backend.Attacher](m.Backend)
	if !can {
		return notAttaching(m.name)
	}
	began := time.Now()
	err := attacher.Detach(ctx, id, node)
	m.observe("detach", began, err)
	return err
}

// IsAttached measures a call of IsAttached.
func (m *measured) IsAttached(ctx context.Context, id string, node backend.NodeIdentity) (bool, error) {
	attacher, can := backend.As[backend.Attacher](m.Backend)
	if !can {
		return false, notAttaching(m.name)
	}
	began := time.Now()
	is, err := attacher.IsAttached(ctx, id, node)
	m.observe("is-attached", began, err)
	return is, err
}

// Attachments measures a call of Attachments.
func (m *measured) Attachments(ctx context.Context) ([]backend.Attached, error) {
	lister, can := backend.As[backend.AttachmentLister](m.Backend)
	if !can {
		return nil, notAttaching(m.name)
	}
	began := time.Now()
	found, err := lister.Attachments(ctx)
	m.observe("attachments", began, err)
	return found, err
}

// ObserveNode measures a call of ObserveNode.
func (m *measured) ObserveNode(ctx context.Context, node backend.NodeIdentity) (backend.Machine, error) {
	observer, can := backend.As[backend.NodeObserver](m.Backend)
	if !can {
		return backend.MachineUnknown, nil
	}
	began := time.Now()
	observed, err := observer.ObserveNode(ctx, node)
	m.observe("observe-node", began, err)
	return observed, err
}

func notAttaching(name string) error {
	return backend.Invalid.Errorf("StorageBackend %s doesn't attach volumes", name)
}
